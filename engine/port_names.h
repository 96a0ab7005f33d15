// engine/port_names.h: what a file of a network calls its ports.
#ifndef ANEMONE_ENGINE_PORT_NAMES_H_
#define ANEMONE_ENGINE_PORT_NAMES_H_

#include <string>
#include <vector>

namespace anemone {

// In the network's order.
struct PortNames {
  std::vector<std::string> inputs, outputs;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_PORT_NAMES_H_
