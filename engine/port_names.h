// engine/port_names.h: the names of a network's ports in a file that was written from it. They may
// differ from the network's own names.
#ifndef ANEMONE_ENGINE_PORT_NAMES_H_
#define ANEMONE_ENGINE_PORT_NAMES_H_

#include <string>
#include <vector>

namespace anemone {

// In the order of the network's ports.
struct PortNames {
  std::vector<std::string> inputs, outputs;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_PORT_NAMES_H_
