// Elements gathered and scattered by constant indices. All are exact for fp16 numbers.
#include "tests/kernels/on_targets.h"

namespace anemone {
namespace {

constexpr double kExact = 5e-4;  // the rounding of the float inputs

const std::vector<Case> kElementMapsCases = {
    {.name = "gather_elements",
     .model = "(float[3,3,2] x) => (float[2,3,2] y) "
              "<int64[2,3,2] i = {1,-1,0,2,0,0, 2,1,1,1,-3,0}> { y = GatherElements(x, i) }",
     .units = {"Gather"},
     .tolerance = kExact},
    {.name = "gather_elements_of_less",  // the indices have fewer rows than the data
     .model = "(float[3,4] x) => (float[2,3] y) <int64[2,3] i = {3,0,1, 2,2,0}> "
              "{ y = GatherElements<axis = 1>(x, i) }",
     .units = {"Gather"},
     .tolerance = kExact},
    {.name = "gather_nd",
     .model = "(float[2,3,4] x) => (float[3,4] y) <int64[3,2] i = {0,2, 1,-3, 1,1}> "
              "{ y = GatherND(x, i) }",
     .units = {"Gather"},
     .tolerance = kExact},
    {.name = "gather_nd_in_batches",
     .model = "(float[2,3,4] x) => (float[2,4] y) <int64[2,1] i = {2, 0}> "
              "{ y = GatherND<batch_dims = 1>(x, i) }",
     .units = {"Gather"},
     .tolerance = kExact},
    {.name = "gather_nd_of_rank_5",
     .model = "(float[2,2,3,2,2] x) => (float[2,3,2,2] y) <int64[2,2] i = {0,1, 1,0}> "
              "{ y = GatherND(x, i) }",
     .units = {"Gather", "Transpose"},
     .tolerance = kExact},
    {.name = "scatter_elements",
     .model = "(float[3,4] x, float[2,4] u) => (float[3,4] y) "
              "<int64[2,4] i = {1,0,2,-1, 0,2,1,0}> { y = ScatterElements(x, i, u) }",
     .units = {"Concat", "Gather"},
     .tolerance = kExact},
    {.name = "scatter_adds_twice",
     .model = "(float[1,5] x, float[1,3] u) => (float[1,5] y) <int64[1,3] i = {1,3,1}> "
              "{ y = ScatterElements<axis = 1, reduction = \"add\">(x, i, u) }",
     .units = {"Concat", "Gather", "Gather", "ElementWise", "ElementWise"}},
    {.name = "scatter_takes_the_least",
     .model = "(float[1,5] x, float[1,2] u) => (float[1,5] y) <int64[1,2] i = {4,0}> "
              "{ y = ScatterElements<axis = 1, reduction = \"min\">(x, i, u) }",
     .units = {"Concat", "Gather", "ElementWise"}},
    {.name = "scatter_nd",
     .model = "(float[4,3,2] x, float[2,3,2] u) => (float[4,3,2] y) <int64[2,1] i = {3, 1}> "
              "{ y = ScatterND(x, i, u) }",
     .units = {"Concat", "Gather"},
     .tolerance = kExact},
    {.name = "scatter_nd_multiplies",
     .model = "(float[4,3] x, float[2] u) => (float[4,3] y) <int64[2,2] i = {3,0, 1,2}> "
              "{ y = ScatterND<reduction = \"mul\">(x, i, u) }",
     .units = {"Concat", "Gather", "ElementWise"}},
    {.name = "reverse_sequence_by_time",
     .model = "(float[4,3,2] x) => (float[4,3,2] y) <int64[3] l = {4,2,1}> "
              "{ y = ReverseSequence(x, l) }",
     .units = {"Gather"},
     .tolerance = kExact},
    {.name = "reverse_sequence_by_batch",
     .model = "(float[3,4] x) => (float[3,4] y) <int64[3] l = {1,0,3}> "
              "{ y = ReverseSequence<batch_axis = 0, time_axis = 1>(x, l) }",
     .units = {"Gather"},
     .tolerance = kExact},
    {.name = "compress_an_axis",
     .model = "(float[2,4,3] x) => (float[2,2,3] y) <bool[3] k = {1,0,1}> "
              "{ y = Compress<axis = 1>(x, k) }",
     .units = {"Gather", "Transpose", "Transpose"},
     .tolerance = kExact},
    {.name = "compress_all",
     .model = "(float[2,3] x) => (float[3] y) <bool[5] k = {0,1,1,0,1}> { y = Compress(x, k) }",
     .units = {"Gather"},
     .tolerance = kExact},
};

INSTANTIATE_TEST_SUITE_P(ElementMaps, KernelTest, testing::ValuesIn(OnBoth(kElementMapsCases)),
                         CaseName);

}  // namespace
}  // namespace anemone
