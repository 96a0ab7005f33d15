#include "provider/package/session_package.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "anemone/version.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "importer/read/constant_inputs.h"
#include "importer/read/reader.h"
#include "importer/read/skeleton.h"
#include "importer/write/to_onnx.h"
#include "partitioner/plan_json.h"
#include "provider/package/network_text.h"
#include "provider/package/package_tensors.h"
#include "provider/package/stored_writes.h"
#include "provider/surface_plan.h"

namespace anemone {
namespace {

using NodeProtos = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

constexpr char kSection[] = "session.model", kDomain[] = "anemone.session";
constexpr char kPlaces[] = "session.weights";
constexpr char kEngine[] = "engine", kCpu[] = "cpu", kFile[] = "file", kRows[] = "rows";
constexpr int64_t kMostNeed = int64_t{1} << 60;  // so that sums do not overflow
constexpr char kLine[] = "line", kFacts[] = "facts", kConstantInput[] = "constant_input";

absl::Status DamagedEntry(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("package: ", what, "; it is damaged"));
}

Json FactsOf(const PlanFacts& facts) {
  const PlanSummary& s = facts.summary;
  return {{"target", s.target},
          {"engine_segments", s.engine_segments},
          {"cpu_segments", s.cpu_segments},
          {"macs", OrNull(s.macs)},
          {"engine_macs", OrNull(s.engine_macs)},
          {"engine_macs_share", OrNull(s.engine_macs_share)},
          {"warnings", s.warnings},
          {"warned_nodes", s.warned_nodes},
          {"copied_state", facts.copied_state},
          {"cpu_need", {facts.cpu_need.weights, facts.cpu_need.values}}};
}

template <class T>
std::optional<T> Optional(const Json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

absl::Status ReadFacts(const std::string& text, PlanFacts& to) {
  try {
    const Json facts = Json::parse(text);
    to.summary = {.target = facts.at("target").get<std::string>(),
                  .engine_segments = facts.at("engine_segments").get<int>(),
                  .cpu_segments = facts.at("cpu_segments").get<int>(),
                  .macs = Optional<int64_t>(facts.at("macs")),
                  .engine_macs = Optional<int64_t>(facts.at("engine_macs")),
                  .engine_macs_share = Optional<double>(facts.at("engine_macs_share")),
                  .warnings = facts.at("warnings").get<int>(),
                  .warned_nodes = facts.at("warned_nodes").get<int>()};
    to.copied_state = facts.at("copied_state").get<std::string>();
    const Json& need = facts.at("cpu_need");
    to.cpu_need = {.weights = need.at(0).get<int64_t>(), .values = need.at(1).get<int64_t>()};
  } catch (const Json::exception& e) {
    return DamagedEntry(e.what());
  }
  for (const int64_t bytes : {to.cpu_need.weights, to.cpu_need.values}) {
    if (bytes < 0 || bytes > kMostNeed) return DamagedEntry("memory that no model can need");
  }
  return absl::OkStatus();
}

class EntryWriter {
 public:
  EntryWriter(const Graph& graph, const Plan& plan, const std::vector<CpuModel>& cpu_models,
              Package& package)
      : graph_(graph), plan_(plan), cpu_models_(cpu_models), package_(package) {}

  absl::Status Write(const PlanFacts& facts) {
    proto_.set_ir_version(kWorkingIrVersion);
    for (const auto& [domain, version] : {std::pair{"", kWorkingOpset}, {kDomain, 1}}) {
      onnx::OperatorSetIdProto& opset = *proto_.add_opset_import();
      opset.set_domain(domain);
      opset.set_version(version);
    }
    Fact(kLine, facts.line);
    Fact(kFacts, FactsOf(facts).dump());
    for (const std::string& name : graph_.constant_inputs) Fact(kConstantInput, name);
    out().set_name(graph_.name);
    for (ValueId v : graph_.inputs) Describe(v, out().add_input());
    for (ValueId v : graph_.outputs) Describe(v, out().add_output());
    for (const auto& [v, tensor] : graph_.defaults) AddConstant(NameOf(v), tensor);
    std::set<ValueId> constants;  // an output may be given twice
    for (ValueId v : graph_.outputs) {
      const std::optional<Tensor>& constant = graph_.values[v].constant;
      if (constant && constants.insert(v).second) AddConstant(NameOf(v), *constant);
    }
    for (size_t i = 0; i < plan_.segments.size(); ++i) {
      ANEMONE_RETURN_IF_ERROR(AddSegment(i));
    }
    std::string bytes;
    if (proto_.ByteSizeLong() > kMostBytes || !proto_.SerializeToString(&bytes)) {
      return absl::ResourceExhaustedError(
          "package: the constants of CPU segments are too large; let more nodes run on the engine, "
          "or run the model itself");
    }
    AddSection(kSection, bytes);
    if (facts.places != nullptr) AddSection(kPlaces, WriteNetworkText(facts.places->ToJson()));
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 30;

  onnx::GraphProto& out() { return *proto_.mutable_graph(); }
  const std::string& NameOf(ValueId v) const { return graph_.values[v].name; }

  void AddSection(const char* name, const std::string& bytes) {
    const auto size = static_cast<int64_t>(bytes.size());
    package_.extensions.push_back({name, Tensor::Of<char>(DataType::kUInt8, {size}, bytes)});
  }

  void Fact(const char* key, std::string value) {
    onnx::StringStringEntryProto& fact = *proto_.add_metadata_props();
    fact.set_key(key);
    fact.set_value(std::move(value));
  }

  void Describe(ValueId v, onnx::ValueInfoProto* to) {
    described_.insert(v);
    to->set_name(NameOf(v));
    *to->mutable_type() = TypeOf(graph_.values[v]);
  }

  // The elements are not stored if they are in a source of the package.
  void AddConstant(const std::string& name, const Tensor& tensor) {
    const bool is_plain =
        tensor.compressed() == nullptr && !tensor.is_fill() && tensor.type() != DataType::kString;
    const auto source = is_plain ? FindSource(package_.sources, BytesText(tensor)) : std::nullopt;
    onnx::TensorProto& made = *out().add_initializer();
    if (!source) {
      made = ToProto(tensor);
    } else {
      made.set_data_type(static_cast<int32_t>(tensor.type()));
      for (int64_t size : tensor.dims()) made.add_dims(size);
      made.set_data_location(onnx::TensorProto::EXTERNAL);
      for (const auto& [key, value] : {std::pair<const char*, uint64_t>{"source", source->source},
                                       {"offset", source->offset},
                                       {"length", tensor.bytes().size()}}) {
        onnx::StringStringEntryProto& entry = *made.add_external_data();
        entry.set_key(key);
        entry.set_value(absl::StrCat(value));
      }
    }
    made.set_name(name);
  }

  absl::Status AddSegment(size_t index) {
    const Segment& segment = plan_.segments[index];
    onnx::NodeProto& node = *out().add_node();
    node.set_domain(kDomain);
    for (ValueId v : segment.inputs) node.add_input(NameOf(v));
    for (ValueId v : segment.outputs) node.add_output(NameOf(v));
    for (const auto* values : {&segment.inputs, &segment.outputs}) {
      for (ValueId v : *values) {
        if (NameOf(v).empty())
          return absl::UnimplementedError("package: a value has no name; export the model again");
        if (described_.count(v) == 0) Describe(v, out().add_value_info());
      }
    }
    if (HasRowWrites(graph_, segment)) return AddRows(segment, node);
    if (segment.placement != Placement::kEngine) return AddCpu(index, node);
    node.set_op_type(kEngine);
    AddAttribute("segment", node).set_i(static_cast<int64_t>(package_.segments.size()));
    PackagedSegment& packaged = package_.segments.emplace_back();
    packaged.name = absl::StrCat("segment ", index);
    packaged.network = segment.network;
    for (const auto& [values, ports] :
         {std::pair{&segment.inputs, &packaged.inputs}, {&segment.outputs, &packaged.outputs}}) {
      for (ValueId v : *values) {
        const Value& value = graph_.values[v];
        ports->push_back({value.name, value.type, value.dims()});
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddRows(const Segment& segment, onnx::NodeProto& node) {
    node.set_op_type(kRows);
    onnx::AttributeProto& writes = AddAttribute("writes", node);
    writes.set_type(onnx::AttributeProto::GRAPH);
    ANEMONE_ASSIGN_OR_RETURN(*writes.mutable_g(), StoredWrites(graph_, segment));
    return absl::OkStatus();
  }

  absl::Status AddCpu(size_t index, onnx::NodeProto& node) {
    const CpuModel& cpu = cpu_models_[index];
    const OnnxModel& made = cpu.model;
    node.set_op_type(cpu.is_file ? kFile : kCpu);
    if (cpu.is_file) return absl::OkStatus();
    node.set_name(cpu.label);
    onnx::AttributeProto& names = AddAttribute("constants", node);
    names.set_type(onnx::AttributeProto::STRINGS);
    for (const ExternalConstant& constant : made.external) {
      const std::string name = absl::StrCat("constant ", index, " ", constant.name);
      AddConstant(name, constant.tensor);
      node.add_input(name);
      names.add_strings(constant.name);
    }
    onnx::AttributeProto& text = AddAttribute("model", node);
    text.set_type(onnx::AttributeProto::STRING);
    if (!made.proto.SerializeToString(text.mutable_s())) {
      return absl::ResourceExhaustedError(
          "package: a CPU segment is too large; store its weights as external data");
    }
    return absl::OkStatus();
  }

  static onnx::AttributeProto& AddAttribute(const char* name, onnx::NodeProto& node) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::INT);
    return attribute;
  }

  const Graph& graph_;
  const Plan& plan_;
  const std::vector<CpuModel>& cpu_models_;
  Package& package_;
  onnx::ModelProto proto_;
  std::set<ValueId> described_;
};

// Keeps everything alive that a read model points to.
struct Owner {
  Tensor section;
  std::vector<Tensor> sources;
};

// Replaces the places of constants in sources by their bytes.
absl::Status FillIn(const std::vector<Tensor>& sources, Skeleton& skeleton) {
  for (onnx::TensorProto& tensor : *skeleton.proto.mutable_graph()->mutable_initializer()) {
    if (tensor.data_location() != onnx::TensorProto::EXTERNAL) continue;
    uint64_t source = sources.size(), offset = 0, length = 0;
    for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
      uint64_t& to = entry.key() == "source" ? source : entry.key() == "offset" ? offset : length;
      if (!absl::SimpleAtoi(entry.value(), &to)) return DamagedEntry("a number of a place");
    }
    if (source >= sources.size()) return DamagedEntry("a constant is in no source");
    const absl::Span<const std::byte> bytes = sources[source].bytes();
    if (offset > bytes.size() || length > bytes.size() - offset) {
      return DamagedEntry("a constant is outside its source");
    }
    tensor.clear_data_location();
    tensor.clear_external_data();
    AddPayload(bytes.subspan(offset, length), &skeleton, &tensor);
  }
  return absl::OkStatus();
}

// As the importer does for the model that was planned.
absl::Status CheckTensorBytes(const Graph& graph) {
  const int64_t most = ValueOf(ModelLimit::kTensorBytes);
  for (const Value& value : graph.values) {
    if (most == kAnyTensorBytes || !value.is_static()) continue;
    const bool has_size = ElementCount(value.dims()).ok();
    if (has_size && ByteSize(value.type, value.dims()) <= most) continue;
    return OverLimit(ModelLimit::kTensorBytes,
                     absl::StrCat("value '", value.name, "': ", DataTypeName(value.type), " ",
                                  DimsToString(value.dims()), " has"));
  }
  return absl::OkStatus();
}

// Whether the values are those that the ports of a segment carry.
bool Fit(const Graph& graph, const std::vector<ValueId>& values,
         const std::vector<PackagedPort>& ports) {
  return std::equal(values.begin(), values.end(), ports.begin(), ports.end(),
                    [&](ValueId v, const PackagedPort& port) {
                      const Value& value = graph.values[v];
                      return value.is_static() && value.dims() == port.dims &&
                             value.type == port.type;
                    });
}

// `inputs` are all inputs of the node; those of the segment itself remain.
absl::StatusOr<CpuModel> ReadCpu(const Graph& graph, const onnx::NodeProto& node,
                                 std::vector<ValueId>& inputs) {
  const onnx::AttributeProto* const text = FindAttribute(node, "model");
  const onnx::AttributeProto* const names = FindAttribute(node, "constants");
  CpuModel made;
  made.label = node.name();
  if (text == nullptr || names == nullptr ||
      names->strings_size() > static_cast<int>(inputs.size()) ||
      !made.model.proto.ParseFromString(text->s())) {
    return DamagedEntry("a CPU segment has no model");
  }
  const size_t own = inputs.size() - names->strings_size();
  for (int i = 0; i < names->strings_size(); ++i) {
    const std::optional<Tensor>& constant = graph.values[inputs[own + i]].constant;
    if (!constant) return DamagedEntry("a constant is missing");
    made.model.external.push_back({names->strings(i), *constant});
  }
  inputs.resize(own);
  return made;
}

// Makes inputs of all values that have no data, so that the graph can be read without its nodes:
// their operators are not ONNX's. Returns the nodes, which the skeleton's arena keeps.
const NodeProtos& TakeNodes(Skeleton& skeleton) {
  onnx::GraphProto& graph = *skeleton.proto.mutable_graph();
  NodeProtos& nodes = *google::protobuf::Arena::CreateMessage<NodeProtos>(&skeleton.arena);
  nodes.Swap(graph.mutable_node());
  std::set<std::string> known;
  for (const onnx::ValueInfoProto& input : graph.input()) known.insert(input.name());
  for (const onnx::TensorProto& constant : graph.initializer()) known.insert(constant.name());
  for (const auto* list : {&graph.output(), &graph.value_info()}) {
    for (const onnx::ValueInfoProto& info : *list) {
      if (known.insert(info.name()).second) *graph.add_input() = info;
    }
  }
  return nodes;
}

// Adds the segment of a node to `made`.
absl::Status ReadSegment(const Package& package, const onnx::NodeProto& node,
                         const std::map<std::string, ValueId>& ids, PlannedModel& made) {
  Segment& segment = made.plan.segments.emplace_back();
  CpuModel& cpu = made.cpu_models.emplace_back();
  for (const auto& [names, values] :
       {std::pair{&node.input(), &segment.inputs}, {&node.output(), &segment.outputs}}) {
    for (const std::string& name : *names) {
      const auto found = ids.find(name);
      if (found == ids.end()) return DamagedEntry("a segment has an unknown port");
      values->push_back(found->second);
    }
  }
  cpu.is_file = node.op_type() == kFile;
  if (cpu.is_file) return absl::OkStatus();
  if (node.op_type() == kRows) {
    const onnx::AttributeProto* const writes = FindAttribute(node, "writes");
    if (writes == nullptr) return DamagedEntry("rows of a state are missing");
    return ReadStoredWrites(writes->g(), ids, made.graph, segment);
  }
  if (node.op_type() != kEngine) {
    ANEMONE_ASSIGN_OR_RETURN(cpu, ReadCpu(made.graph, node, segment.inputs));
    return absl::OkStatus();
  }
  segment.placement = Placement::kEngine;
  const onnx::AttributeProto* const index = FindAttribute(node, "segment");
  if (index == nullptr || index->i() < 0 ||
      index->i() >= static_cast<int64_t>(package.segments.size())) {
    return DamagedEntry("an engine segment is missing");
  }
  const PackagedSegment& packaged = package.segments[index->i()];
  if (!Fit(made.graph, segment.inputs, packaged.inputs) ||
      !Fit(made.graph, segment.outputs, packaged.outputs)) {
    return DamagedEntry("an engine segment has other ports");
  }
  segment.network = packaged.network;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Package> ToPackage(const Graph& graph, const Plan& plan,
                                  const std::vector<CpuModel>& cpu_models, const PlanFacts& facts,
                                  std::vector<Tensor> sources) {
  for (const Segment& segment : plan.segments) {
    if (segment.bodies.empty()) continue;
    return absl::UnimplementedError(
        "package: the body of an If, Loop or Scan has an engine segment; run the model itself, or "
        "plan it with --policy cpu");
  }
  Package package{.target = plan.target,
                  .route = plan.route,
                  .producer = kVersion,
                  .sources = std::move(sources)};
  ANEMONE_RETURN_IF_ERROR(EntryWriter(graph, plan, cpu_models, package).Write(facts));
  return package;
}

absl::StatusOr<PlannedModel> FromPackage(const Package& package) {
  const PackageExtension* const section = FindExtension(package, kSection);
  if (section == nullptr) return DamagedEntry("it has no model");
  const auto owner = std::make_shared<const Owner>(Owner{section->bytes, package.sources});
  ANEMONE_ASSIGN_OR_RETURN(const std::unique_ptr<Skeleton> skeleton,
                           MakeSkeleton(BytesText(owner->section), owner));
  ANEMONE_RETURN_IF_ERROR(FillIn(owner->sources, *skeleton));
  const int inputs = skeleton->proto.graph().input_size();
  const NodeProtos& nodes = TakeNodes(*skeleton);
  ANEMONE_ASSIGN_OR_RETURN(Model model,
                           ReadModel(*skeleton, ExternalData::InFolder(""), {kAllOverridable}));
  PlannedModel made;
  for (const onnx::StringStringEntryProto& fact : skeleton->proto.metadata_props()) {
    if (fact.key() == kLine) made.facts.line = fact.value();
    if (fact.key() == kConstantInput) model.graph.constant_inputs.push_back(fact.value());
    if (fact.key() == kFacts) ANEMONE_RETURN_IF_ERROR(ReadFacts(fact.value(), made.facts));
  }
  ANEMONE_RETURN_IF_ERROR(CheckTensorBytes(model.graph));
  made.plan.target = package.target;
  made.plan.route = package.route;
  made.graph = std::move(model.graph);
  made.graph.inputs.resize(inputs);
  std::map<std::string, ValueId> ids;
  for (size_t v = 0; v < made.graph.values.size(); ++v) {
    ids.emplace(made.graph.values[v].name, static_cast<ValueId>(v));
  }
  for (const onnx::NodeProto& node : nodes) {
    ANEMONE_RETURN_IF_ERROR(ReadSegment(package, node, ids, made));
  }
  ANEMONE_RETURN_IF_ERROR(CheckStoredWrites(made.graph, made.plan));
  if (const PackageExtension* const places = FindExtension(package, kPlaces)) {
    ANEMONE_ASSIGN_OR_RETURN(const Json json, ReadNetworkText(BytesText(places->bytes)));
    ANEMONE_ASSIGN_OR_RETURN(WeightPlaces read, WeightPlaces::FromJson(json, made.plan));
    made.facts.places = std::make_shared<const WeightPlaces>(std::move(read));
  }
  return made;
}

}  // namespace anemone
