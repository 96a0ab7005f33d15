#include "engine/apple/live_ports.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_limit_table.h"  // generated
#include "engine/formats/netplist_keys.h"

namespace anemone::apple {
namespace {

// No real surface is larger.
constexpr int64_t kLargestSurface = int64_t{1} << 40;

absl::Status Other(const char* side, const std::string& name, const std::string& what) {
  return absl::InternalError(absl::StrCat("device: ", side, " '", name, "': ", what,
                                          "; report it with `anemone doctor --self-test`"));
}

Dims DimsOf(const LivePort& live) {
  Dims dims = MakeDims(live.batches, live.channels, live.height, live.width);
  dims[Axis::kD] = live.depth;
  return dims;
}

// That each stride spans what is inside of it, from the innermost axis out.
bool AreStridesSound(const LivePort& live, int64_t element) {
  const int64_t extents[] = {live.width, live.height, live.channels, live.depth, live.batches};
  const int64_t strides[] = {element, live.row_stride, live.plane_stride, live.depth_stride,
                             live.batch_stride};
  int64_t inside = element;
  for (size_t i = 0; i < std::size(extents); ++i) {
    if (strides[i] < inside || strides[i] > kLargestSurface) return false;
    if (extents[i] > kLargestSurface / strides[i]) return false;
    inside = strides[i] * extents[i];
  }
  return true;
}

absl::StatusOr<BoundPort> Bind(const char* side, const LivePort& live,
                               absl::Span<const ProgramPort> ports,
                               absl::Span<const std::string> names) {
  BoundPort bound;
  bound.port = static_cast<int>(std::find(names.begin(), names.end(), live.symbol) - names.begin());
  if (bound.port == static_cast<int>(names.size())) {
    return Other(side, live.symbol, "the compiled network has no such port");
  }
  const SurfaceLayout& layout = ports[bound.port].layout;
  if (DimsOf(live) != layout.dims) {
    return Other(side, live.symbol,
                 absl::StrCat("the device lists ", DimsToString(DimsOf(live)),
                              ", but it was compiled as ", DimsToString(layout.dims)));
  }
  const char* type = kFormatNames[static_cast<size_t>(layout.format)];
  if (live.type != type) {
    return Other(
        side, live.symbol,
        absl::StrCat("the device lists the type '", live.type, "', but it was compiled as ", type));
  }
  if (!AreStridesSound(live, BytesOf(layout.format))) {
    return Other(side, live.symbol, "the device lists strides by which rows overlap");
  }
  bound.layout = {MathLayout(layout).element,
                  {live.batch_stride, live.depth_stride, live.plane_stride, live.row_stride,
                   BytesOf(layout.format)}};
  return bound;
}

}  // namespace

absl::StatusOr<BoundPorts> BindPorts(const char* side, absl::Span<const LivePort> live,
                                     absl::Span<const ProgramPort> ports,
                                     absl::Span<const std::string> names) {
  BoundPorts bound{.surface_bytes = device_limit::kSurfaceFloor.value};
  std::vector<bool> seen(ports.size());
  for (const LivePort& port : live) {
    ANEMONE_ASSIGN_OR_RETURN(const BoundPort found, Bind(side, port, ports, names));
    if (seen[found.port]) return Other(side, port.symbol, "the device lists it twice");
    seen[found.port] = true;
    bound.surface_bytes = std::max(bound.surface_bytes, port.batch_stride * port.batches);
    bound.ports.push_back(found);
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    if (!seen[i]) return Other(side, names[i], "the device does not list it");
  }
  return bound;
}

}  // namespace anemone::apple
