// Stacks of differences between an image and shifted copies of another, lowered to CostVolume.
#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/kernels/harness.h"

namespace anemone {
namespace {

constexpr int kWidth = 20;

std::string Ints(const std::string& name, const std::vector<int>& values) {
  std::string text = absl::StrCat("int64[", values.size(), "] ", name, " = {");
  for (size_t i = 0; i < values.size(); ++i) absl::StrAppend(&text, i > 0 ? ", " : "", values[i]);
  return absl::StrCat(text, "}");
}

// The initializers and nodes of shift `d` in a model. They compute "r<d>" from "ref".
struct Part {
  std::string initializers, nodes;
};
using Shift = std::function<Part(int d)>;

std::string Sliced(const std::string& to, const std::string& from, int d) {
  return absl::StrCat(to, " = Slice(", from, ", s", d, ", e", d, ", axes) ");
}
std::string SliceBounds(int d, int start, int end) {
  return absl::StrCat(", ", Ints(absl::StrCat("s", d), {start}), ", ",
                      Ints(absl::StrCat("e", d), {end}));
}
std::string Pads(int d, int before, int after) {
  return absl::StrCat(", ", Ints(absl::StrCat("p", d), {0, 0, 0, before, 0, 0, 0, after}));
}

// ref is wider by the range; the first part begins at `first`.
Shift WiderRef(int first = 0, int step = 1) {
  return [=](int d) {
    const int start = first + step * d;
    return Part{SliceBounds(d, start, start + kWidth), Sliced(absl::StrCat("r", d), "ref", d)};
  };
}

// Zeros after ref, then the slice.
Part PaddedBehind(int d) {
  return {absl::StrCat(Pads(d, 0, d), SliceBounds(d, d, d + kWidth)),
          absl::StrCat("q", d, " = Pad(ref, p", d, ") ",
                       Sliced(absl::StrCat("r", d), absl::StrCat("q", d), d))};
}

// Zeros, or `value`, before ref, then the slice: the usual left[x] - right[x - d].
Shift PaddedBefore(const std::string& value = "") {
  return [=](int d) {
    const std::string comma = value.empty() ? "" : ", value";
    return Part{absl::StrCat(Pads(d, d, 0), SliceBounds(d, 0, kWidth)),
                absl::StrCat("q", d, " = Pad(ref, p", d, comma, ") ",
                             Sliced(absl::StrCat("r", d), absl::StrCat("q", d), d))};
  };
}

// The slice, then zeros before it.
Part CutThenPadded(int d) {
  return {
      absl::StrCat(Pads(d, d, 0), SliceBounds(d, 0, kWidth - d)),
      absl::StrCat(Sliced(absl::StrCat("q", d), "ref", d), "r", d, " = Pad(q", d, ", p", d, ") ")};
}

// A Pad that crops as much as it adds.
Part Moved(int d) { return {Pads(d, -d, d), absl::StrCat("r", d, " = Pad(ref, p", d, ") ")}; }

// `more` are additional initializers. `each` computes "a<d>" from "t<d>", which is aux - r<d>, or
// r<d> - aux if d is odd.
std::string CostModel(int range, int ref_width, const Shift& shift, const std::string& more = "",
                      const std::function<std::string(int)>& each = nullptr, int batch = 1,
                      int channels = 1, int stacked = 1) {
  std::string initializers = Ints("axes", {3}), nodes, parts;
  absl::StrAppend(&initializers, more);
  for (int d = 0; d <= range; ++d) {
    const Part part = shift(d);
    absl::StrAppend(&initializers, part.initializers);
    absl::StrAppend(&nodes, part.nodes, "t", d, " = Sub(",
                    d % 2 == 0 ? absl::StrCat("aux, r", d) : absl::StrCat("r", d, ", aux"), ") ");
    absl::StrAppend(&nodes, each ? each(d) : absl::StrCat("a", d, " = Abs(t", d, ") "));
    absl::StrAppend(&parts, d > 0 ? ", " : "", "a", d);
  }
  const auto image = [&](int width) {
    return absl::StrCat("float[", batch, ",", channels, ",6,", width, "]");
  };
  return absl::StrCat("(", image(kWidth), " aux, ", image(ref_width), " ref) => (float[", batch,
                      ",", (range + 1) * stacked, ",6,", kWidth, "] y) <", initializers, "> {",
                      nodes, "y = Concat<axis = 1>(", parts, ") }");
}

std::string Reduced(const std::string& op, int d) {
  return absl::StrCat("u", d, " = Abs(t", d, ") a", d, " = ", op, "<keepdims = 1>(u", d,
                      ", channel) ");
}

const std::vector<Case> kCostVolumeCases = {
    {.name = "wider_ref", .model = CostModel(3, kWidth + 3, WiderRef()), .units = {"CostVolume"}},
    {.name = "two_images",
     .model = CostModel(1, kWidth + 1, WiderRef(), "", nullptr, /*batch=*/2),
     .target = "h16",
     .units = {"CostVolume"}},
    {.name = "a_part_of_ref",
     .model = CostModel(4, kWidth + 9, WiderRef(/*first=*/2)),
     .units = {"InputView", "CostVolume"}},
    {.name = "wider_ref_backwards",
     .model = CostModel(3, kWidth + 3, WiderRef(/*first=*/3, /*step=*/-1)),
     .units = {"CostVolume", "InputView"}},
    {.name = "padded_behind",
     .model = CostModel(3, kWidth, PaddedBehind),
     .units = {"Padding", "CostVolume"}},
    {.name = "padded_before",
     .model = CostModel(3, kWidth, PaddedBefore()),
     .units = {"Padding", "CostVolume", "InputView"}},
    {.name = "padded_with_a_number",
     .model = CostModel(3, kWidth, PaddedBefore("value"), ", float value = {0.75}"),
     .units = {"Padding", "CostVolume", "InputView"}},
    {.name = "cut_then_padded",
     .model = CostModel(3, kWidth, CutThenPadded),
     .units = {"Padding", "CostVolume", "InputView"}},
    {.name = "moved", .model = CostModel(5, kWidth, Moved), .units = {"Padding", "CostVolume"}},
    {.name = "padded_once",
     .model = CostModel(
         3, kWidth,
         [](int d) {
           Part part = WiderRef()(d);
           part.nodes = absl::StrCat(d == 0 ? "wide = Pad(ref, pads) " : "",
                                     Sliced(absl::StrCat("r", d), "wide", d));
           return part;
         },
         ", int64[8] pads = {0,0,0,0,0,0,0,3}"),
     .units = {"Padding", "CostVolume"}},
    {.name = "mean_of_one_channel",
     .model = CostModel(3, kWidth + 3, WiderRef(), ", int64[1] channel = {1}",
                        [](int d) { return Reduced("ReduceMean", d); }),
     .units = {"CostVolume"}},
    {.name = "sum_of_one_channel",
     .model = CostModel(2, kWidth, PaddedBehind, ", int64[1] channel = {-3}",
                        [](int d) { return Reduced("ReduceSum", d); }),
     .units = {"Padding", "CostVolume"}},
    {.name = "mean_of_three_channels",  // a volume for each channel
     .model = CostModel(
         3, kWidth + 3, WiderRef(), ", int64[1] channel = {1}",
         [](int d) { return Reduced("ReduceMean", d); }, 1, /*channels=*/3),
     .units = Units({{"InputView", 6}, {"CostVolume", 3}, {"ElementWise", 2}, {"GOC", 1}})},
    {.name = "sum_of_two_channels",
     .model = CostModel(
         4, kWidth, PaddedBefore(), ", int64[1] channel = {1}",
         [](int d) { return Reduced("ReduceSum", d); }, 1, /*channels=*/2),
     .units = Units({{"Padding", 1}, {"InputView", 5}, {"CostVolume", 2}, {"ElementWise", 1}})},
    // Models that are not a cost volume are lowered node by node and have correct values.
    {.name = "shifts_with_a_gap",
     .model = CostModel(2, kWidth + 9, WiderRef(/*first=*/0, /*step=*/2)),
     .units = Units({{"InputView", 3}, {"ElementWise", 6}, {"Concat", 1}})},
    {.name = "the_same_shift",
     .model = CostModel(1, kWidth + 9, WiderRef(/*first=*/1, /*step=*/0)),
     .units = Units({{"InputView", 2}, {"ElementWise", 4}, {"Concat", 1}})},
    {.name = "several_channels",
     .model = CostModel(1, kWidth + 1, WiderRef(), "", nullptr, 1, /*channels=*/3, /*stacked=*/3),
     .units = Units({{"InputView", 2}, {"ElementWise", 4}, {"Concat", 1}})},
    {.name = "mean_of_several_channels",
     .model = CostModel(
         1, kWidth + 1, WiderRef(), ", int64[1] channel = {1}",
         [](int d) { return Reduced("ReduceMean", d); }, 1, /*channels=*/3),
     .units = Units({{"InputView", 2}, {"ElementWise", 4}, {"Reduction", 2}, {"Concat", 1}})},
    {.name = "squares",
     .model = CostModel(1, kWidth + 1, WiderRef(), "",
                        [](int d) { return absl::StrCat("a", d, " = Mul(t", d, ", t", d, ") "); }),
     .units = Units({{"InputView", 2}, {"ElementWise", 4}, {"Concat", 1}})},
    // The zeros replace elements of ref that were sliced off, not elements outside ref.
    {.name = "cut_where_it_is_padded",
     .model = CostModel(1, kWidth + 4,
                        [](int d) {
                          return Part{
                              absl::StrCat(Pads(d, 0, 2), SliceBounds(d, d, kWidth - 2 + d)),
                              absl::StrCat(Sliced(absl::StrCat("q", d), "ref", d), "r", d,
                                           " = Pad(q", d, ", p", d, ") ")};
                        }),
     .units = Units({{"InputView", 2}, {"Padding", 2}, {"ElementWise", 4}, {"Concat", 1}})},
    {.name = "paddings_differ",
     .model = CostModel(2, kWidth,
                        [](int d) {
                          Part part = PaddedBefore(absl::StrCat("value"))(d);
                          absl::StrAppend(&part.initializers, ", float v", d, " = {", d, ".5}");
                          part.nodes =
                              absl::StrCat("q", d, " = Pad(ref, p", d, ", v", d, ") ",
                                           Sliced(absl::StrCat("r", d), absl::StrCat("q", d), d));
                          return part;
                        }),
     .units = Units({{"Padding", 2}, {"InputView", 2}, {"ElementWise", 6}, {"Concat", 1}})},
    {.name = "mirrored_padding",
     .model = CostModel(1, kWidth,
                        [](int d) {
                          Part part = PaddedBefore()(d);
                          part.nodes =
                              absl::StrCat("q", d, " = Pad<mode = \"edge\">(ref, p", d, ") ",
                                           Sliced(absl::StrCat("r", d), absl::StrCat("q", d), d));
                          return part;
                        }),
     .units = Units({{"Padding", 1}, {"InputView", 1}, {"ElementWise", 4}, {"Concat", 1}})},
    {.name = "a_difference_is_read_elsewhere",
     .model = "(float[1,1,6,20] aux, float[1,1,6,21] ref) => (float[1,2,6,20] y, "
              "float[1,1,6,20] t1) <int64[1] axes = {3}, int64[1] s0 = {0}, int64[1] e0 = {20}, "
              "int64[1] s1 = {1}, int64[1] e1 = {21}> "
              "{ r0 = Slice(ref, s0, e0, axes) t0 = Sub(aux, r0) a0 = Abs(t0) "
              "r1 = Slice(ref, s1, e1, axes) t1 = Sub(aux, r1) a1 = Abs(t1) "
              "y = Concat<axis = 1>(a0, a1) }",
     .units = Units({{"InputView", 2}, {"ElementWise", 4}, {"Concat", 1}})},
    {.name = "stacked_along_the_height",
     .model = "(float[1,1,6,20] aux, float[1,1,6,21] ref) => (float[1,1,12,20] y) "
              "<int64[1] axes = {3}, int64[1] s0 = {0}, int64[1] e0 = {20}, "
              "int64[1] s1 = {1}, int64[1] e1 = {21}> "
              "{ r0 = Slice(ref, s0, e0, axes) t0 = Sub(aux, r0) a0 = Abs(t0) "
              "r1 = Slice(ref, s1, e1, axes) t1 = Sub(aux, r1) a1 = Abs(t1) "
              "y = Concat<axis = 2>(a0, a1) }",
     .units = Units({{"InputView", 2}, {"ElementWise", 4}, {"Concat", 1}})},
    {.name = "conversion_route",
     .model = CostModel(1, kWidth + 1, WiderRef()),
     .route = "mil",
     .units = Units({{"InputView", 2}, {"ElementWise", 4}, {"Concat", 1}})},
    {.name = "is_a_rewrite",
     .model = CostModel(1, kWidth + 1, WiderRef()),
     .rewrites = false,
     .units = Units({{"InputView", 2}, {"ElementWise", 4}, {"Concat", 1}})},
};

INSTANTIATE_TEST_SUITE_P(CostVolume, KernelTest, testing::ValuesIn(kCostVolumeCases), CaseName);

}  // namespace
}  // namespace anemone
