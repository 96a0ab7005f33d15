// provider/coreml/port_options.h: what the user wants of a package's ports: images instead of
// arrays, and values that Core ML keeps between predictions (MLState).
//
//   ANEMONE_ASSIGN_OR_RETURN(PortWishes wishes, ReadPortWishes({"x:scale=0.5"}, {"past=present"}));
//   wishes.images.at("x").scale;   // 0.5
#ifndef ANEMONE_PROVIDER_COREML_PORT_OPTIONS_H_
#define ANEMONE_PROVIDER_COREML_PORT_OPTIONS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace anemone {

// The model reads scale * pixel + bias; pixels are from 0 to 255.
struct ImageWish {
  double scale = 1;
  std::vector<double> bias = {0};  // one, or one for each channel
};

struct PortWishes {
  std::map<std::string, ImageWish> images;    // by input
  std::map<std::string, std::string> states;  // input -> the output that becomes its next value
};

// `images`: "NAME", or "NAME:scale=S,bias=B" (also "bias=R/G/B"). `states`: "PAST=PRESENT".
// UsageError: not in this form, a name is given twice, an input is both, or a number is not finite,
// a scale of 0, or so large that fp16 does not hold the pixels.
absl::StatusOr<PortWishes> ReadPortWishes(const std::vector<std::string>& images,
                                          const std::vector<std::string>& states);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_PORT_OPTIONS_H_
