#include "kernels/lowering.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/status_macros.h"
#include "importer/elements.h"
#include "kernels/integers.h"
#include "kernels/units/goc.h"
#include "kernels/units/transpose.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

bool EngineHolds(DataType type) {
  return type == DataType::kFloat || type == DataType::kFloat16 || type == DataType::kBFloat16 ||
         type == DataType::kBool;
}

using LoweringIndex = absl::flat_hash_map<std::string, std::vector<const Lowering*>>;

std::string OperatorKey(absl::string_view domain, absl::string_view op) {
  return absl::StrCat(domain, ":", op);
}

LoweringIndex MakeIndex() {
  LoweringIndex index;
  for (auto [pattern, rewritten] : {std::pair(true, false), std::pair(true, true),
                                    std::pair(false, false), std::pair(false, true)}) {
    for (const KernelRows& rows : AllKernelRows()) {
      for (const Lowering& row : rows.lowerings) {
        if ((row.match != nullptr) == pattern && row.rewritten == rewritten) {
          index[OperatorKey(row.domain, row.op)].push_back(&row);
        }
      }
    }
  }
  return index;
}

}  // namespace

GraphView::GraphView(const Graph& g)
    : graph(g), consumers(ConsumersOf(g)), is_output(g.values.size()) {
  for (ValueId v : g.outputs) is_output[v] = true;
}

const Node* GraphView::Producer(ValueId value, absl::string_view op) const {
  if (value == kNone || graph.values[value].producer == kNone) return nullptr;
  const Node& node = graph.nodes[graph.values[value].producer];
  return node.op_type == op && node.domain.empty() ? &node : nullptr;
}

const Node* GraphView::OnlyProducer(ValueId value, absl::string_view op) const {
  const Node* node = Producer(value, op);
  if (node == nullptr || consumers[value].size() != 1 || is_output[value]) return nullptr;
  return node;
}

const Tensor* GraphView::Constant(ValueId value) const {
  if (value == kNone || !graph.values[value].constant) return nullptr;
  return &*graph.values[value].constant;
}

std::optional<double> GraphView::Scalar(ValueId value) const {
  const Tensor* t = Constant(value);
  if (t == nullptr || t->elements() != 1) return std::nullopt;
  if (IsFloating(t->type())) return ElementAsDouble(*t, 0);
  if (t->type() == DataType::kInt64) return static_cast<double>(t->at<int64_t>(0));
  if (t->type() == DataType::kInt32) return t->at<int32_t>(0);
  return std::nullopt;
}

const std::vector<IntegerRange>& GraphView::Ranges() const {
  if (ranges_.empty()) ranges_ = IntegerRangesOf(graph);
  return ranges_;
}

const IntegerRange& GraphView::RangeOf(ValueId value) const { return Ranges()[value]; }

const FloatFacts& GraphView::Floats() const {
  if (!floats_) floats_ = FloatFactsOf(graph, Ranges());
  return *floats_;
}

const BeyondFacts& GraphView::Beyond() const {
  if (!beyond_) beyond_.emplace(graph, Floats());
  return *beyond_;
}

absl::StatusOr<std::vector<int64_t>> LowerContext::ShapeOf(ValueId value) {
  const Value& v = graph().values[value];
  if (v.shape && v.shape->size() > kMaxRank) {
    return Refuse(v.shape->size() == kMaxRank + 1 ? rule::kRank : rule::kRankAbove6);
  }
  if (!v.is_static()) return Refuse(rule::kSymbolicShape);
  return v.dims();
}

// Integers that may be held have a magnitude of at most 2048, so float represents them exactly.
Tensor LowerContext::Held(const Tensor& constant) const {
  if (!integers_ || !IsHeldInteger(constant.type())) return constant;
  const bool is_fill = constant.is_fill();
  const Tensor elements =
      is_fill ? Tensor::View(constant.type(), {1}, constant.bytes(), constant.owner()) : constant;
  const auto numbers = ToNumbers(elements, elements.elements());
  const std::vector<float> floats(numbers->begin(), numbers->end());
  if (!is_fill) return Tensor::Floats(constant.dims(), floats);
  return Tensor::Fill(
      DataType::kFloat, constant.dims(),
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(floats.data()), sizeof(float)));
}

absl::Status LowerContext::CheckType(DataType type) {
  if (EngineHolds(type) || (integers_ && IsHeldInteger(type))) return absl::OkStatus();
  if (type == DataType::kDouble) {
    return Refuse(OwnRefusal(Layer::kCoverage, "stays-double",
                             "double is computed exactly on the CPU; fp16 would lose precision",
                             "cast to float32 if float32 is precise enough"));
  }
  return Refuse(rule::kPortFormat);
}

Format PortFormat(const Value& value) {
  const bool is_input = value.producer == kNone && !value.constant;
  return is_input && value.type == DataType::kUInt8 ? Format::kUInt8 : Format::kFloat16;
}

Operand LowerContext::In(ValueId value) {
  const Operand stored = InAsStored(value);
  if (!ok() || BottomOf(stored).format != Format::kUInt8) return stored;
  const auto [converted, is_new] = converted_.try_emplace(value);
  if (is_new) converted->second = ScaleAndShift(*this, stored, 1, 0);
  return converted->second;
}

Operand LowerContext::InAsStored(ValueId value) {
  auto found = ports_.find(value);
  if (found != ports_.end()) return found->second;
  const Value& v = graph().values[value];
  ANEMONE_FAIL_IF_ERROR(*this, CheckType(v.type));
  ANEMONE_ASSIGN_OR_FAIL(*this, std::vector<int64_t> shape, ShapeOf(value));
  if (std::count(shape.begin(), shape.end(), 0) > 0) return Refuse(rule::kEmptyTensor);
  Dims dims = PlaceShape(shape);
  Operand operand;
  if (v.constant) {
    // A fill stores one element; Reshaped() changes only its shape.
    Tensor tensor = Held(v.constant->is_fill() ? v.constant->Reshaped(shape) : *v.constant);
    if (shape.size() < kMaxRank) {
      operand = AddConstant(std::move(tensor), dims);
    } else {  // the constant is stored in ONNX's order N, C, D, H, W
      Operand stored =
          AddConstant(std::move(tensor), Dims{{dims.n(), dims.c(), dims.d(), dims.h(), dims.w()}});
      operand = SwapAxes(*this, stored, Axis::kD, Axis::kC);
    }
  } else {
    operand = AddInput(v.name, dims, PortFormat(v));
    inputs_.push_back(value);
  }
  ports_.emplace(value, operand);
  return operand;
}

absl::Status LowerContext::Out(ValueId value, const Operand& from) {
  ANEMONE_RETURN_IF_ERROR(status());
  ANEMONE_RETURN_IF_ERROR(CheckType(graph().values[value].type));
  return AddGraphOutput(value, from);
}

absl::Status LowerContext::OutIndex(ValueId value, const Operand& from, int64_t count) {
  ANEMONE_RETURN_IF_ERROR(status());
  DataType type = graph().values[value].type;
  if (type != DataType::kInt64 && type != DataType::kInt32) return Refuse(rule::kPortFormat);
  if (count <= fp16::kLargestExactInteger) return AddGraphOutput(value, from);
  for (const Unit& unit : network().units) {
    Verdict verdict = CheckUnit(unit, network().BottomsOf(unit), target(), route());
    if (!verdict.accepted) return Refuse(std::move(verdict));
  }
  return NotLowered("indices above 2047, which fp16 cannot represent exactly");
}

absl::Status LowerContext::AddGraphOutput(ValueId value, const Operand& from) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ShapeOf(value));
  if (Dims want = PlaceShape(shape); DimsOf(from) != want) {
    return absl::InternalError(absl::StrCat("value '", graph().values[value].name, "': lowered to ",
                                            DimsToString(DimsOf(from)), ", want ",
                                            DimsToString(want)));
  }
  AddOutput(graph().values[value].name, from);
  outputs_.push_back(value);
  return absl::OkStatus();
}

std::vector<std::string> UnitTypes() {
  std::vector<std::string> types;
  for (const KernelRows& rows : AllKernelRows()) {
    for (const UnitKind* kind : rows.kinds) types.emplace_back(kind->type);
  }
  std::sort(types.begin(), types.end());
  return types;
}

const UnitKind* FindUnitKind(absl::string_view type) {
  for (const KernelRows& rows : AllKernelRows()) {
    for (const UnitKind* kind : rows.kinds) {
      if (kind->type == type) return kind;
    }
  }
  return nullptr;
}

const std::vector<const Lowering*>& LoweringsOf(absl::string_view domain, absl::string_view op) {
  static const LoweringIndex& index = *new LoweringIndex(MakeIndex());
  static const std::vector<const Lowering*>& none = *new std::vector<const Lowering*>;
  auto found = index.find(OperatorKey(domain, op));
  return found == index.end() ? none : found->second;
}

int64_t MacsOf(const Graph& graph, const Node& node) {
  for (ValueId v : node.inputs) {
    if (v != kNone && !graph.values[v].is_static()) return 0;
  }
  for (ValueId v : node.outputs) {
    if (v != kNone && !graph.values[v].is_static()) return 0;
  }
  for (const Lowering* row : LoweringsOf(node.domain, node.op_type)) {
    if (row->macs != nullptr) return row->macs(graph, node);
  }
  return 0;
}

}  // namespace anemone
