// importer/read/check.h: a node against ONNX's schema of its operator: number of inputs and
// outputs, attributes known, of the right type, none missing. Types and shapes are inference's to
// check.
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

// The newest opset of `domain` that the ONNX library at hand knows; 0 for a domain it does not.
int64_t NewestOpset(absl::string_view domain);

// What a model or function imports, by domain ("" is ONNX's). kInvalidArgument: a version below 1,
// or newer than the library knows.
absl::StatusOr<std::map<std::string, int64_t>> ReadOpsets(
    const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports);

// The schema that a node of this operator and opset has; null if there is none (yet, or any more).
const onnx::OpSchema* SchemaOf(absl::string_view domain, absl::string_view op_type, int version);

enum class Known { kYes, kNo };

// Checks `node`, called `label` in messages. kNo: the domain is none of ONNX's, so nobody here
// knows the operator, which is no error. kInvalidArgument: an unknown or removed operator in a
// domain of ONNX, or a node that breaks its schema.
absl::StatusOr<Known> CheckNode(const Node& node, absl::string_view label);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_CHECK_H_
