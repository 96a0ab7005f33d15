// DynamicSlice: a part of a tensor whose place is computed at run time. Native from A14
// (conflicts.md C-dynslice-m1). Facts: validators.json DynamicSlice; hidden_layers.json
// DynamicSlice.
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "kernels/lowering.h"
#include "kernels/sampling.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct Slice {
  std::optional<Axis> axis;  // nullopt: a coordinate that is none, for the validator to refuse
  int64_t size = 1;
};

struct DynamicSliceParams {
  std::vector<Axis> order;
  std::vector<Slice> slices;
  AxisValues<Coordinates> coordinates;
  CoordinateMode mode = CoordinateMode::kNonNormalized;
  AxisValues<SamplePadding> padding;
  float background = 0;
};

struct AsSlices {
  static Json Write(const std::vector<Slice>& slices) {
    Json items = Json::array();
    for (const Slice& slice : slices) {
      items.push_back({{"Coordinate", slice.axis ? Json(AxisName(*slice.axis)) : Json("")},
                       {"SliceSize", slice.size}});
    }
    return items;
  }
  static absl::Status Read(const Json& from, std::vector<Slice>& slices) {
    slices.clear();
    if (!from.is_array()) return Unwanted(from);
    for (const Json& item : from) {
      if (!item.is_object() || item.size() != 2 || !item.contains("Coordinate") ||
          !item.contains("SliceSize")) {
        return Unwanted(item);
      }
      Slice& slice = slices.emplace_back();
      Axis axis;
      if (Plain::Read(item["Coordinate"], axis).ok()) slice.axis = axis;
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item["SliceSize"], slice.size));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Unwanted(const Json& from) {
    return absl::InvalidArgumentError(
        absl::StrCat("want an array of {Coordinate, SliceSize}, got ", from.dump()));
  }
};

absl::StatusOr<Dims> Shape(const DynamicSliceParams& p, Bottoms in) {
  Dims out = in[0].dims;
  for (const Slice& slice : p.slices) {
    if (!slice.axis || slice.size < 1) {
      return absl::InvalidArgumentError("DynamicSliceInfo: want an axis and a size of 1 or more");
    }
    out[*slice.axis] = slice.size;
  }
  return out;
}

Verdict Validate(const DynamicSliceParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  for (const Slice& slice : p.slices) {
    if (!slice.axis) return judge.Reject(rule::kDynamicSliceSize);
  }
  return judge.Accept();
}

Verdict Codegen(const DynamicSliceParams&, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  return judge.FamilyAtLeast(3) ? judge.Accept() : judge.Reject(rule::kDynamicSliceFamily);
}

constexpr Field<DynamicSliceParams> kFields[] = {
    Required<&DynamicSliceParams::order>("DynamicSliceAxisOrder"),
    Required<&DynamicSliceParams::slices, AsSlices>("DynamicSliceInfo"),
    Key<&DynamicSliceParams::coordinates, AsCoordinates>("CoordinateInfo"),
    Key<&DynamicSliceParams::mode>("CoordinateMode"),
    Key<&DynamicSliceParams::padding, PerAxis<kSamplePaddingKey>>("PaddingInfo"),
    Key<&DynamicSliceParams::background>("BackgroundValue"),
};

const UnitKindOf<DynamicSliceParams>& Kind() {
  static const UnitKindOf<DynamicSliceParams>& kind =
      *new UnitKindOf<DynamicSliceParams>({.type = "DynamicSlice",
                                           .bottoms = {2, 2},
                                           .shape = Shape,
                                           .validate = Validate,
                                           .codegen = Codegen,
                                           .fields = kFields});
  return kind;
}

}  // namespace

KernelRows DynamicSliceRows() { return {{&Kind()}, {}, {}}; }

}  // namespace anemone
