#include "provider/plain_part.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/bool_element.h"
#include "base/status_macros.h"
#include "importer/read/tensor_reader.h"

namespace anemone {
namespace {

constexpr absl::string_view kGather = "Gather", kCast = "Cast";

bool IsIndex(DataType type) { return type == DataType::kInt32 || type == DataType::kInt64; }

// Of casts.
bool IsFrom(DataType type) {
  return IsIndex(type) || type == DataType::kBool || type == DataType::kUInt8;
}
bool IsTo(DataType type) {
  return IsIndex(type) || type == DataType::kBool || type == DataType::kFloat;
}

int64_t IndexAt(const Tensor& indices, int64_t i) {
  return indices.type() == DataType::kInt32 ? indices.at<int32_t>(i) : indices.at<int64_t>(i);
}

absl::StatusOr<Tensor> RowsOf(const Tensor& table, const Tensor& indices,
                              const std::string& label) {
  const int64_t rows = table.dims()[0];
  std::vector<int64_t> dims = indices.dims();
  dims.insert(dims.end(), table.dims().begin() + 1, table.dims().end());
  Tensor made = Tensor::Uninitialized(table.type(), std::move(dims));
  const std::byte* const from = table.bytes().data();
  const size_t bytes = rows == 0 ? 0 : table.bytes().size() / rows;
  auto* to = made.mutable_data<std::byte>();
  for (int64_t i = 0; i < indices.elements(); ++i, to += bytes) {
    const int64_t index = IndexAt(indices, i);
    if (index < -rows || index >= rows) {
      return absl::InvalidArgumentError(  // in ONNX Runtime's words
          absl::StrCat(label, ": indices element out of data bounds, idx=", index,
                       " must be within the inclusive range [", -rows, ",", rows - 1, "]"));
    }
    if (bytes > 0) std::memcpy(to, from + (index < 0 ? index + rows : index) * bytes, bytes);
  }
  return made;
}

template <class From, class To>
void CastEach(const Tensor& x, Tensor& made) {
  auto* const to = made.mutable_data<To>();
  for (int64_t i = 0; i < x.elements(); ++i) {
    From value = {};
    if constexpr (std::is_same_v<From, bool>) {
      value = BoolAt(x, i);
    } else {
      value = x.at<From>(i);
    }
    if constexpr (std::is_same_v<To, bool>) {
      to[i] = value != 0;
    } else {
      to[i] = static_cast<To>(value);
    }
  }
}

template <class From>
Tensor CastFrom(const Tensor& x, DataType type) {
  Tensor made = Tensor::Uninitialized(type, x.dims());
  switch (type) {
    case DataType::kFloat:
      CastEach<From, float>(x, made);
      break;
    case DataType::kInt32:
      CastEach<From, int32_t>(x, made);
      break;
    case DataType::kInt64:
      CastEach<From, int64_t>(x, made);
      break;
    default:
      CastEach<From, bool>(x, made);
  }
  return made;
}

Tensor CastOf(const Tensor& x, DataType type) {
  switch (x.type()) {
    case DataType::kInt32:
      return CastFrom<int32_t>(x, type);
    case DataType::kInt64:
      return CastFrom<int64_t>(x, type);
    case DataType::kBool:
      return CastFrom<bool>(x, type);
    default:
      return CastFrom<uint8_t>(x, type);
  }
}

int64_t IntAttribute(const onnx::NodeProto& node, absl::string_view name, int64_t otherwise) {
  const onnx::AttributeProto* const attribute = FindAttribute(node, name);
  return attribute == nullptr ? otherwise : attribute->i();
}

}  // namespace

class PlainPart::Reader {
 public:
  explicit Reader(const OnnxModel& model) : graph_(model.proto.graph()) {
    const TensorReader reader(nullptr, nullptr);
    for (const onnx::TensorProto& constant : graph_.initializer()) {
      auto tensor = reader.Read(constant, constant.name());  // an error: it is external
      if (tensor.ok()) tables_.emplace(constant.name(), *std::move(tensor));
    }
    for (const ExternalConstant& constant : model.external) {
      tables_.insert_or_assign(constant.name, constant.tensor);
    }
  }

  std::unique_ptr<PlainPart> Read() {
    for (const onnx::ValueInfoProto& input : graph_.input()) {
      Add(input.name(), static_cast<DataType>(input.type().tensor_type().elem_type()));
    }
    part_->inputs_ = types_.size();
    for (const onnx::NodeProto& node : graph_.node()) {
      if (!node.domain().empty() || node.output_size() != 1) return nullptr;
      const bool is_read = node.op_type() == kGather ? ReadGather(node)
                           : node.op_type() == kCast ? ReadCast(node)
                                                     : false;
      if (!is_read) return nullptr;
      part_->steps_.back().label = absl::StrCat("node '", node.name(), "' (", node.op_type(), ")");
    }
    for (const onnx::ValueInfoProto& output : graph_.output()) {
      const auto found = places_.find(output.name());
      if (found == places_.end()) return nullptr;
      part_->outputs_.push_back(found->second);
    }
    return std::move(part_);
  }

 private:
  void Add(const std::string& name, DataType type) {
    places_.emplace(name, types_.size());
    types_.push_back(type);
  }

  bool ReadGather(const onnx::NodeProto& node) {
    const auto table = tables_.find(node.input(0));
    const auto indices = places_.find(node.input(1));
    if (table == tables_.end() || indices == places_.end()) return false;
    const Tensor& rows = table->second;
    const auto rank = static_cast<int64_t>(rows.dims().size());
    const int64_t axis = IntAttribute(node, "axis", 0);
    if (rank == 0 || (axis != 0 && axis != -rank) || BitsOf(rows.type()) < 8 || rows.is_fill() ||
        !IsIndex(types_[indices->second])) {
      return false;
    }
    part_->steps_.push_back({.label = "", .from = indices->second, .table = rows});
    Add(node.output(0), rows.type());
    return true;
  }

  bool ReadCast(const onnx::NodeProto& node) {
    const auto from = places_.find(node.input(0));
    const auto type = static_cast<DataType>(IntAttribute(node, "to", 0));
    if (from == places_.end() || !IsFrom(types_[from->second]) || !IsTo(type)) return false;
    part_->steps_.push_back({.label = "", .from = from->second, .table = {}, .type = type});
    Add(node.output(0), type);
    return true;
  }

  const onnx::GraphProto& graph_;
  std::unique_ptr<PlainPart> part_ = std::make_unique<PlainPart>();
  std::map<std::string, Tensor> tables_;
  std::map<std::string, size_t> places_;
  std::vector<DataType> types_;  // by value
};

std::unique_ptr<PlainPart> PlainPart::Of(const OnnxModel& model) { return Reader(model).Read(); }

bool PlainPart::MayBe(const Graph& graph, absl::Span<const NodeId> nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node& node = graph.nodes[id];
    return node.domain.empty() && (node.op_type == kGather || node.op_type == kCast);
  });
}

absl::StatusOr<std::vector<Tensor>> PlainPart::Run(std::vector<Tensor> inputs) const {
  std::vector<Tensor> values = std::move(inputs);
  values.reserve(inputs_ + steps_.size());
  for (const Step& step : steps_) {
    if (step.type != DataType::kUndefined) {
      values.push_back(CastOf(values[step.from], step.type));
      continue;
    }
    ANEMONE_ASSIGN_OR_RETURN(Tensor rows, RowsOf(step.table, values[step.from], step.label));
    values.push_back(std::move(rows));
  }
  std::vector<Tensor> results;
  results.reserve(outputs_.size());
  for (size_t value : outputs_) results.push_back(values[value]);
  return results;
}

}  // namespace anemone
