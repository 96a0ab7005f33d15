// engine/apple/live_ports.h: the ports of a loaded model as the framework lists them, matched with
// the ports of the network.
#ifndef ANEMONE_ENGINE_APPLE_LIVE_PORTS_H_
#define ANEMONE_ENGINE_APPLE_LIVE_PORTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/apple/driver.h"
#include "engine/device.h"
#include "math/move/convert.h"

namespace anemone::apple {

// A port of the framework, in its order.
struct BoundPort {
  int port = -1;        // of the program
  math::Layout layout;  // on the surface
};

struct BoundPorts {
  std::vector<BoundPort> ports;
  int64_t surface_bytes = 0;  // of each surface: all have the same size
};

// Finds the port of the program for each live port, by its name. `names` are the names that the
// ports have in the compiled text. kInternal, naming the port, if the framework lists other ports,
// extents or types than were compiled, or strides by which rows overlap.
absl::StatusOr<BoundPorts> BindPorts(const char* side, absl::Span<const LivePort> live,
                                     absl::Span<const ProgramPort> ports,
                                     absl::Span<const std::string> names);

}  // namespace anemone::apple

#endif  // ANEMONE_ENGINE_APPLE_LIVE_PORTS_H_
