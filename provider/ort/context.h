// provider/ort/context.h: EPContext nodes, by which ONNX Runtime keeps compiled models: each holds
// the package of one fused node, or the name of the file beside the model that does.
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

// The session's, of ONNX Runtime's own names (ep.context_...).
struct ContextOptions {
  bool enable = false;
  bool embed = false;
  std::string path;  // of the model with the contexts; "": beside the model that is compiled

  static ContextOptions Read(const std::map<std::string, std::string>& session_entries);
};

// A package of one segment, with the outputs of the fused node that are constants.
Package PackageOf(const FusedNetwork& fused, const Target& target, Route route);
// kDataLoss: not of one segment, or without what PackageOf() put in.
absl::StatusOr<FusedNetwork> FusedNetworkOf(Package package);

// Is it an EPContext node of ours?
bool IsContext(const HostNode& node);

// The node that stands for the fused node `names` from now on; its file is written if it is not
// embedded. ONNX Runtime takes it.
absl::StatusOr<OrtNode*> MakeContext(const OrtApi& api, const ContextOptions& options,
                                     const std::string& model_path, const NodeNames& names,
                                     const Package& package);

// The package of a context node in the model at `model_path`. Errors name the node: kDataLoss
// (damaged), kFailedPrecondition (of other rule tables, or another file than was written with the
// model), kNotFound (no such file), kInvalidArgument
// (no package; a name that leaves the model's folder).
absl::StatusOr<Package> ReadContext(const HostNode& node, const ContextOptions& options,
                                    const std::string& model_path);

// `status`, which is no success, with the context node's name in front.
absl::Status NamedAfter(const HostNode& node, const absl::Status& status);

// What a compiled model asks of a provider: OrtEp::GetCompiledModelCompatibilityInfo.
std::string CompatibilityInfo();

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_CONTEXT_H_
