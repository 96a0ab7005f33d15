// provider/plain_part.h: a CPU segment that Anemone runs without ONNX Runtime: elements that are
// moved, as rows of embeddings, the nodes at the edges of a graph, or arrays of more axes than the
// engine has, and arithmetic, as of positions, masks and what stays in double (plain_steps.h). Most
// language models have no other, and a session takes more memory and time than all that they do.
//
//   std::unique_ptr<PlainPart> part = PlainPart::Of(model);  // null: a session must run it
//   ANEMONE_ASSIGN_OR_RETURN(std::vector<Tensor> results, part->Run(std::move(inputs)));
#ifndef ANEMONE_PROVIDER_PLAIN_PART_H_
#define ANEMONE_PROVIDER_PLAIN_PART_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "importer/graph.h"
#include "importer/write/to_onnx.h"
#include "provider/plain_steps.h"

namespace anemone {

class PlainPart {
 public:
  // Null if a node does anything else. Keeps the constants alive.
  static std::unique_ptr<PlainPart> Of(const OnnxModel& model);
  // False if Of() certainly returns null for the model of these nodes.
  static bool MayBe(const Graph& graph, absl::Span<const NodeId> nodes);

  // The same with new elements of a constant that is not a part of the ONNX text (it has at least
  // 1024 bytes). Null: there is no such constant of this type and shape.
  std::shared_ptr<const PlainPart> WithConstant(absl::string_view name, const Tensor& tensor) const;

  // `inputs` and the results are in the model's order, of its types and shapes. The results are
  // those of ONNX Runtime (plain_steps.h). kInvalidArgument: an index is outside its axis.
  // Thread-safe.
  absl::StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> inputs) const;

 private:
  static constexpr size_t kLeftOut = ~size_t{0};
  struct Step {
    std::string label;         // of messages
    std::vector<size_t> from;  // values; kLeftOut: an optional input that is left out
    size_t to = 0;
    std::vector<size_t> last_read;  // values that no later step reads, and that are no outputs
    decltype(PlainStep::run) run;
  };
  class Reader;

  OnnxModel model_;
  // By value: constants, inputs and the results of the steps.
  std::vector<std::optional<Tensor>> known_;
  std::vector<size_t> inputs_;
  std::vector<Step> steps_;
  std::vector<size_t> outputs_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PLAIN_PART_H_
