// RingBufferWriter: writes a tensor into a live state at an offset. Also MIL's operations on
// states. The code generator of the M1 refuses all state (conflicts.md C-native-state). Facts:
// validators.json RingBufferWriter; compiler_texts.json for the keys. Whether the second bottom is
// a live-state buffer is not checked, because ports do not have this information.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "kernels/mil.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct RingAxis {
  Axis axis = Axis::kW;
  Json offset = 0;  // an integer, or the name of a symbol
  bool circular = false;
};

struct RingBufferWriterParams {
  std::vector<RingAxis> axes;
  bool circular = false;  // set for the whole unit

  bool IsCircular() const {
    return circular || std::any_of(axes.begin(), axes.end(),
                                   [](const RingAxis& axis) { return axis.circular; });
  }
};

struct AsRingAxes {
  static Json Write(const std::vector<RingAxis>& axes) {
    if (axes.empty()) return nullptr;
    Json items = Json::array();
    for (const RingAxis& axis : axes) {
      Json item = {{"Dimension", AxisName(axis.axis)}, {"Offset", axis.offset}};
      if (axis.circular) item["Circular"] = true;
      items.push_back(std::move(item));
    }
    return items;
  }
  static absl::Status Read(const Json& from, std::vector<RingAxis>& axes) {
    axes.clear();
    if (!from.is_array()) return NoSuchArray(from);
    for (const Json& item : from) {
      if (!item.is_object() || !item.contains("Dimension") || !item.contains("Offset") ||
          item.size() != (item.contains("Circular") ? 3 : 2) ||
          !(item["Offset"].is_number_integer() || item["Offset"].is_string())) {
        return NoSuchArray(item);
      }
      RingAxis& axis = axes.emplace_back();
      axis.offset = item["Offset"];
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item["Dimension"], axis.axis));
      if (item.contains("Circular")) {
        ANEMONE_RETURN_IF_ERROR(Plain::Read(item["Circular"], axis.circular));
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status NoSuchArray(const Json& from) {
    return Unwanted("an array of {Dimension, Offset, Circular}", from);
  }
};

// The result has the dims of the state.
absl::StatusOr<Dims> Shape(const RingBufferWriterParams&, Bottoms in) { return in[1].dims; }

// It is not published which later targets have circular buffers.
Verdict Validate(const RingBufferWriterParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (!p.IsCircular()) return judge.Accept();
  Verdict verdict = judge.Requires(rule::kRingBufferCircular);
  if (verdict.accepted) verdict.status = Status::kUnknown;
  return verdict;
}

Verdict Codegen(const RingBufferWriterParams&, Bottoms, const Target& target, Route route) {
  return Judge(target, route).Requires(rule::kLiveState);
}

constexpr Field<RingBufferWriterParams> kFields[] = {
    Key<&RingBufferWriterParams::axes, AsRingAxes>("RingBufferWriterInfo"),
    Alias<&RingBufferWriterParams::circular>("circular"),
};

const UnitKindOf<RingBufferWriterParams>& Kind() {
  static const UnitKindOf<RingBufferWriterParams> kind({
      .type = "RingBufferWriter",
      .bottoms = {2, 2},
      .judge = {.shape = Shape, .validate = Validate, .codegen = Codegen},
      .spell = {.fields = kFields},
  });
  return kind;
}

// read_state returns the state, write_state the value that it writes.
absl::Status BuildState(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(c.Requires(rule::kLiveState));
  const size_t value = c.call().op == "read_state" ? 0 : 1;
  c.In(0);
  Operand y = c.In(value);
  return c.Out(y, c.ShapeOf(value));
}

constexpr MilOperation kOperations[] = {{"read_state", BuildState}, {"write_state", BuildState}};

}  // namespace

KernelRows RingBufferWriterRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
