// Resize: samples height and width on another grid. Targets from A14 on do it with the texture
// engine; resize_lowering.cc has the method for the other targets. Facts: validators.json Resize;
// enums.json ZinIrSamplingGridMode; compiler_texts.json netplist_keys Resize.
#include "kernels/resize/resize.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/shared/bounds.h"
#include "math/core/parallel.h"
#include "math/exact/exact_half.h"
#include "rule_table.h"  // generated

namespace anemone {

bool IsKnownGrid(SamplingGridMode grid) {
  return grid == SamplingGridMode::kDefault || grid == SamplingGridMode::kUnalignedCorners ||
         grid == SamplingGridMode::kStrictAlignedCorners;
}

absl::StatusOr<int64_t> Enlarged(int64_t extent, float factor) {
  const double enlarged = std::floor(static_cast<double>(extent) * factor);
  if (enlarged >= 1 && enlarged <= kTableBound) return static_cast<int64_t>(enlarged);
  return absl::InvalidArgumentError(
      absl::StrCat("resize: want a factor that gives an extent in 1..", kTableBound, ", got ",
                   factor, " for an extent of ", extent));
}

Positions OnGrid(SamplingGridMode grid, int64_t in, int64_t out) {
  Positions at(out);
  for (int64_t i = 0; i < out; ++i) {
    double x = static_cast<double>(i);
    switch (grid) {
      case SamplingGridMode::kDefault:
        at[i] = x * in / out;
        break;
      case SamplingGridMode::kUnalignedCorners:
        at[i] = (x + 0.5) * in / out - 0.5;
        break;
      default:  // kStrictAlignedCorners
        at[i] = out == 1 ? 0 : x * (in - 1) / (out - 1);
        break;
    }
    at[i] = std::clamp<double>(at[i], 0, in - 1);
  }
  return at;
}

std::vector<int32_t> Floors(const Positions& at) {
  std::vector<int32_t> floors;
  for (double x : at) floors.push_back(static_cast<int32_t>(x));
  return floors;
}

math::AxisTaps TapsOf(const Positions& at, int64_t in) {
  math::AxisTaps taps{.taps = 2};
  for (double x : at) {
    int32_t first = static_cast<int32_t>(x);
    float share = static_cast<float>(x - first);
    taps.indices.push_back(first);
    taps.indices.push_back(std::min<int32_t>(first + 1, in - 1));
    taps.weights.push_back(1 - share);
    taps.weights.push_back(share);
  }
  return taps;
}

void InterpolateExactly(const math::Numerics& n, const math::ResizeShape& shape,
                        const math::AxisTaps& rows, const math::AxisTaps& columns,
                        absl::Span<const math::Half> x, absl::Span<math::Half> y) {
  const auto share = [&](const math::AxisTaps& taps, int64_t i) {
    const float weight = taps.weights[i];
    return n.ew_texture == math::EwTexture::kFp16Weights ? math::RoundToHalf(weight) : weight;
  };
  const int64_t h = rows.size(), w = columns.size();
  math::ParallelForItems(shape.planes * h * w, 8, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      const int64_t plane = at / (h * w), i = at / w % h * 2, j = at % w * 2;
      const math::Half* from = x.data() + plane * shape.in_h * shape.in_w;
      double sum = 0;
      for (int64_t row = i; row < i + 2; ++row) {
        for (int64_t column = j; column < j + 2; ++column) {
          const double product =
              share(rows, row) * static_cast<double>(share(columns, column)) *
              math::ToDouble(from[rows.indices[row] * shape.in_w + columns.indices[column]]);
          if (!std::isnan(product)) sum += product;  // 0 times infinity is 0
        }
      }
      y[at] = math::Stored(sum, n);
    }
  });
}

namespace {

absl::StatusOr<Dims> Shape(const ResizeParams& p, Bottoms in) {
  Dims out = in[0].dims;
  out[Axis::kH] = p.h;
  out[Axis::kW] = p.w;
  return out;
}

Verdict Validate(const ResizeParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (p.has_both) return judge.Reject(rule::kResizeSizeOrFactor);
  if (p.other_axes) return judge.Reject(rule::kResizeAxes);
  if (!judge.Has(Cap::kTextureEngine)) return judge.Reject(rule::kResizeTexture);
  return judge.Accept();
}

// A key with one item for each coordinate, [{Coordinate, `kKey`}]. All items must have the same
// value, because ResizeParams has one value for height and width.
template <auto kMember, const char* kKey>
constexpr Field<ResizeParams> InfoKey(const char* key) {
  return {
      key,
      [](const ResizeParams& p) -> Json {
        Json info = Json::array();
        for (Axis axis : {Axis::kH, Axis::kW}) {
          info.push_back({{"Coordinate", AxisName(axis)}, {kKey, Plain::Write(p.*kMember)}});
        }
        return info;
      },
      [](ResizeParams& p, const Json& from) -> absl::Status {
        if (!from.is_array() || from.empty()) {
          return absl::InvalidArgumentError(absl::StrCat("want [{Coordinate, ", kKey, "}]"));
        }
        for (size_t i = 0; i < from.size(); ++i) {
          auto one = p.*kMember;
          Axis axis = Axis::kW;
          if (!from[i].is_object() || !from[i].contains(kKey) || !from[i].contains("Coordinate")) {
            return absl::InvalidArgumentError(absl::StrCat("want [{Coordinate, ", kKey, "}]"));
          }
          ANEMONE_RETURN_IF_ERROR(Plain::Read(from[i].at("Coordinate"), axis));
          p.other_axes = p.other_axes || (axis != Axis::kH && axis != Axis::kW);
          ANEMONE_RETURN_IF_ERROR(Plain::Read(from[i].at(kKey), one));
          if (i > 0 && one != p.*kMember) {
            return absl::InvalidArgumentError("want the same value for all coordinates");
          }
          p.*kMember = one;
        }
        return absl::OkStatus();
      }};
}

constexpr Field<ResizeParams> kFields[] = {
    Key<&ResizeParams::h>("OutputHeight"),
    Key<&ResizeParams::w>("OutputWidth"),
    Alias<&ResizeParams::scale_w>("ScaleFactorX"),
    Alias<&ResizeParams::scale_h>("ScaleFactorY"),
    InfoKey<&ResizeParams::method, kSamplingMethodKey>("SamplingMethodInfo"),
    InfoKey<&ResizeParams::grid, kSamplingGridModeKey>("SamplingGridInfo"),
};

absl::Status Complete(ResizeParams& p, Bottoms in, absl::Span<const Tensor>) {
  p.has_both = (p.h != 0 || p.w != 0) && (p.scale_h != 0 || p.scale_w != 0);
  const Dims& x = in[0].dims;
  for (auto [size, factor, extent] :
       {std::tuple(&p.h, &p.scale_h, x.h()), std::tuple(&p.w, &p.scale_w, x.w())}) {
    if (*size == 0 && *factor != 0) {
      ANEMONE_ASSIGN_OR_RETURN(*size, Enlarged(extent, *factor));
    }
    *factor = 0;
    if (*size < 1 || *size > kTableBound || extent > kTableBound) {
      return absl::InvalidArgumentError(
          absl::StrCat("OutputHeight, OutputWidth: want 1..", kTableBound));
    }
  }
  return absl::OkStatus();
}

struct Tables {
  std::vector<int32_t> rows, columns;    // for nearest
  math::AxisTaps row_taps, column_taps;  // for linear
};

absl::StatusOr<Prepared> Prepare(const ResizeParams& p, Bottoms in, absl::Span<const Tensor>) {
  if (!IsKnownGrid(p.grid)) {
    return absl::UnimplementedError(
        "Resize: the sampling positions of this grid are not published, so it cannot be executed");
  }
  const Dims& x = in[0].dims;
  Positions rows = OnGrid(p.grid, x.h(), p.h), columns = OnGrid(p.grid, x.w(), p.w);
  auto tables = std::make_shared<Tables>();
  if (p.method == SamplingMethod::kNearestNeighbor) {
    tables->rows = Floors(rows);
    tables->columns = Floors(columns);
  } else {
    tables->row_taps = TapsOf(rows, x.h());
    tables->column_taps = TapsOf(columns, x.w());
  }
  return tables;
}

math::ResizeShape PlanesOf(const Dims& x) {
  return {.planes = x.n() * x.d() * x.c(), .in_h = x.h(), .in_w = x.w()};
}

void Compute(const ResizeParams& p, const void* prepared, absl::Span<const ConstView> in,
             View out) {
  const Tables& tables = *static_cast<const Tables*>(prepared);
  math::ResizeShape shape = PlanesOf(in[0].dims);
  if (p.method == SamplingMethod::kNearestNeighbor) {
    math::ResizeNearest(shape, tables.rows, tables.columns, in[0].span(), out.span());
  } else {
    math::ResizeLinear(shape, tables.row_taps, tables.column_taps, in[0].span(), out.span());
  }
}

// Nearest copies elements.
void Exact(const ResizeParams& p, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  if (p.method == SamplingMethod::kNearestNeighbor) return Compute(p, unit.prepared, in, out);
  const Tables& tables = *static_cast<const Tables*>(unit.prepared);
  InterpolateExactly(unit.numerics, PlanesOf(in[0].dims), tables.row_taps, tables.column_taps,
                     in[0].span(), out.span());
}

absl::Status WriteMil(const ResizeParams& p, const Unit& unit, MilEmitter& e) {
  const auto* known = std::find_if(std::begin(kMilGrids), std::end(kMilGrids),
                                   [&](const auto& row) { return row.second == p.grid; });
  if (known == std::end(kMilGrids)) {
    return absl::UnimplementedError("MIL has no name for this sampling grid");
  }
  std::vector<MilArgument> arguments = {{"x", {e.In(0)}},
                                        {"sampling_mode", {e.Text(known->first)}}};
  if (p.method == SamplingMethod::kLinear) {
    arguments.push_back({"target_size_height", {e.Int(p.h)}});
    arguments.push_back({"target_size_width", {e.Int(p.w)}});
    e.Result(e.Emit("resize_bilinear", std::move(arguments), unit.dims));
  } else {  // resize_nearest_neighbor has no argument for the grid
    arguments.push_back({"shape", {e.Ints({p.h, p.w})}});
    arguments.push_back({"resized_dims", {e.Int(2)}});
    arguments.push_back({"interpolation_mode", {e.Text("NEAREST_NEIGHBOR")}});
    e.Result(e.Emit("resize", std::move(arguments), unit.dims));
  }
  return absl::OkStatus();
}

const UnitKindOf<ResizeParams>& Kind() {
  static const UnitKindOf<ResizeParams> kind({
      .type = "Resize",
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .complete = Complete, .mil = WriteMil},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

}  // namespace

const UnitKindOf<ResizeParams>& ResizeUnit() { return Kind(); }

}  // namespace anemone
