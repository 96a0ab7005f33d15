// anemone/hazard.h: one place where a model exceeds what fp16 can represent, for the inputs of one
// run. Session::FindHazards() returns them; docs/hazards.md explains each kind.
//
//   auto hazards = session.FindHazards(inputs);
//   if (!hazards.ok()) return Fail(hazards.status());
//   for (const anemone::Hazard& h : *hazards) {
//     std::cout << h.node << " " << h.kind << ": " << h.message << "; " << h.remedy << "\n";
//   }
#ifndef ANEMONE_HAZARD_H_
#define ANEMONE_HAZARD_H_

#include <cstdint>
#include <optional>
#include <string>

namespace anemone {

struct Hazard {
  // "overflow", "port-saturation", "width-slice", "cancellation", "indeterminate", "nan-input",
  // "subnormal-flush", "underflow", "port-rounding" or "constant".
  std::string kind;
  bool first = false;  // the first hazard of its kind, in the order of the plan
  // The ONNX node: its id ("/#17"), name and operator; and the type of the engine's unit, empty for
  // a constant of the node. For a value that enters an engine segment, `name` is its name and the
  // others are empty.
  std::string node, name, op_type, unit;
  int segment = -1;      // number of the segment, as in the plan
  int64_t count = 0;     // affected elements of the result (or of the value that enters)
  int64_t elements = 0;  // all its elements
  // For the worst element: the absolute value of the result as if fp16 had no limits.
  std::optional<double> magnitude;
  // For the worst element: the largest finite |operand|; for a cancellation, the sum of |terms|.
  std::optional<double> operands;
  std::optional<double> limit;  // the threshold of this kind, if it is one number
  std::string message, remedy;
  std::string rule, source, status;  // id, source and status of the rule in numerics.json
};

}  // namespace anemone

#endif  // ANEMONE_HAZARD_H_
