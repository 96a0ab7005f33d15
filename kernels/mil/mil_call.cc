// Reads a MIL call from the JSON of a probe file (`anemone confirm --probe`).
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "kernels/mil.h"

namespace anemone {
namespace {

absl::StatusOr<MilTensor> ReadArgument(const Json& from) {
  MilTensor tensor;
  if (!from.is_object() || !from.contains("shape") || !from["shape"].is_array()) {
    return absl::InvalidArgumentError("inputs: want objects with name, shape and dtype");
  }
  for (const Json& extent : from["shape"]) {
    const bool is_free = extent.is_string() && extent.get<std::string>() == "?";
    if (!extent.is_number_integer() && !is_free) {
      return absl::InvalidArgumentError("inputs: want extents that are integers or \"?\"");
    }
    tensor.shape.push_back(is_free ? -1 : extent.get<int64_t>());
    if (!is_free && tensor.shape.back() < 0) {
      return absl::InvalidArgumentError("inputs: want extents of at least 0");
    }
  }
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "name", tensor.name));
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "dtype", tensor.dtype));
  std::string role, layout;
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "role", role));
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "layout", layout));
  if (!layout.empty() && layout != "NDCHW") {
    return absl::InvalidArgumentError("layout: want NDCHW, or leave it out");
  }
  tensor.in_engine_order = !layout.empty();
  if (!role.empty() && role != "const" && role != "input" && role != "state") {
    return absl::InvalidArgumentError("role: want input, const or state");
  }
  tensor.constant = role == "const";
  return tensor;
}

}  // namespace

absl::Status ReadMilCall(const Json& from, MilCall& call) {
  if (!from.is_object()) return absl::InvalidArgumentError("want an object");
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "op", call.op));
  if (call.op.empty()) return absl::InvalidArgumentError("want a key 'op'");
  if (auto inputs = from.find("inputs"); inputs != from.end()) {
    if (!inputs->is_array()) return absl::InvalidArgumentError("inputs: want an array");
    for (const Json& input : *inputs) {
      ANEMONE_ASSIGN_OR_RETURN(MilTensor tensor, ReadArgument(input));
      call.arguments.push_back(std::move(tensor));
    }
  }
  if (auto attributes = from.find("attrs"); attributes != from.end()) {
    if (!attributes->is_object()) return absl::InvalidArgumentError("attrs: want an object");
    call.attributes = *attributes;
  }
  return absl::OkStatus();
}

}  // namespace anemone
