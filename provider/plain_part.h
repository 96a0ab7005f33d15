// provider/plain_part.h: a CPU segment that Anemone runs without ONNX Runtime: rows of constant
// tables, as of the embeddings of tokens, and casts of integers, as of masks. Most language models
// have no other, and a session takes more memory and time than all that they do.
//
//   std::unique_ptr<PlainPart> part = PlainPart::Of(model);  // null: a session must run it
//   ANEMONE_ASSIGN_OR_RETURN(std::vector<Tensor> results, part->Run(std::move(inputs)));
#ifndef ANEMONE_PROVIDER_PLAIN_PART_H_
#define ANEMONE_PROVIDER_PLAIN_PART_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "importer/graph.h"
#include "importer/write/to_onnx.h"

namespace anemone {

class PlainPart {
 public:
  // Null if a node does anything else. Keeps the constants alive.
  static std::unique_ptr<PlainPart> Of(const OnnxModel& model);
  // False if Of() certainly returns null for the model of these nodes.
  static bool MayBe(const Graph& graph, absl::Span<const NodeId> nodes);

  // `inputs` and the results are in the model's order, of its types and shapes. The results are
  // those of ONNX Runtime. kInvalidArgument: an index is outside its table. Thread-safe.
  absl::StatusOr<std::vector<Tensor>> Run(std::vector<Tensor> inputs) const;

 private:
  // Rows of `table`, or a cast to `type` if that is undefined.
  struct Step {
    std::string label;  // of messages
    size_t from = 0;    // the value that it reads; the value that it makes is the next
    Tensor table;
    DataType type = DataType::kUndefined;
  };
  class Reader;

  size_t inputs_ = 0;
  std::vector<Step> steps_;
  std::vector<size_t> outputs_;  // values: the inputs, then the results of the steps
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PLAIN_PART_H_
