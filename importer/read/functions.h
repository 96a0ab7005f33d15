// importer/read/functions.h: looks up model-local functions, and limits how far calls of them may
// expand.
#ifndef ANEMONE_IMPORTER_READ_FUNCTIONS_H_
#define ANEMONE_IMPORTER_READ_FUNCTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// "" for "ai.onnx", else `domain`.
absl::string_view DomainOf(absl::string_view domain);

class Functions {
 public:
  Functions() = default;

  // kInvalidArgument: a function without a name, or two of the same name.
  static absl::StatusOr<Functions> Make(const onnx::ModelProto& model);

  // The function that `node` calls, or null if it is not a call.
  const onnx::FunctionProto* Find(const onnx::NodeProto& node) const;

  // Counts a call of `function` that is not itself inside a function, before it is expanded.
  // Errors: kInvalidArgument (the function calls itself), kResourceExhausted (beyond
  // ModelLimit::kCallNesting, or all calls together beyond kFunctionNodes).
  absl::Status Charge(const onnx::FunctionProto& function);

 private:
  struct Cost {
    int64_t nodes = 0;  // after expansion, plus one for each call
    int depth = 0;      // of nested calls
  };
  // The chain of functions from a call down to the function at hand.
  using Path = std::vector<const onnx::FunctionProto*>;

  absl::StatusOr<Cost> CostOf(const onnx::FunctionProto& function, Path& path);
  absl::Status AddCost(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, Path& path,
                       Cost& cost);

  absl::flat_hash_map<std::string, const onnx::FunctionProto*> by_key_;
  absl::flat_hash_map<const onnx::FunctionProto*, Cost> costs_;
  int64_t expanded_ = 0;
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_FUNCTIONS_H_
