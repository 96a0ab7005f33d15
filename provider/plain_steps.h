// provider/plain_steps.h: single nodes that a plain part runs (plain_part.h): elements that are
// moved, and arithmetic: of positions and masks on integers and bools, and of what stays in double.
// The results are those of ONNX Runtime, bit for bit, except for functions and sums of doubles.
#ifndef ANEMONE_PROVIDER_PLAIN_STEPS_H_
#define ANEMONE_PROVIDER_PLAIN_STEPS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// What is known of a value before a run.
struct PlainValue {
  DataType type = DataType::kUndefined;
  std::optional<std::vector<int64_t>> dims;
  std::optional<Tensor> constant;
};

// One output of a node.
struct PlainStep {
  DataType type = DataType::kUndefined;
  std::optional<std::vector<int64_t>> dims;
  // Of inputs of the types and dims that the step was made for; null: an optional input that is
  // left out. kInvalidArgument: an index is outside its axis.
  std::function<absl::StatusOr<Tensor>(absl::Span<const Tensor* const>)> run;
};

// False if MakePlainStep() certainly returns nullopt.
bool MayBePlain(absl::string_view op_type);

// Makes this output of the node. Nullopt: ONNX Runtime must run the node. `label` names it in
// messages.
std::optional<PlainStep> MakePlainStep(const onnx::NodeProto& node, int output,
                                       const std::string& label,
                                       absl::Span<const PlainValue> inputs);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PLAIN_STEPS_H_
