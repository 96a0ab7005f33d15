// provider/ort/context.h: reads and writes EPContext nodes, in which ONNX Runtime stores compiled
// models. Each has the package of one fused node, or the name of a file next to the model that has
// it.
#ifndef ANEMONE_PROVIDER_ORT_CONTEXT_H_
#define ANEMONE_PROVIDER_ORT_CONTEXT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "provider/ort/compute.h"
#include "provider/ort/ort_graph.h"
#include "provider/package/package.h"

struct OrtApi;
struct OrtNode;

namespace anemone {

// The session's options ep.context_..., which ONNX Runtime defines.
struct ContextOptions {
  bool enable = false;
  bool embed = false;
  std::string path;  // of the compiled model; if empty, it is in the original model's folder

  static ContextOptions Read(const std::map<std::string, std::string>& session_entries);
};

// A package of one segment, with the constant outputs of the fused node.
Package PackageOf(const FusedNetwork& fused, const Target& target, Route route);
// The reverse of PackageOf(). kDataLoss: the package does not have one segment, or its constants
// are damaged.
absl::StatusOr<FusedNetwork> FusedNetworkOf(Package package);

// True if it is an EPContext node of Anemone.
bool IsContext(const HostNode& node);

// Creates the EPContext node that replaces the fused node `names`, and writes the package's file
// unless it is embedded. ONNX Runtime takes ownership of the node.
absl::StatusOr<OrtNode*> MakeContext(const OrtApi& api, const ContextOptions& options,
                                     const std::string& model_path, const NodeNames& names,
                                     const Package& package);

// The package of a context node in the model at `model_path`. Errors name the node: kDataLoss
// (damaged), kFailedPrecondition (written by other rule tables, or not the file that was written
// with the model), kNotFound (no such file), kInvalidArgument (not a package, or a file that is not
// in the model's folder alone, by the rules of importer/read/external_data.h), kAborted (the file
// was replaced just now).
absl::StatusOr<Package> ReadContext(const HostNode& node, const ContextOptions& options,
                                    const std::string& model_path);

// The error `status` with the context node's name before it.
absl::Status NamedAfter(const HostNode& node, const absl::Status& status);

// For OrtEp::GetCompiledModelCompatibilityInfo: identifies the rule tables of a compiled model.
std::string CompatibilityInfo();

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_CONTEXT_H_
