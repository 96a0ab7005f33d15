// importer/read/reader.h: from a skeleton to a Model whose nodes still have the file's opsets:
// names resolved, tensors mapped, the model's own functions inlined, checked, in an order that can
// be run. Shapes are those the file declares.
#ifndef ANEMONE_IMPORTER_READ_READER_H_
#define ANEMONE_IMPORTER_READ_READER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "importer/edit.h"
#include "importer/graph.h"
#include "importer/read/external_data.h"
#include "importer/read/skeleton.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// Errors are those of importer.h; a message begins with the node, tensor or graph it is about.
absl::StatusOr<Model> ReadModel(const Skeleton& skeleton, ExternalData external);

// Puts the body of an ONNX function in the place of a node: adds its values to `graph`, with fresh
// `names`, and returns its nodes, in order, which read the inputs and write the outputs of `call`
// and have its origins and the versions that `function` imports. The caller takes `call` out and
// puts them in. Constants become Value::constant. Attributes that `call` does not set are those of
// function.attribute_proto; bodies written into `function` may use what `call` captures, by name.
absl::StatusOr<std::vector<Node>> ExpandFunction(Model& model, Graph& graph, NameScope& names,
                                                 const Node& call,
                                                 const onnx::FunctionProto& function);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_READER_H_
