// Operators that move, repeat, select or resample elements.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tests/fuzz/maker.h"

namespace anemone::fuzz {
namespace {

Dims Shuffled(Maker& m, int rank) {
  Dims order(rank);
  std::iota(order.begin(), order.end(), 0);
  for (int i = rank; i > 1; --i) std::swap(order[i - 1], order[m.random.Below(i)]);
  return order;
}

void MakeTranspose(Maker& m) {
  const std::string x = m.OfRank(0, 6);
  m.Emit("Transpose", {x},
         m.random.Chance(10) ? Attributes() : Attributes().Ints("perm", Shuffled(m, m.RankOf(x))));
}

// Distributes the prime factors of the element count to new axes; sometimes only merges two
// neighboring axes.
void MakeReshape(Maker& m) {
  const std::string x = m.Any();
  Dims to = m.DimsOf(x);
  if (m.random.Chance(50) && to.size() > 1) {
    const int64_t at = m.random.Below(static_cast<int64_t>(to.size()) - 1);
    to[at] *= to[at + 1];
    to.erase(to.begin() + at + 1);
  } else if (Count(to) > 0) {
    int64_t left = Count(to);
    to.assign(m.random.Between(1, 5), 1);
    for (int64_t factor = 2; left > 1; ++factor) {
      for (; left % factor == 0; left /= factor) to[m.random.Below(to.size())] *= factor;
    }
  }
  const int64_t at = m.random.Below(static_cast<int64_t>(to.size()));
  if (!to.empty() && m.random.Chance(40)) {
    to[at] = m.random.Chance(70) || at >= m.RankOf(x) || to[at] != m.DimsOf(x)[at] ? -1 : 0;
  }
  m.Emit("Reshape", {x, m.Ints(to)});
}

void MakeFlatten(Maker& m) {
  const std::string x = m.Any();
  m.Emit("Flatten", {x}, Attributes().Int("axis", m.random.Between(-m.RankOf(x), m.RankOf(x))));
}

void MakeSqueeze(Maker& m) {
  const std::string x = m.Any();
  const int rank = m.RankOf(x);
  if (m.random.Chance(50)) {
    Dims axes;
    for (int i = 0; i < rank; ++i) {
      if (m.DimsOf(x)[i] == 1) axes.push_back(m.random.Chance(30) ? i - rank : i);
    }
    axes.empty() || m.random.Chance(20) ? m.Emit("Squeeze", {x})
                                        : m.Emit("Squeeze", {x, m.Ints(axes)});
    return;
  }
  m.Emit("Unsqueeze", {x, m.Ints({m.random.Between(-rank - 1, rank)})});
}

void MakeConcat(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  const int rank = m.RankOf(x);
  const int64_t axis = m.Axis(rank);
  std::vector<std::string> inputs = {x};
  for (int64_t i = m.random.Below(3); i >= 0; --i) {
    Dims dims = m.DimsOf(x);
    if (m.random.Chance(60)) dims[(axis + rank) % rank] = m.random.Between(1, 7);
    inputs.push_back(m.Of(dims, 20));
  }
  std::swap(inputs[0], inputs[m.random.Below(inputs.size())]);
  m.Emit("Concat", inputs, Attributes().Int("axis", axis));
}

void MakeSplit(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  const int rank = m.RankOf(x);
  const int64_t axis = m.Axis(rank);
  const int64_t dim = m.DimsOf(x)[(axis + rank) % rank];
  if (dim < 2) return;
  const int64_t first = m.random.Between(1, dim - 1);
  if (m.random.Chance(60)) {
    m.Emit("Split", {x, m.Ints({first, dim - first})}, Attributes().Int("axis", axis), 2);
  } else if (m.opset() >= 18) {
    m.Emit("Split", {x}, Attributes().Int("axis", axis).Int("num_outputs", 2), 2);
  } else {
    m.Emit("Split", {x}, Attributes().Int("axis", axis), 2);
  }
}

void MakeSlice(Maker& m) {
  const std::string x = m.OfRank(1, 6);
  const int rank = m.RankOf(x);
  Dims starts, ends, axes, steps;
  for (int axis = 0; axis < rank; ++axis) {
    if (m.random.Chance(55)) continue;
    const int64_t dim = m.DimsOf(x)[axis];
    int64_t low = m.random.Below(dim), high = m.random.Between(low, dim);
    int64_t step = m.random.Pick({1, 1, 1, 1, 2, 3, -1, -2});
    if (m.random.Chance(25)) high = std::numeric_limits<int32_t>::max();
    if (step < 0) {
      low = m.random.Chance(50) ? -1 : low;
      high = m.random.Chance(70) ? std::numeric_limits<int32_t>::min() : 0;
    } else if (m.random.Chance(20)) {
      low -= dim;
    }
    starts.push_back(low);
    ends.push_back(high);
    axes.push_back(m.random.Chance(30) ? axis - rank : axis);
    steps.push_back(step);
  }
  if (!axes.empty())
    m.Emit("Slice", {x, m.Ints(starts), m.Ints(ends), m.Ints(axes), m.Ints(steps)});
}

Dims RandomIndices(Maker& m, int64_t count, int64_t below, bool negative) {
  Dims indices;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = m.random.Below(below);
    indices.push_back(negative && m.random.Chance(15) ? index - below : index);
  }
  return indices;
}

void MakeGather(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  const int rank = m.RankOf(x);
  const int64_t axis = m.Axis(rank);
  const int64_t dim = m.DimsOf(x)[(axis + rank) % rank];
  if (dim == 0) return;
  const Dims dims = m.RandomDims(0, 2);
  if (Count(dims) > 40) return;
  const std::string indices =
      m.IntsOf(dims, RandomIndices(m, Count(dims), dim, true), m.random.Chance(75));
  m.Emit("Gather", {x, indices}, Attributes().Int("axis", axis));
}

void MakeGatherElements(Maker& m) {
  const std::string x = m.OfRank(1, 4);
  const int rank = m.RankOf(x);
  const int64_t axis = m.random.Below(rank);
  Dims dims = m.DimsOf(x);
  if (Count(dims) == 0) return;
  const int64_t dim = dims[axis];
  dims[axis] = m.random.Between(1, 5);
  m.Emit("GatherElements",
         {x, m.IntsOf(dims, RandomIndices(m, Count(dims), dim, true), m.random.Chance(60))},
         Attributes().Int("axis", axis));
}

void MakeTile(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  Dims repeats(m.RankOf(x));
  for (int64_t& repeat : repeats) repeat = m.random.Pick({1, 1, 1, 2, 3});
  m.Emit("Tile", {x, m.Ints(repeats)});
}

void MakeExpand(Maker& m) {
  Dims dims = m.RandomDims(1, 5);
  Dims from = dims;
  for (int64_t& dim : from) {
    if (m.random.Chance(50)) dim = 1;
  }
  if (m.random.Chance(30)) from.erase(from.begin());
  m.Emit("Expand", {m.Of(from, 10), m.Ints(dims)});
}

void MakePad(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  const int rank = m.RankOf(x);
  const char* mode = m.random.Pick({"constant", "constant", "reflect", "edge", "wrap"});
  if (std::string(mode) == "wrap" && m.opset() < 19) return;
  Dims pads(2 * rank, 0);
  for (int i = 0; i < 2 * rank; ++i) {
    if (m.random.Chance(40)) continue;
    pads[i] = m.random.Between(m.random.Chance(15) ? -1 : 0, 3);
  }
  std::vector<std::string> inputs = {x, m.Ints(pads)};
  if (m.random.Chance(50)) inputs.push_back(m.Scalar(m.random.Uniform(-2, 2)));
  m.Emit("Pad", inputs, Attributes().Text("mode", mode));
}

void MakeDepthToSpace(Maker& m) {
  const int64_t block = m.random.Pick({2, 2, 3, 4});
  if (m.random.Chance(50)) {
    const Dims dims = {m.random.Between(1, 2), block * block * m.random.Between(1, 5),
                       m.random.Between(1, 6), m.random.Between(1, 7)};
    m.Emit("DepthToSpace", {m.Of(dims, 5)},
           Attributes().Int("blocksize", block).Text("mode", m.random.Pick({"DCR", "CRD"})));
  } else {
    const Dims dims = {m.random.Between(1, 2), m.random.Between(1, 7),
                       block * m.random.Between(1, 4), block * m.random.Between(1, 4)};
    m.Emit("SpaceToDepth", {m.Of(dims, 5)}, Attributes().Int("blocksize", block));
  }
}

void MakeResize(Maker& m) {
  const std::string x = m.OfRank(4, 4);
  const char* mode = m.random.Pick({"nearest", "linear", "linear", "cubic"});
  Attributes attributes =
      Attributes()
          .Text("mode", mode)
          .Text("coordinate_transformation_mode",
                m.random.Pick({"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"}));
  if (std::string(mode) == "nearest") {
    attributes =
        std::move(attributes)
            .Text("nearest_mode",
                  m.random.Pick({"round_prefer_floor", "floor", "ceil", "round_prefer_ceil"}));
  }
  if (m.random.Chance(50)) {
    Dims sizes = m.DimsOf(x);
    sizes[2] = m.random.Chance(50) ? sizes[2] * 2 : m.random.Between(1, 20);
    sizes[3] = m.random.Chance(50) ? sizes[3] * 2 : m.random.Between(1, 20);
    m.Emit("Resize", {x, "", "", m.Ints(sizes)}, attributes);
  } else {
    const float scale = m.random.Pick({2.f, 2.f, 3.f, 1.5f, 0.5f, 4.f, 0.75f});
    m.Emit("Resize", {x, "", m.Floats({1, 1, scale, m.random.Chance(80) ? scale : 2.f})},
           attributes);
  }
}

void MakeOneHot(Maker& m) {
  const int64_t depth = m.random.Between(1, 9);
  const Dims dims = m.RandomDims(1, 3);
  if (Count(dims) > 60) return;
  const std::string indices =
      m.IntsOf(dims, RandomIndices(m, Count(dims), depth, true), m.random.Chance(20));
  m.Emit("OneHot", {indices, m.Ints({depth}), m.Floats({m.random.Uniform(-1, 0), 1})},
         Attributes().Int("axis", m.Axis(static_cast<int>(dims.size()) + 1)));
}

void MakeCumSum(Maker& m) {
  const std::string x = m.OfRank(1, 4);
  m.Emit("CumSum", {x, m.IntsOf({}, Dims{m.Axis(m.RankOf(x))}, true)},
         Attributes().Int("exclusive", m.random.Below(2)).Int("reverse", m.random.Below(2)));
}

void MakeTrilu(Maker& m) {
  m.Emit("Trilu", {m.OfRank(2, 4), m.IntsOf({}, Dims{m.random.Between(-2, 2)}, true)},
         Attributes().Int("upper", m.random.Below(2)));
}

// A shape that is used as a value: Reshape(y, Shape(x)).
void MakeShapeOf(Maker& m) {
  const std::string x = m.OfRank(1, 5);
  const auto shape = m.Emit("Shape", {x});
  if (shape.empty()) return;
  m.random.Chance(50) ? m.Emit("Expand", {m.Scalar(m.random.Uniform(-1, 1)), shape[0]})
                      : m.Emit("ConstantOfShape", {shape[0]});
}

void MakeNonZero(Maker& m) {
  const auto found = m.Emit("NonZero", {m.OfRank(1, 3)});
  if (!found.empty()) m.Emit("Cast", {found[0]}, Attributes().Int("to", 1));
}

void MakeDropout(Maker& m) { m.Emit("Dropout", {m.Any(), m.Scalar(0.4f)}); }

constexpr OperatorRow kMovesRows[] = {
    {"Transpose", MakeTranspose, 8},
    {"Reshape", MakeReshape, 8},
    {"Flatten", MakeFlatten, 2},
    {"Squeeze", MakeSqueeze},
    {"Concat", MakeConcat, 6},
    {"Split", MakeSplit},
    {"Slice", MakeSlice, 6},
    {"Gather", MakeGather},
    {"GatherElements", MakeGatherElements, 2},
    {"Tile", MakeTile},
    {"Expand", MakeExpand},
    {"Pad", MakePad, 6},
    {"DepthToSpace", MakeDepthToSpace},
    {"Resize", MakeResize, 6},
    {"OneHot", MakeOneHot, 2},
    {"CumSum", MakeCumSum, 2},
    {"Trilu", MakeTrilu, 1, 14},
    {"Shape", MakeShapeOf, 2},
    {"NonZero", MakeNonZero, 1},
    {"Dropout", MakeDropout, 1},
};

}  // namespace

absl::Span<const OperatorRow> MoveRows() { return kMovesRows; }

}  // namespace anemone::fuzz
