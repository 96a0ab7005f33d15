// Tile: the listed factors as a Tile unit, others as broadcasts.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kTileCases = {
    {.name = "factors_2_3_4",
     .model = "(float[1,2,3,5] x) => (float[1,4,9,20] y) <int64[4] r = {1,2,3,4}> "
              "{ y = Tile(x, r) }",
     .units = {"Tile"},
     .tolerance = 1e-3},
    {.name = "factor_8_of_a_batch",
     .model = "(float[3,2,5] x) => (float[3,16,5] y) <int64[3] r = {1,8,1}> { y = Tile(x, r) }",
     .target = "h16",
     .units = {"Tile"},
     .tolerance = 1e-3},
    {.name = "batch_itself",
     .model = "(float[2,3] x) => (float[6,3] y) <int64[2] r = {3,1}> { y = Tile(x, r) }",
     .units = {"Tile"},
     .tolerance = 1e-3},
    {.name = "depth",
     .model = "(float[2,3,2,4,5] x) => (float[2,3,4,4,5] y) <int64[5] r = {1,1,2,1,1}> "
              "{ y = Tile(x, r) }",
     .units = {"Tile"},
     .tolerance = 1e-3},
    {.name = "nothing_to_do",
     .model =
         "(float[2,3] x) => (float[2,3] y) <int64[2] r = {1,1}> { z = Relu(x) y = Tile(z, r) }",
     .units = {"Neuron"}},
    {.name = "factor_5_is_refused",
     .model = "(float[1,2,3] x) => (float[1,10,3] y) <int64[3] r = {1,5,1}> { y = Tile(x, r) }",
     .rewrites = false,
     .refused_by = "tile-factor"},
    {.name = "factor_5_as_a_broadcast",
     .model = "(float[2,2,3] x) => (float[2,10,3] y) <int64[3] r = {1,5,1}> { y = Tile(x, r) }",
     .units = {"Broadcast"},
     .tolerance = 1e-3},
    {.name = "factors_5_and_7_of_rank_5",
     .model = "(float[2,3,2,2,3] x) => (float[2,15,2,2,21] y) <int64[5] r = {1,5,1,1,7}> "
              "{ y = Tile(x, r) }",
     .target = "h16",
     .units = {"Broadcast", "Broadcast"},
     .tolerance = 1e-3},
    {.name = "refused_before_a13",
     .model = "(float[1,2,3] x) => (float[1,4,3] y) <int64[3] r = {1,2,1}> { y = Tile(x, r) }",
     .target = "h12",
     .rewrites = false,
     .refused_by = "unit-family"},
    {.name = "as_a_broadcast_before_a13",
     .model = "(float[1,2,3] x) => (float[1,4,3] y) <int64[3] r = {1,2,1}> { y = Tile(x, r) }",
     .target = "h12",
     .units = {"Broadcast"},
     .tolerance = 1e-3},
    {.name = "integers",
     .model = "(int64[2] x) => (int64[4] y) <int64[1] r = {2}> { y = Tile(x, r) }",
     .refused_by = "integer-range"},
};

INSTANTIATE_TEST_SUITE_P(Tile, KernelTest, testing::ValuesIn(kTileCases), CaseName);

}  // namespace
}  // namespace anemone
