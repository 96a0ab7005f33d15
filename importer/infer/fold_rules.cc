#include "importer/infer/fold_rules.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/saturated.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/importer.h"
#include "importer/infer/infer.h"
#include "importer/operators/operators.h"
#include "importer/read/check.h"

namespace anemone {
namespace {

// The limit, in bytes, for the inputs of a folded node whose output size depends on its data.
constexpr int64_t kLargestDataDependent = int64_t{1} << 20;
// The number of elements that MayTrap() checks at most.
constexpr int64_t kMostDivisors = int64_t{1} << 20;

// The output's dims, which must be static; an error if the number of elements overflows.
absl::StatusOr<std::vector<int64_t>> CountableDims(const Model& model, const Node& node,
                                                   const Value& output) {
  std::vector<int64_t> dims = output.dims();
  const absl::StatusOr<int64_t> count = ElementCount(dims);
  if (count.ok()) return dims;
  return absl::InvalidArgumentError(absl::StrCat(NodeLabel(model, node), ": output '", output.name,
                                                 "': ", count.status().message(), kCheckerRemedy));
}

std::optional<Tensor> FromShapeData(const ShapeData& data, ValueId id, const Value& value) {
  const auto known = data.find(id);
  if (known == data.end()) return std::nullopt;
  std::vector<int64_t> elements;
  for (const auto& dim : known->second.dim()) {
    if (!dim.has_dim_value()) return std::nullopt;
    elements.push_back(dim.dim_value());
  }
  if (value.type == DataType::kInt64) return Tensor::Int64s(value.dims(), elements);
  const std::vector<int32_t> narrow(elements.begin(), elements.end());
  return Tensor::Of<int32_t>(DataType::kInt32, value.dims(), narrow);
}

// ConstantOfShape of `dims`.
Tensor FillOf(const Node& node, std::vector<int64_t> dims) {
  const Attribute* attribute = node.FindAttribute("value");
  const auto* value = attribute == nullptr ? nullptr : std::get_if<Tensor>(&attribute->value);
  if (value == nullptr || value->elements() != 1) {
    const float zero = 0;
    return Tensor::Fill(DataType::kFloat, std::move(dims),
                        {reinterpret_cast<const std::byte*>(&zero), sizeof(zero)});
  }
  return Tensor::Fill(value->type(), std::move(dims), value->bytes());
}

constexpr int64_t kBytesOfString = sizeof(std::string);  // beside its characters

// The longest string of a constant.
int64_t LongestString(const Value& value) {
  size_t longest = 0;
  if (value.constant.has_value()) {
    for (const std::string& text : value.constant->strings()) {
      longest = std::max(longest, text.size());
    }
  }
  return static_cast<int64_t>(longest);
}

// The bytes of all elements, which an evaluator reads; 0 if their number is not known.
int64_t ElementBytesOf(const Value& value) {
  if (value.type == DataType::kString && value.constant.has_value()) {
    int64_t bytes = 0;
    for (const std::string& text : value.constant->strings()) {
      bytes += kBytesOfString + static_cast<int64_t>(text.size());
    }
    return bytes;
  }
  return value.is_static() && ElementCount(value.dims()).ok() ? ByteSize(value.type, value.dims())
                                                              : 0;
}

// The bytes that a value occupies; a fill occupies one element.
int64_t BytesOf(const Value& value) {
  if (value.constant.has_value() && value.constant->is_fill()) {
    return static_cast<int64_t>(value.constant->bytes().size());
  }
  return ElementBytesOf(value);
}

// The most elements that an output can have whose size depends on data: NonZero lists one index for
// each axis, NonMaxSuppression three for each score, the others make no more elements than they
// read.
int64_t MostElements(const Graph& graph, const Node& node) {
  int64_t most = 0;
  for (ValueId id : node.inputs) {
    if (id == kNone || !graph.values[id].is_static()) continue;
    const std::vector<int64_t> dims = graph.values[id].dims();
    const auto numbers = std::max<int64_t>(static_cast<int64_t>(dims.size()), 3);
    const absl::StatusOr<int64_t> elements = ElementCount(dims);
    if (elements.ok()) most = std::max(most, SaturatedProduct(numbers, *elements));
  }
  return most;
}

// The most bytes of one element of an output. The operators on strings copy, join or split those
// that they read, or write a number.
int64_t MostElementBytes(const Graph& graph, const Node& node, DataType type) {
  if (type != DataType::kString) return std::max(BitsOf(type) / 8, 1);
  constexpr int64_t kLongestNumber = 32;
  int64_t characters = kLongestNumber;
  for (ValueId id : node.inputs) {
    if (id != kNone) characters += LongestString(graph.values[id]);
  }
  return kBytesOfString + characters;
}

// The most bytes that all outputs can take; nullopt if that is not known.
std::optional<int64_t> MostResultBytes(const Graph& graph, const Node& node) {
  int64_t bytes = 0;
  for (ValueId id : node.outputs) {
    if (id == kNone) continue;
    const Value& value = graph.values[id];
    int64_t elements = 0;
    if (value.is_static()) {
      const absl::StatusOr<int64_t> count = ElementCount(value.dims());
      if (!count.ok()) return std::nullopt;
      elements = *count;
    } else if (OperatorOf(node).sized_by_data) {
      elements = MostElements(graph, node);
    } else {
      return std::nullopt;
    }
    if (value.is_static() && value.type != DataType::kString) {
      bytes = SaturatedSum(bytes, ByteSize(value.type, value.dims()));
    } else {
      bytes = SaturatedSum(bytes,
                           SaturatedProduct(elements, MostElementBytes(graph, node, value.type)));
    }
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::optional<Tensor>> FoldByRule(const Model& model, const Graph& graph,
                                                 const ShapeData& data, const Node& node) {
  std::optional<Tensor> none;
  if (!node.domain.empty() || node.outputs.size() != 1 || node.outputs[0] == kNone) return none;
  const Value& output = graph.values[node.outputs[0]];
  if (!output.is_static() || output.type == DataType::kUndefined) return none;
  if (auto known = FromShapeData(data, node.outputs[0], output); known.has_value()) return known;
  const ValueId input = InputOr(node, 0);
  if (input == kNone) return none;
  if (node.op_type == "Size" && graph.values[input].is_static()) {
    ANEMONE_ASSIGN_OR_RETURN(const auto dims, CountableDims(model, node, graph.values[input]));
    return Tensor::Int64s({}, {*ElementCount(dims)});
  }
  if (IsSizedInRun(graph, node)) return none;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> dims, CountableDims(model, node, output));
  if (node.op_type == "ConstantOfShape") return FillOf(node, std::move(dims));
  const std::optional<Tensor>& source = graph.values[input].constant;
  if (!source.has_value() || source->type() == DataType::kString) return none;
  const Moves moves = OperatorOf(node).moves;
  if (moves == Moves::kInOrder && *ElementCount(dims) == source->elements()) {
    return source->Reshaped(std::move(dims));
  }
  const bool uniform =
      source->is_fill() || (source->elements() == 1 && BitsOf(source->type()) >= 8);
  if (moves == Moves::kByShape && uniform) {
    return Tensor::Fill(source->type(), std::move(dims), source->bytes());
  }
  return none;
}

bool IsDeterministic(const Node& node) {
  if (!node.domain.empty() || node.version != kWorkingOpset || !BodiesOf(node).empty())
    return false;
  const onnx::OpSchema* schema = SchemaOf(node.domain, node.op_type, node.version);
  return schema != nullptr &&
         schema->GetNodeDeterminism() != onnx::OpSchema::NodeDeterminism::NonDeterministic;
}

bool MakesPlainTensors(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    if (id == kNone) return true;
    const Value& value = graph.values[id];
    if (!value.other_type.empty()) return false;
    return value.type != DataType::kUndefined && value.type <= DataType::kBFloat16 &&
           value.type != DataType::kComplex64 && value.type != DataType::kComplex128;
  });
}

bool ComputesFromNothing(const Graph& graph, const Node& node) {
  if (!HasInput(node, 0)) return false;
  const Value& value = graph.values[node.inputs[0]];
  if (!IsFloating(value.type) || !value.shape.has_value()) return false;
  return std::any_of(value.shape->begin(), value.shape->end(),
                     [](const Dim& dim) { return dim.size == 0; });
}

bool DividesIntegers(const Graph& graph, const Node& node) {
  return OperatorOf(node).divides_integers && !IsFloating(graph.values[node.inputs[1]].type);
}

namespace {

// True if an element consists of these bytes: `last` is the most significant, `rest` all others.
bool HasElement(const Tensor& tensor, std::byte rest, std::byte last) {
  const size_t size = BitsOf(tensor.type()) / 8;
  const absl::Span<const std::byte> bytes = tensor.bytes();
  for (size_t i = 0; i + size <= bytes.size(); i += size) {
    const auto lower = bytes.subspan(i, size - 1);
    if (bytes[i + size - 1] == last &&
        std::all_of(lower.begin(), lower.end(), [&](std::byte b) { return b == rest; })) {
      return true;
    }
  }
  return false;
}

bool HasZero(const Tensor& tensor) { return HasElement(tensor, std::byte{0}, std::byte{0}); }

bool HasMinusOne(const Tensor& tensor) {
  return HasElement(tensor, std::byte{0xff}, std::byte{0xff});
}

}  // namespace

bool MayTrap(const Tensor& divisor) {
  return divisor.elements() > kMostDivisors || HasZero(divisor) || HasMinusOne(divisor);
}

bool Traps(const Tensor& dividend, const Tensor& divisor) {
  const bool is_wide = divisor.type() == DataType::kInt32 || divisor.type() == DataType::kInt64;
  return HasZero(divisor) ||
         (is_wide && HasMinusOne(divisor) && HasElement(dividend, std::byte{0}, std::byte{0x80}));
}

void MakeConstants(Graph& graph, const Node& node, std::vector<Tensor> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (node.outputs[i] != kNone) {
      MakeConstant(graph.values[node.outputs[i]], std::move(values[i]));
    }
  }
}

int64_t ResultBytes(const Graph& graph, const Node& node) {
  return MostResultBytes(graph, node).value_or(0);
}

std::optional<int64_t> GrowthOf(const Graph& graph, const Node& node) {
  int64_t taken = 0;
  int64_t read = 0;
  for (auto input = node.inputs.begin(); input != node.inputs.end(); ++input) {
    // What is read twice is there once.
    if (*input == kNone || std::find(node.inputs.begin(), input, *input) != input) continue;
    const Value& value = graph.values[*input];
    taken += BytesOf(value);
    read += ElementBytesOf(value);
    // A fill is expanded for the evaluator.
    if (value.constant.has_value() && value.constant->is_fill() &&
        ByteSize(value.type, value.constant->dims()) > kLargestFolded) {
      return std::nullopt;
    }
  }
  const std::optional<int64_t> made = MostResultBytes(graph, node);
  if (!made.has_value()) return std::nullopt;
  const bool sized_by_data = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
    return id != kNone && !graph.values[id].is_static();
  });
  if (sized_by_data && read > kLargestDataDependent) return std::nullopt;
  if (!sized_by_data && *made > kLargestFolded && *made > taken) return std::nullopt;
  return std::max<int64_t>(*made - taken, 0);
}

Tensor WithShare(const Tensor& tensor, const std::shared_ptr<const void>& share) {
  if (share.use_count() == 0 || tensor.type() == DataType::kString) return tensor;
  using Both = std::pair<Tensor, std::shared_ptr<const void>>;
  return Tensor::View(tensor.type(), tensor.dims(), tensor.bytes(),
                      std::make_shared<const Both>(tensor, share));
}

}  // namespace anemone
