#include "provider/plain_part.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/read/tensor_reader.h"
#include "importer/write/compressed_nodes.h"
#include "importer/write/to_onnx.h"

namespace anemone {

class PlainPart::Reader {
 public:
  explicit Reader(const OnnxModel& model) : graph_(model.proto.graph()) {
    const TensorReader reader(nullptr, nullptr);
    for (const onnx::TensorProto& constant : graph_.initializer()) {
      auto tensor = reader.Read(constant, constant.name());  // an error: it is external
      if (tensor.ok()) AddConstant(constant.name(), *std::move(tensor));
    }
    for (const ExternalConstant& constant : model.external) {
      AddConstant(constant.name, constant.tensor);
    }
  }

  std::unique_ptr<PlainPart> Read() {
    for (const onnx::ValueInfoProto& input : graph_.input()) ReadInput(input);
    for (const onnx::NodeProto& node : graph_.node()) {
      if (!ReadNode(node)) return nullptr;
    }
    for (const onnx::ValueInfoProto& output : graph_.output()) {
      const auto found = places_.find(output.name());
      if (found == places_.end()) return nullptr;
      part_->outputs_.push_back(found->second);
    }
    FindLastReads();
    return std::move(part_);
  }

 private:
  void Add(const std::string& name, PlainValue value) {
    places_.insert_or_assign(name, values_.size());
    values_.push_back(std::move(value));
    part_->known_.emplace_back();
  }

  void AddConstant(const std::string& name, const Tensor& tensor) {
    Add(name, {.type = tensor.type(), .dims = tensor.dims(), .constant = tensor});
    part_->known_.back() = tensor.is_fill() ? tensor.Copy() : tensor;
  }

  void ReadInput(const onnx::ValueInfoProto& input) {
    const onnx::TypeProto::Tensor& type = input.type().tensor_type();
    PlainValue value{.type = static_cast<DataType>(type.elem_type())};
    if (type.has_shape()) {
      value.dims.emplace();
      for (const auto& dim : type.shape().dim()) {
        if (value.dims && dim.has_dim_value()) {
          value.dims->push_back(dim.dim_value());
        } else {
          value.dims.reset();
        }
      }
    }
    part_->inputs_.push_back(values_.size());
    Add(input.name(), std::move(value));
  }

  // A compressed constant (importer/write/compressed_nodes.h).
  bool ReadCompressed(const onnx::NodeProto& node) {
    std::vector<Tensor> constants;
    for (const std::string& name : node.input()) {
      const auto found = places_.find(name);
      if (found == places_.end() || !values_[found->second].constant) return false;
      constants.push_back(*values_[found->second].constant);
    }
    if (constants.size() < 2) return false;
    const auto attribute = [&](absl::string_view name, int64_t otherwise) {
      const onnx::AttributeProto* const found = FindAttribute(node, name);
      return found == nullptr ? otherwise : found->i();
    };
    auto made =
        Dequantized(constants[0], constants[1], constants.size() > 2 ? &constants[2] : nullptr,
                    attribute("axis", 1), attribute("block_size", 0));
    if (!made.ok()) return false;
    AddConstant(node.output(0), *made);
    return true;
  }

  bool ReadNode(const onnx::NodeProto& node) {
    if (node.op_type() == "DequantizeLinear") return ReadCompressed(node);
    const std::string& made = node.output_size() > 0 ? node.output(0) : node.name();
    Step step{.label = node.name().empty()
                           ? absl::StrCat("node (", node.op_type(), ") that makes '", made, "'")
                           : absl::StrCat("node '", node.name(), "' (", node.op_type(), ")")};
    std::vector<PlainValue> inputs;
    for (const std::string& name : node.input()) {
      const auto found = places_.find(name);
      if (found == places_.end() && !name.empty()) return false;
      step.from.push_back(name.empty() ? kLeftOut : found->second);
      inputs.push_back(name.empty() ? PlainValue() : values_[found->second]);
    }
    for (int i = 0; i < node.output_size(); ++i) {
      if (node.output(i).empty()) continue;
      std::optional<PlainStep> made = MakePlainStep(node, i, step.label, inputs);
      if (!made) return false;
      step.to = values_.size();
      step.run = std::move(made->run);
      part_->steps_.push_back(step);
      Add(node.output(i), {.type = made->type, .dims = std::move(made->dims), .constant = {}});
    }
    return true;
  }

  void FindLastReads() {
    std::vector<bool> is_read(values_.size());
    for (const size_t value : part_->outputs_) is_read[value] = true;
    for (auto step = part_->steps_.rbegin(); step != part_->steps_.rend(); ++step) {
      for (const size_t value : step->from) {
        if (value == kLeftOut) continue;
        if (!is_read[value]) step->last_read.push_back(value);
        is_read[value] = true;
      }
    }
  }

  const onnx::GraphProto& graph_;
  std::unique_ptr<PlainPart> part_ = std::make_unique<PlainPart>();
  std::map<std::string, size_t> places_;
  std::vector<PlainValue> values_;
};

std::unique_ptr<PlainPart> PlainPart::Of(const OnnxModel& model) {
  std::unique_ptr<PlainPart> part = Reader(model).Read();
  if (part != nullptr && !model.external.empty()) part->model_ = model;
  return part;
}

std::shared_ptr<const PlainPart> PlainPart::WithConstant(absl::string_view name,
                                                         const Tensor& tensor) const {
  OnnxModel changed = model_;
  for (ExternalConstant& constant : changed.external) {
    const Tensor& before = constant.tensor;
    if (constant.name != name || before.type() != tensor.type() || before.dims() != tensor.dims()) {
      continue;
    }
    constant.tensor = tensor;
    return Of(changed);
  }
  return nullptr;
}

bool PlainPart::MayBe(const Graph& graph, absl::Span<const NodeId> nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    return graph.nodes[id].domain.empty() && MayBePlain(graph.nodes[id].op_type);
  });
}

absl::StatusOr<std::vector<Tensor>> PlainPart::Run(std::vector<Tensor> inputs) const {
  std::vector<Tensor> values(known_.size());
  std::vector<const Tensor*> at(known_.size());
  for (size_t i = 0; i < known_.size(); ++i) at[i] = known_[i] ? &*known_[i] : &values[i];
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& input = values[inputs_[i]];
    input = inputs[i].is_fill() ? inputs[i].Copy() : std::move(inputs[i]);
  }
  std::vector<const Tensor*> operands;
  for (const Step& step : steps_) {
    operands.clear();
    for (const size_t value : step.from) {
      operands.push_back(value == kLeftOut ? nullptr : at[value]);
    }
    ANEMONE_ASSIGN_OR_RETURN(values[step.to], step.run(operands));
    // Memory that is free early is used again, and the system does not take it back.
    for (const size_t value : step.last_read) values[value] = Tensor();
  }
  std::vector<Tensor> results;
  results.reserve(outputs_.size());
  for (const size_t value : outputs_) results.push_back(*at[value]);
  return results;
}

}  // namespace anemone
