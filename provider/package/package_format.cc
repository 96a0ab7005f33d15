#include "provider/package/package_format.h"

#include <memory>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/dims.h"
#include "kernels/integers.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace anemone::format {
namespace {

absl::Status CheckPort(const PackagedPort& port, const Dims& dims) {
  if (!IsEngineConstant(port.type) && !IsHeldInteger(port.type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "port '", port.name, "': a port of the engine cannot be ", DataTypeName(port.type)));
  }
  if (port.dims.size() <= kMaxRank && PlaceShape(port.dims) == dims) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("port '", port.name, "' is ", DimsToString(port.dims),
                   ", but the network's port is ", DimsToString(dims)));
}

}  // namespace

uint64_t Checksum(absl::Span<const absl::string_view> pieces) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  for (absl::string_view piece : pieces) {
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
  }
  return XXH3_64bits_digest(state.get());
}

absl::Status CheckPorts(const PackagedSegment& segment) {
  const Network& network = segment.network;
  if (segment.inputs.size() != network.inputs.size() ||
      segment.outputs.size() != network.outputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("want ", network.inputs.size(), " inputs and ",
                                                   network.outputs.size(),
                                                   " outputs, as the network has"));
  }
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    ANEMONE_RETURN_IF_ERROR(CheckPort(segment.inputs[i], network.inputs[i].dims));
  }
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    ANEMONE_RETURN_IF_ERROR(CheckPort(segment.outputs[i], network.DimsOf(network.outputs[i].from)));
  }
  return absl::OkStatus();
}

bool IsPackagedType(DataType type) { return IsEngineConstant(type) || type == DataType::kUInt16; }

}  // namespace anemone::format

namespace anemone {

const PackageExtension* FindExtension(const Package& package, absl::string_view name) {
  for (const PackageExtension& extension : package.extensions) {
    if (extension.name == name) return &extension;
  }
  return nullptr;
}

std::optional<Tensor> TakeExtension(Package& package, absl::string_view name) {
  const PackageExtension* const found = FindExtension(package, name);
  if (found == nullptr) return std::nullopt;
  Tensor bytes = found->bytes;
  package.extensions.erase(package.extensions.begin() + (found - package.extensions.data()));
  return bytes;
}

}  // namespace anemone
