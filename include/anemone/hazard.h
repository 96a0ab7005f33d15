// anemone/hazard.h: a place where a model leaves the fp16 envelope for the inputs of one run
// (Session::FindHazards; docs/hazards.md says what each kind is).
#ifndef ANEMONE_HAZARD_H_
#define ANEMONE_HAZARD_H_

#include <cstdint>
#include <optional>
#include <string>

namespace anemone {

struct Hazard {
  // "overflow", "port-saturation", "width-slice", "cancellation", "indeterminate", "nan-input" or
  // "subnormal-flush".
  std::string kind;
  bool first = false;  // of its kind, in the order of the plan
  // The ONNX node ("/#17", its name and operator), and the unit's type. At a port: the value as
  // `name`, and the rest empty.
  std::string node, name, op_type, unit;
  int segment = -1;
  int64_t count = 0, elements = 0;  // so many of so many elements
  // Of the worst element: the result without fp16's limits, where it is known; the largest finite
  // operand, or of a cancellation the sum of |terms|.
  std::optional<double> magnitude, operands;
  std::optional<double> limit;  // what the kind is measured by, if it has a number
  std::string message, remedy;
  std::string rule, source, status;  // the row of numerics.json it rests on
};

}  // namespace anemone

#endif  // ANEMONE_HAZARD_H_
