// importer/read/check.h: checks a node against the ONNX schema of its operator: the number of
// inputs and outputs, and that all attributes are known, of the right type and complete. Types and
// shapes are checked by inference.
#ifndef ANEMONE_IMPORTER_READ_CHECK_H_
#define ANEMONE_IMPORTER_READ_CHECK_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/graph.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// The newest opset of `domain` in the linked ONNX library; 0 if the library has no such domain.
int64_t NewestOpset(absl::string_view domain);

// The opset imports of a model or function, by domain ("" is ONNX's). kInvalidArgument: a version
// below 1, or newer than the library supports.
absl::StatusOr<std::map<std::string, int64_t>> ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

// The schema of an operator in an opset version, or null if that version does not have it.
const onnx::OpSchema* SchemaOf(absl::string_view domain, absl::string_view op_type, int version);

// Checks `node`, which messages call `label`. Returns whether the operator is known: it is not if
// the domain is not one of ONNX's, which is not an error. kInvalidArgument: an unknown or removed
// operator in a domain of ONNX, or a node that breaks its schema.
absl::StatusOr<bool> CheckNode(const Node& node, absl::string_view label);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_CHECK_H_
