// TopK: values, indices and both, every axis; K of 3 and 4, and the targets without it. For lanes
// that follow another lane see sort_test.cc. Cases with a seed have it because the harness's
// default seed gives two elements that are equal in fp16.
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

const std::vector<Case> kTopKCases = {
    {.name = "last_axis",
     .model = "(float[2,3,40] x) => (float[2,3,5] v, int64[2,3,5] i) <int64[1] k = {5}> "
              "{ v, i = TopK(x, k) }",
     .target = "h14",
     .units = {"TopK", "TopK"}},
    {.name = "one_of_a_thousand",
     .model = "(float[1,1000] x) => (float[1,1] v, int64[1,1] i) <int64[1] k = {1}> "
              "{ v, i = TopK(x, k) }",
     .target = "h16",
     .units = {"TopK", "TopK"},
     .tolerance = 1e-3},
    {.name = "smallest",
     .model = "(float[4,30] x) => (float[4,6] v, int64[4,6] i) <int64[1] k = {6}> "
              "{ v, i = TopK<largest = 0>(x, k) }",
     .target = "h14",
     .units = {"TopK", "TopK"}},
    {.name = "channels",
     .model = "(float[2,16,3,5] x) => (float[2,7,3,5] v, int64[2,7,3,5] i) <int64[1] k = {7}> "
              "{ v, i = TopK<axis = 1>(x, k) }",
     .target = "h16",
     .units = {"TopK", "TopK"},
     .seed = 2},
    {.name = "height",
     .model = "(float[2,4,9,5] x) => (float[2,4,2,5] v, int64[2,4,2,5] i) <int64[1] k = {2}> "
              "{ v, i = TopK<axis = 2>(x, k) }",
     .target = "h14",
     .units = {"TopK", "TopK"}},
    {.name = "batch",
     .model = "(float[8,4,3,5] x) => (float[2,4,3,5] v, int64[2,4,3,5] i) <int64[1] k = {2}> "
              "{ v, i = TopK<axis = 0>(x, k) }",
     .target = "h14",
     .units = {"TopK", "TopK"}},
    {.name = "rank_5_depth",
     .model = "(float[1,4,9,3,5] x) => (float[1,4,2,3,5] v, int64[1,4,2,3,5] i) "
              "<int64[1] k = {2}> { v, i = TopK<axis = 2>(x, k) }",
     .target = "h14",
     .units = {"TopK", "TopK"}},
    {.name = "rank_5_without_a_free_axis",
     .model = "(float[2,4,9,3,5] x) => (float[2,4,2,3,5] v) <int64[1] k = {2}> "
              "{ v, i = TopK<axis = 2>(x, k) }",
     .target = "h14",
     .refused_by = "form-not-lowered"},
    {.name = "rank_1",
     .model = "(float[60] x) => (float[10] v, int64[10] i) <int64[1] k = {10}> "
              "{ v, i = TopK(x, k) }",
     .target = "h14",
     .units = {"TopK", "TopK"},
     .seed = 2},
    {.name = "all_of_them",
     .model = "(float[3,20] x) => (float[3,20] v, int64[3,20] i) <int64[1] k = {20}> "
              "{ v, i = TopK(x, k) }",
     .target = "h14",
     .units = {"TopK", "TopK"}},
    {.name = "values_alone",
     .model = "(float[3,3000] x) => (float[3,5] v) <int64[1] k = {5}> { v, i = TopK(x, k) }",
     .target = "h14",
     .units = {"TopK"}},
    {.name = "indices_alone",
     .model = "(float[3,40] x) => (int64[3,5] i) <int64[1] k = {5}> { v, i = TopK(x, k) }",
     .target = "h14",
     .units = {"TopK"}},
    {.name = "in_any_order",
     .model = "(float[3,40] x) => (float[3,1] s) <int64[1] k = {5}, int64[1] axis = {1}> "
              "{ v, i = TopK<sorted = 0>(x, k) s = ReduceSum(v, axis) }",
     .target = "h14",
     .units = {"TopK", "Reduction"}},
    {.name = "of_equals_the_first",
     .model = "(float[4,40] x) => (float[4,12] v, int64[4,12] i) <int64[1] k = {12}> "
              "{ f = Floor(x) v, i = TopK(f, k) }",
     .target = "h14",
     .units = {"Neuron", "TopK", "TopK"},
     .low = -3,
     .high = 3},
    {.name = "of_equal_smallest_the_first",
     .model = "(float[4,40] x) => (float[4,12] v, int64[4,12] i) <int64[1] k = {12}> "
              "{ f = Floor(x) v, i = TopK<largest = 0>(f, k) }",
     .target = "h14",
     .units = {"Neuron", "TopK", "TopK"},
     .low = -3,
     .high = 3},
    {.name = "indices_read_by_the_cpu",
     .model = "(float[3,40] x) => (float[3,5] g, int64[3,5] i, float[3,5] r) <int64[1] k = {5}> "
              "{ v, i = TopK(x, k) g = GatherElements<axis = 1>(x, i) r = Relu(g) }",
     .target = "h14",
     .refused_by = "port-format"},
    {.name = "three_as_a_sort",
     .model = "(float[2,3,40] x) => (float[2,3,3] v, int64[2,3,3] i) <int64[1] k = {3}> "
              "{ v, i = TopK(x, k) }",
     .target = "h14",
     .units = {"Sort", "InputView", "Sort", "InputView"}},
    {.name = "four_smallest_of_four_as_a_sort",
     .model = "(float[2,4,3] x) => (float[2,4,3] v, int64[2,4,3] i) <int64[1] k = {4}> "
              "{ v, i = TopK<axis = 1, largest = 0>(x, k) }",
     .target = "h16",
     .units = {"Sort", "Sort"}},
    {.name = "three_without_rewrites",
     .model = "(float[3,40] x) => (float[3,3] v) <int64[1] k = {3}> { v, i = TopK(x, k) }",
     .target = "h14",
     .rewrites = false,
     .refused_by = "top-k-3-or-4"},
    {.name = "indices_past_2047",
     .model = "(float[1,2049] x) => (int64[1,5] i) <int64[1] k = {5}> { v, i = TopK(x, k) }",
     .target = "h14",
     .refused_by = "form-not-lowered"},
    {.name = "three_and_indices_past_2047",
     .model = "(float[1,2049] x) => (int64[1,3] i) <int64[1] k = {3}> { v, i = TopK(x, k) }",
     .target = "h14",
     .refused_by = "top-k-3-or-4"},
    {.name = "on_a13_in_doubt",
     .model = "(float[3,40] x) => (float[3,5] v) <int64[1] k = {5}> { v, i = TopK(x, k) }",
     .units = {"TopK"}},
    {.name = "on_a13_not_converted",
     .model = "(float[3,40] x) => (float[3,5] v) <int64[1] k = {5}> { v, i = TopK(x, k) }",
     .route = "mil",
     .refused_by = "top-k-conversion"},
    {.name = "converted_from_a14",
     .model = "(float[3,40] x) => (float[3,5] v, int64[3,5] i) <int64[1] k = {5}> "
              "{ v, i = TopK(x, k) }",
     .target = "h14",
     .route = "mil",
     .units = {"TopK", "TopK"}},
    {.name = "before_a13",
     .model = "(float[3,40] x) => (float[3,5] v) <int64[1] k = {5}> { v, i = TopK(x, k) }",
     .target = "h12",
     .refused_by = "unit-family"},
    {.name = "count_at_run_time",
     .model = "(float[3,40] x, int64[1] k) => (float[3,n] v) { v, i = TopK(x, k) }",
     .target = "h14",
     .refused_by = "port-format"},
};

INSTANTIATE_TEST_SUITE_P(TopK, KernelTest, testing::ValuesIn(kTopKCases), CaseName);

}  // namespace
}  // namespace anemone
