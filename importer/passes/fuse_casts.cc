#include <optional>

#include "importer/passes/passes.h"

namespace anemone {
namespace {

// The numbers that a type represents exactly: integers of `bits` bits, with or without a sign, and
// for floating types a range of exponents.
struct Span {
  int bits = 0;
  bool is_signed = false;
  int exponent_bits = 0;  // 0: an integer
};

std::optional<Span> SpanOf(DataType type) {
  switch (type) {
    case DataType::kBool:
      return Span{1, false, 0};
    case DataType::kUInt8:
      return Span{8, false, 0};
    case DataType::kInt8:
      return Span{7, true, 0};
    case DataType::kUInt16:
      return Span{16, false, 0};
    case DataType::kInt16:
      return Span{15, true, 0};
    case DataType::kUInt32:
      return Span{32, false, 0};
    case DataType::kInt32:
      return Span{31, true, 0};
    case DataType::kUInt64:
      return Span{64, false, 0};
    case DataType::kInt64:
      return Span{63, true, 0};
    case DataType::kFloat16:
      return Span{11, true, 5};
    case DataType::kBFloat16:
      return Span{8, true, 8};
    case DataType::kFloat:
      return Span{24, true, 8};
    case DataType::kDouble:
      return Span{53, true, 11};
    default:
      return std::nullopt;
  }
}

// True if `to` can represent every number of `from`.
bool Widens(DataType from, DataType to) {
  const auto a = SpanOf(from);
  const auto b = SpanOf(to);
  if (!a.has_value() || !b.has_value() || to == DataType::kBool) return from == to;
  return a->bits <= b->bits && a->exponent_bits <= b->exponent_bits &&
         (b->is_signed || !a->is_signed);
}

}  // namespace

// Cast(Cast(x)) -> Cast(x). Requires: the first Cast widens, so that it loses nothing and its type
// does not affect the second Cast. Keeps: origins of both, if the first has no other reader.
absl::StatusOr<bool> FuseCasts(GraphEditor& g, NodeId id) {
  Node& second = g.node(id);
  if (!second.domain.empty() || second.op_type != "Cast") return false;
  Node* first = g.ProducerOf(second.inputs[0]);
  if (first == nullptr || first == &second || !first->domain.empty()) return false;
  if (first->op_type != "Cast") return false;
  const DataType from = g.value(first->inputs[0]).type;
  const DataType middle = g.value(first->outputs[0]).type;
  if (from == DataType::kUndefined || !Widens(from, middle)) return false;
  if (g.HasOneUse(first->outputs[0])) second.origins = UnionOfOrigins(*first, second);
  g.SetInput(id, 0, first->inputs[0]);
  return true;
}

}  // namespace anemone
