#include "provider/rejected.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "anemone/version.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "importer/opset/opsets.h"
#include "importer/write/to_onnx.h"
#include "onnx/checker.h"
#include "partitioner/plan_json.h"
#include "provider/new_file.h"

namespace anemone {
namespace {

bool IsRejected(const PlanEntry& entry) {
  return entry.placement == Placement::kCpu && entry.verdict.layer != Layer::kPolicy;
}

// A name that is safe in every file system: letters, digits, '.', '-' and '_', at most 80 of them.
std::string SafeName(absl::string_view text) {
  constexpr size_t kMostLetters = 80;
  std::string name;
  for (char c : text) {
    const bool is_safe = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
    if (is_safe || (!name.empty() && name.back() != '_')) name += is_safe ? c : '_';
  }
  name = std::string(name.substr(std::min(name.find_first_not_of("._-"), name.size())));
  name = name.substr(0, kMostLetters);
  while (!name.empty() && (name.back() == '_' || name.back() == '.')) name.pop_back();
  return name;
}

// What a small model of some nodes reads and returns.
struct RejectedPorts {
  std::vector<ValueId> inputs, outputs;
  int64_t constant_bytes = 0;
};

int64_t StoredBytes(const Tensor& constant) {
  return constant.compressed() != nullptr ? constant.compressed()->stored_bytes()
                                          : ByteSize(constant.type(), constant.dims());
}

RejectedPorts PortsOf(const Graph& graph, const std::vector<NodeId>& nodes) {
  RejectedPorts ports;
  absl::flat_hash_set<ValueId> made, read, read_outside(graph.outputs.begin(), graph.outputs.end());
  for (NodeId id : nodes)
    made.insert(graph.nodes[id].outputs.begin(), graph.nodes[id].outputs.end());
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    const bool inside = std::binary_search(nodes.begin(), nodes.end(), id);
    for (const auto* values : {&node.inputs, &node.captures}) {
      for (ValueId value : *values) {
        if (value == kNone) continue;
        if (!inside) read_outside.insert(value);
        if (!inside || !read.insert(value).second || made.contains(value)) continue;
        const std::optional<Tensor>& constant = graph.values[value].constant;
        if (constant.has_value()) {
          ports.constant_bytes += StoredBytes(*constant);
        } else {
          ports.inputs.push_back(value);
        }
      }
    }
  }
  std::vector<ValueId> unread;
  for (NodeId id : nodes) {
    for (ValueId value : graph.nodes[id].outputs) {
      if (value == kNone) continue;
      if (read_outside.contains(value)) ports.outputs.push_back(value);
      if (!read.contains(value)) unread.push_back(value);
    }
  }
  if (ports.outputs.empty()) ports.outputs = std::move(unread);
  return ports;
}

bool IsTypeKnown(const Value& value) {
  if (!value.other_type.empty()) return true;
  return value.type != DataType::kUndefined && value.shape.has_value();
}

// An output whose type or rank is not known cannot be declared. Its shape can.
void ReturnShape(onnx::GraphProto* graph, onnx::ValueInfoProto* output) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type("Shape");
  node->add_input(output->name());
  output->set_name(absl::StrCat(output->name(), "/shape"));
  node->add_output(output->name());
  output->clear_type();
  auto* type = output->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::INT64);
  type->mutable_shape()->add_dim();
}

// The bytes of a model of these nodes. The error says why there is none.
absl::StatusOr<std::string> ModelOf(const Graph& graph, std::vector<NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  const RejectedPorts ports = PortsOf(graph, nodes);
  if (ports.constant_bytes > kMostRejectedConstants) {
    return absl::ResourceExhaustedError(absl::StrCat("its constants take ", ports.constant_bytes,
                                                     " bytes, at most ", kMostRejectedConstants,
                                                     " are written"));
  }
  for (ValueId id : ports.inputs) {
    const Value& value = graph.values[id];
    if (IsTypeKnown(value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the ", value.type == DataType::kUndefined ? "type" : "rank",
                     " of its input '", value.name, "' is not known"));
  }
  ToOnnxOptions as{.external_from = kNeverExternal};
  ANEMONE_ASSIGN_OR_RETURN(as.opsets, CommonOpsets(graph, nodes));
  ANEMONE_ASSIGN_OR_RETURN(OnnxModel model, ToOnnx(graph, nodes, ports.inputs, ports.outputs, as));
  onnx::GraphProto& written = *model.proto.mutable_graph();
  // ToOnnx() omits the shapes of outputs, and of inputs if there are bodies.
  for (size_t i = 0; i < ports.inputs.size(); ++i) {
    *written.mutable_input(static_cast<int>(i))->mutable_type() =
        TypeOf(graph.values[ports.inputs[i]]);
  }
  for (size_t i = 0; i < ports.outputs.size(); ++i) {
    onnx::ValueInfoProto* output = written.mutable_output(static_cast<int>(i));
    const Value& value = graph.values[ports.outputs[i]];
    *output->mutable_type() = TypeOf(value);
    if (!IsTypeKnown(value)) ReturnShape(&written, output);
  }
  try {
    onnx::checker::check_model(model.proto);
  } catch (const std::exception& e) {
    const std::string what = e.what();
    return absl::InvalidArgumentError(
        absl::StrCat("ONNX's checker refuses the model: ", what.substr(0, what.find('\n'))));
  }
  return model.proto.SerializeAsString();
}

// True if a check of the model alone gives this verdict for one of its nodes.
bool HasVerdict(const std::string& model, const Settings& settings, const Json& wanted) {
  const absl::StatusOr<CheckReport> report = CheckBytes(model, settings);
  if (!report.ok()) return false;
  const Json checked = Json::parse(report->Json());
  for (const Json& node : checked["targets"][0]["nodes"]) {
    if (IsText(node["verdict"], "rejected") && node["layer"] == wanted["layer"] &&
        node["rule"] == wanted["rule"] && node["message"] == wanted["message"]) {
      return true;
    }
  }
  return false;
}

class RejectedWriter {
 public:
  RejectedWriter(const SizedPlans& plans, Settings settings, std::string folder)
      : plans_(plans), settings_(std::move(settings)), folder_(std::move(folder)) {
    settings_.dims.clear();
    settings_.shapes.clear();
    settings_.buckets.clear();
  }

  absl::StatusOr<SavedRejected> Write() {
    for (size_t i = 0; i < plans_.plans().size(); ++i) {
      const Model& model = plans_.model(i);
      const Plan& plan = plans_.plans()[i];
      settings_.target = std::string(plan.target->option_name());
      settings_.route = std::string(RouteName(plan.route));
      for (const PlanPart& part : PartsOf(model.graph, plan)) {
        for (const PlanEntry& entry : part.plan->entries) {
          if (IsRejected(entry)) ANEMONE_RETURN_IF_ERROR(Add(model, *part.graph, entry));
        }
      }
    }
    const Json index = {
        {"schema", 1}, {"version", kVersion}, {"model", plans_.model(0).path}, {"nodes", listed_}};
    ANEMONE_RETURN_IF_ERROR(
        WriteTo("rejected.json", index.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
    return saved_;
  }

 private:
  // A node that several targets reject is written once.
  struct Written {
    std::string file;    // "" if it cannot be written
    std::string bytes;   // of the model
    std::string reason;  // why it cannot be written
  };
  using Key = std::tuple<const Model*, const Graph*, std::vector<NodeId>>;

  absl::Status Add(const Model& model, const Graph& graph, const PlanEntry& entry) {
    const Origin& shown = model.origins[entry.shown];
    const auto [it, is_new] = written_.try_emplace(Key(&model, &graph, entry.nodes));
    Written& written = it->second;
    if (is_new) {
      absl::StatusOr<std::string> bytes =
          Guarded("write a model", [&] { return ModelOf(graph, entry.nodes); });
      if (bytes.ok()) {
        written.bytes = *std::move(bytes);
        written.file = FreshName(shown);
        ANEMONE_RETURN_IF_ERROR(WriteTo(written.file, written.bytes));
      } else {
        written.reason = std::string(bytes.status().message());
      }
      ++(written.file.empty() ? saved_.unwritten : saved_.written);
    }
    Json listed = {{"file", OrNull(written.file)},
                   {"reason", OrNull(written.reason)},
                   {"node", shown.id},
                   {"name", shown.name},
                   {"op_type", shown.op_type},
                   {"domain", shown.domain},
                   {"target", settings_.target},
                   {"route", settings_.route}};
    AddReason(entry, listed);
    listed["same_verdict"] =
        written.file.empty() ? Json(nullptr) : Json(HasVerdict(written.bytes, settings_, listed));
    listed_.push_back(std::move(listed));
    return absl::OkStatus();
  }

  std::string FreshName(const Origin& shown) {
    std::string name = SafeName(shown.name);
    if (name.empty()) name = SafeName(absl::StrCat(shown.op_type, "_", shown.id));
    std::string fresh = name;
    // Some file systems ignore case.
    for (int i = 2; !names_.insert(absl::AsciiStrToLower(fresh)).second; ++i) {
      fresh = absl::StrCat(name, "-", i);
    }
    return fresh + ".onnx";
  }

  absl::Status WriteTo(const std::string& name, const std::string& bytes) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    std::ofstream file(path, std::ios::binary);
    file << bytes;
    return file.flush() ? absl::OkStatus() : NotWritten(path);
  }

  const SizedPlans& plans_;
  Settings settings_;  // of the plan that is being written
  std::string folder_;
  std::map<Key, Written> written_;
  std::set<std::string> names_;
  Json listed_ = Json::array();
  SavedRejected saved_;
};

}  // namespace

absl::StatusOr<SavedRejected> SaveRejected(const SizedPlans& plans, const Settings& settings,
                                           const std::string& folder) {
  ANEMONE_ASSIGN_OR_RETURN(auto made, NewFolder::Make(folder));
  ANEMONE_ASSIGN_OR_RETURN(const SavedRejected saved,
                           RejectedWriter(plans, settings, made->path()).Write());
  ANEMONE_RETURN_IF_ERROR(made->PutIntoPlace());
  return saved;
}

}  // namespace anemone
