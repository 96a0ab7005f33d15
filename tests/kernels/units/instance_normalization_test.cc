// InstanceNormalization of every rank, and where it is refused.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kInstanceNormalizationCases = {
    {.name = "images",
     .model = "(float[2,6,5,7] x) => (float[2,6,5,7] y) <float[6] g, float[6] b> "
              "{ y = InstanceNormalization(x, g, b) }",
     .units = {"InstanceNormalization"}},
    {.name = "sequences",
     .model = "(float[2,6,35] x) => (float[2,6,35] y) <float[6] g, float[6] b> "
              "{ y = InstanceNormalization<epsilon = 0.001>(x, g, b) }",
     .target = "h16",
     .units = {"InstanceNormalization"}},
    {.name = "volumes",
     .model = "(float[2,6,3,5,7] x) => (float[2,6,3,5,7] y) <float[6] g, float[6] b> "
              "{ y = InstanceNormalization(x, g, b) }",
     .units = {"InstanceNormalization"}},
    {.name = "before_a13",
     .model = "(float[2,6,5,7] x) => (float[2,6,5,7] y) <float[6] g, float[6] b> "
              "{ y = InstanceNormalization(x, g, b) }",
     .target = "h12",
     .refused_by = "instance-norm-arch"},
    {.name = "scale_at_run_time",
     .model = "(float[2,6,5,7] x, float[6] g) => (float[2,6,5,7] y) <float[6] b> "
              "{ y = InstanceNormalization(x, g, b) }",
     .refused_by = "form-not-lowered"},
};
INSTANTIATE_TEST_SUITE_P(InstanceNormalization, KernelTest,
                         testing::ValuesIn(kInstanceNormalizationCases), CaseName);

}  // namespace
}  // namespace anemone
