// importer/read/reader.h: converts a skeleton to a Model: names are resolved, tensors mapped,
// model-local functions inlined, and nodes checked and sorted topologically. Nodes still have the
// file's opsets, and shapes are only those that the file declares.
#ifndef ANEMONE_IMPORTER_READ_READER_H_
#define ANEMONE_IMPORTER_READ_READER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mapped_file.h"
#include "importer/edit.h"
#include "importer/graph.h"
#include "importer/read/external_data.h"
#include "importer/read/skeleton.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// `overridable`: initializers that stay inputs, if they are (constant_inputs.h). Errors: see
// importer.h. A message begins with the node, tensor or graph that it is about.
absl::StatusOr<Model> ReadModel(const Skeleton& skeleton, ExternalData external,
                                const std::vector<std::string>& overridable = {});

// The model of the mapped file at `path`, with external data beside it. `payload_from` as in
// MakeSkeleton(), whose errors it has too.
absl::StatusOr<Model> ReadModelFile(const std::shared_ptr<const MappedFile>& file,
                                    const std::string& path, size_t payload_from = kPayloadFrom,
                                    const std::vector<std::string>& overridable = {});

// Expands an ONNX function that replaces the node `call`: adds the function's values to `graph`,
// with fresh `names`, and returns its nodes in order. They read the inputs and write the outputs of
// `call`, and have its origins and the versions that `function` imports. The caller replaces `call`
// by them. Constants become Value::constant. Attributes that `call` does not set have the defaults
// of function.attribute_proto. Bodies inside `function` may refer to captures of `call` by name.
absl::StatusOr<std::vector<Node>> ExpandFunction(Model& model, Graph& graph, NameScope& names,
                                                 const Node& call,
                                                 const onnx::FunctionProto& function);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_READER_H_
