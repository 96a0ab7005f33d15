#include "provider/ort/ort_graph.h"

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/write/to_onnx.h"
#include "onnx/defs/schema.h"
#include "provider/ort/ort_attributes.h"
#include "provider/ort_status.h"

namespace anemone {
namespace {

// The domain of opaque nodes.
constexpr char kOpaqueDomain[] = "onnxruntime";

template <class Owner>
using CountOf = OrtStatus* (*)(const Owner*, size_t*) noexcept;
template <class T, class Owner>
using ItemsOf = OrtStatus* (*)(const Owner*, const T**, size_t) noexcept;

// Reads an array of the C API: first the number of items, then all of them.
template <class T, class Owner>
absl::StatusOr<std::vector<const T*>> Items(const OrtApi& api, const Owner* owner,
                                            CountOf<Owner> count, ItemsOf<T, Owner> items) {
  size_t size = 0;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, count(owner, &size)));
  std::vector<const T*> all(size);
  if (size > 0) ANEMONE_RETURN_IF_ERROR(FromOrt(api, items(owner, all.data(), size)));
  return all;
}

class Reader {
 public:
  Reader(const OrtApi& api, const OrtGraph* from, HostGraph& to)
      : api_(api), from_(from), to_(to) {}

  absl::Status Read() {
    ANEMONE_RETURN_IF_ERROR(ReadHeader());
    ANEMONE_ASSIGN_OR_RETURN(
        const auto nodes,
        (Items<OrtNode, OrtGraph>(api_, from_, api_.Graph_GetNumNodes, api_.Graph_GetNodes)));
    for (const OrtNode* node : nodes) ANEMONE_RETURN_IF_ERROR(ReadNode(node));
    ANEMONE_ASSIGN_OR_RETURN(const auto outputs,
                             (Items<OrtValueInfo, OrtGraph>(api_, from_, api_.Graph_GetNumOutputs,
                                                            api_.Graph_GetOutputs)));
    for (const OrtValueInfo* output : outputs) {
      ANEMONE_ASSIGN_OR_RETURN(std::string name, ReadValueInfo(output));
      to_.outputs.push_back(std::move(name));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadHeader() {
    const char* name = nullptr;
    const ORTCHAR_T* path = nullptr;
    const OrtNode* parent = nullptr;
    size_t count = 0;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Graph_GetName(from_, &name)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Graph_GetModelPath(from_, &path)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Graph_GetParentNode(from_, &parent)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Graph_GetOnnxIRVersion(from_, &to_.ir_version)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Graph_GetNumOperatorSets(from_, &count)));
    std::vector<const char*> domains(count);
    std::vector<int64_t> versions(count);
    if (count > 0) {
      ANEMONE_RETURN_IF_ERROR(
          FromOrt(api_, api_.Graph_GetOperatorSets(from_, domains.data(), versions.data(), count)));
    }
    to_.name = name;
    to_.path = path;
    size_t inputs = 0;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Graph_GetNumInputs(from_, &inputs)));
    // ONNX Runtime 1.23 returns no parent node. A graph that reads outer values is a body too.
    to_.is_body = parent != nullptr || inputs == 0;
    for (size_t i = 0; i < count; ++i) to_.opsets[domains[i]] = versions[i];
    return absl::OkStatus();
  }

  // Reads the value's type and constant, and returns its name.
  absl::StatusOr<std::string> ReadValueInfo(const OrtValueInfo* info) {
    if (info == nullptr) return std::string();  // omitted
    const char* name = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.GetValueInfoName(info, &name)));
    if (to_.types.contains(name)) return std::string(name);
    const OrtTypeInfo* type = nullptr;
    // The call fails for a value without a type.
    if (!FromOrt(api_, api_.GetValueInfoTypeInfo(info, &type)).ok()) type = nullptr;
    ANEMONE_ASSIGN_OR_RETURN(to_.types[name], ReadType(api_, type));
    bool is_constant = false;
    bool is_outer = false;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.ValueInfo_IsFromOuterScope(info, &is_outer)));
    to_.is_body |= is_outer;
    ANEMONE_RETURN_IF_ERROR(
        FromOrt(api_, api_.ValueInfo_IsConstantInitializer(info, &is_constant)));
    if (!is_constant) return std::string(name);
    const OrtValue* value = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.ValueInfo_GetInitializerValue(info, &value)));
    if (value == nullptr) return std::string(name);
    absl::StatusOr<Tensor> tensor = ReadValue(api_, value);
    // A constant of a type that we do not know is treated as an input.
    if (tensor.ok()) to_.constants[name] = *std::move(tensor);
    return std::string(name);
  }

  absl::Status ReadValues(const OrtNode* node, CountOf<OrtNode> count,
                          ItemsOf<OrtValueInfo, OrtNode> items, std::vector<std::string>& names) {
    ANEMONE_ASSIGN_OR_RETURN(const auto infos,
                             (Items<OrtValueInfo, OrtNode>(api_, node, count, items)));
    for (const OrtValueInfo* info : infos) {
      ANEMONE_ASSIGN_OR_RETURN(std::string name, ReadValueInfo(info));
      names.push_back(std::move(name));
    }
    return absl::OkStatus();
  }

  absl::Status ReadNode(const OrtNode* from) {
    HostNode node{.handle = from};
    const char* name = nullptr;
    const char* type = nullptr;
    const char* domain = nullptr;
    const char* provider = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Node_GetName(from, &name)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Node_GetOperatorType(from, &type)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Node_GetDomain(from, &domain)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Node_GetEpName(from, &provider)));
    if (provider != nullptr) node.provider = provider;
    node.proto.set_name(name);
    node.proto.set_op_type(type);
    node.proto.set_domain(domain);
    std::vector<std::string> inputs;
    std::vector<std::string> outputs;
    ANEMONE_RETURN_IF_ERROR(ReadValues(from, api_.Node_GetNumInputs, api_.Node_GetInputs, inputs));
    ANEMONE_RETURN_IF_ERROR(
        ReadValues(from, api_.Node_GetNumOutputs, api_.Node_GetOutputs, outputs));
    ANEMONE_RETURN_IF_ERROR(ReadValues(from, api_.Node_GetNumImplicitInputs,
                                       api_.Node_GetImplicitInputs, node.implicit_inputs));
    for (std::string& input : inputs) node.proto.add_input(std::move(input));
    for (const std::string& output : outputs) {
      if (!output.empty()) to_.producer[output] = static_cast<int>(to_.nodes.size());
      node.proto.add_output(output);
    }
    ANEMONE_RETURN_IF_ERROR(ReadAttributes(node));
    ANEMONE_RETURN_IF_ERROR(FindOpaque(node));
    to_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  absl::Status ReadAttributes(HostNode& node) {
    ANEMONE_ASSIGN_OR_RETURN(
        const auto attributes,
        (Items<OrtOpAttr, OrtNode>(api_, node.handle, api_.Node_GetNumAttributes,
                                   api_.Node_GetAttributes)));
    for (const OrtOpAttr* attribute : attributes) {
      ANEMONE_ASSIGN_OR_RETURN(auto proto, ReadAttribute(api_, attribute));
      if (!proto) {
        node.opaque = "it has an attribute that ONNX Runtime's C API cannot read";
        continue;
      }
      *node.proto.add_attribute() = *std::move(proto);
    }
    return absl::OkStatus();
  }

  absl::Status FindOpaque(HostNode& node) {
    size_t bodies = 0;
    int since = 0;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Node_GetNumSubgraphs(node.handle, &bodies)));
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.Node_GetSinceVersion(node.handle, &since)));
    if (bodies > 0)
      node.opaque = "it has bodies, which ONNX Runtime passes to the plugin separately";
    if (!node.provider.empty()) node.opaque = absl::StrCat("it is assigned to ", node.provider);
    // The node of an inlined function may have another opset than the model.
    const std::string& domain = node.proto.domain();
    const auto opset = to_.opsets.find(domain);
    if (opset == to_.opsets.end()) return absl::OkStatus();
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(
        node.proto.op_type(), static_cast<int>(opset->second), domain);
    if (schema != nullptr && schema->since_version() != since) {
      node.opaque = absl::StrCat("it has operator version ", since, ", but the model has opset ",
                                 opset->second);
    }
    return absl::OkStatus();
  }

  const OrtApi& api_;
  const OrtGraph* from_;
  HostGraph& to_;
};

void AddValueInfo(const HostGraph& graph, const KnownValues& known, const std::string& name,
                  google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& list) {
  onnx::ValueInfoProto& info = *list.Add();
  info.set_name(name);
  if (auto better = known.types.find(name); better != known.types.end()) {
    *info.mutable_type() = better->second;
  } else if (auto it = graph.types.find(name); it != graph.types.end()) {
    *info.mutable_type() = it->second;
  }
}

// Adds the opsets of the domains that nodes use. ONNX Runtime lists every domain that any session
// of the process has used.
void AddOpsets(const HostGraph& graph, onnx::ModelProto& model) {
  std::set<std::string> domains = {""};
  for (const onnx::NodeProto& node : model.graph().node()) domains.insert(node.domain());
  for (const auto& [domain, version] : graph.opsets) {
    if (domains.count(domain) == 0) continue;
    onnx::OperatorSetIdProto& opset = *model.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
}

void AddNode(const HostNode& from, bool opaque, onnx::GraphProto& graph) {
  onnx::NodeProto& node = *graph.add_node();
  if (!opaque) {
    node = from.proto;
    return;
  }
  node.set_name(from.proto.name());
  node.set_op_type(from.proto.op_type());
  node.set_domain(kOpaqueDomain);
  *node.mutable_input() = from.proto.input();
  for (const std::string& input : from.implicit_inputs) node.add_input(input);
  *node.mutable_output() = from.proto.output();
}

void AddInitializer(const std::string& name, const Tensor& tensor, Skeleton& skeleton) {
  onnx::TensorProto& proto = *skeleton.proto.mutable_graph()->add_initializer();
  const bool large = tensor.type() != DataType::kString && tensor.bytes().size() >= kPayloadFrom;
  if (large) {
    proto.set_data_type(static_cast<int>(tensor.type()));
    proto.mutable_dims()->Add(tensor.dims().begin(), tensor.dims().end());
    AddPayload(tensor.bytes(), &skeleton, &proto);
  } else {
    proto = ToProto(tensor);
  }
  proto.set_name(name);
}

}  // namespace

void HostGraph::CopyConstants() {
  auto copies = std::make_shared<std::vector<Tensor>>();
  copies->reserve(constants.size());
  for (auto& [name, constant] : constants) copies->push_back(constant = constant.Copy());
  owner = std::move(copies);
}

std::vector<int> HostGraph::AllNodes() const {
  std::vector<int> all(nodes.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> HostGraph::ProducersOf(int i) const {
  std::vector<int> found;
  const auto add = [&](const std::string& name) {
    if (auto it = producer.find(name); it != producer.end()) found.push_back(it->second);
  };
  for (const std::string& name : nodes[i].proto.input()) add(name);
  for (const std::string& name : nodes[i].implicit_inputs) add(name);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

absl::StatusOr<NodeNames> ReadNodeNames(const OrtApi& api, const OrtNode* node) {
  NodeNames names;
  const char* name = nullptr;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.Node_GetName(node, &name)));
  names.name = name;
  const auto read = [&](CountOf<OrtNode> count, ItemsOf<OrtValueInfo, OrtNode> items,
                        std::vector<std::string>& to) -> absl::Status {
    ANEMONE_ASSIGN_OR_RETURN(const auto infos,
                             (Items<OrtValueInfo, OrtNode>(api, node, count, items)));
    for (const OrtValueInfo* info : infos) {
      const char* value = "";
      if (info != nullptr) {
        ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetValueInfoName(info, &value)));
      }
      to.emplace_back(value);
    }
    return absl::OkStatus();
  };
  ANEMONE_RETURN_IF_ERROR(read(api.Node_GetNumInputs, api.Node_GetInputs, names.inputs));
  ANEMONE_RETURN_IF_ERROR(read(api.Node_GetNumOutputs, api.Node_GetOutputs, names.outputs));
  return names;
}

absl::StatusOr<HostGraph> ReadHostGraph(const OrtApi& api, const OrtGraph* graph) {
  HostGraph host;
  ANEMONE_RETURN_IF_ERROR(Reader(api, graph, host).Read());
  const int count = static_cast<int>(host.nodes.size());
  for (int i = 0; i < count; ++i) {
    const std::vector<int> producers = host.ProducersOf(i);
    if (!producers.empty() && producers.back() >= i) {
      return absl::InternalError(
          "ONNX Runtime lists a node before one that it depends on; please report this model");
    }
  }
  return host;
}

std::unique_ptr<Skeleton> MakeSkeleton(const HostGraph& graph, absl::Span<const int> nodes,
                                       const std::set<int>& opaque, const KnownValues& known) {
  auto skeleton = std::make_unique<Skeleton>();
  skeleton->owner = graph.owner;
  skeleton->proto.set_ir_version(graph.ir_version);
  onnx::GraphProto& to = *skeleton->proto.mutable_graph();
  to.set_name(graph.name);
  std::vector<bool> inside(graph.nodes.size());
  for (int i : nodes) inside[i] = true;
  absl::flat_hash_set<std::string> read;
  const auto add_input = [&](const std::string& name) {
    const auto producer = graph.producer.find(name);
    const bool is_made = producer != graph.producer.end() && inside[producer->second];
    if (name.empty() || is_made || !read.insert(name).second) return;
    if (auto constant = graph.constants.find(name); constant != graph.constants.end()) {
      AddInitializer(name, constant->second, *skeleton);
    } else if (auto found = known.constants.find(name); found != known.constants.end()) {
      AddInitializer(name, found->second, *skeleton);
    } else {
      AddValueInfo(graph, known, name, *to.mutable_input());
    }
  };
  for (int i : nodes) {
    const bool is_opaque = !graph.nodes[i].opaque.empty() || opaque.count(i) > 0;
    AddNode(graph.nodes[i], is_opaque, to);
    for (const std::string& name : to.node().rbegin()->input()) add_input(name);
  }
  AddOpsets(graph, skeleton->proto);
  absl::flat_hash_set<std::string> wanted(graph.outputs.begin(), graph.outputs.end());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (inside[i]) continue;
    for (const std::string& name : graph.nodes[i].proto.input()) wanted.insert(name);
    wanted.insert(graph.nodes[i].implicit_inputs.begin(), graph.nodes[i].implicit_inputs.end());
  }
  for (const onnx::NodeProto& node : to.node()) {
    for (const std::string& name : node.output()) {
      if (name.empty()) continue;
      AddValueInfo(graph, known, name,
                   wanted.contains(name) ? *to.mutable_output() : *to.mutable_value_info());
    }
  }
  return skeleton;
}

}  // namespace anemone
