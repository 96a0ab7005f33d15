#include "kernels/mil/mil_operands.h"

#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "kernels/elementwise/elementwise.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

// An operand of a MIL call: a number, a constant tensor, or a port. `argument` is the index of the
// argument, if the operand is one.
struct MilOperand {
  MilTensor tensor;
  std::optional<float> number;
  size_t argument = 0;
};

absl::StatusOr<std::vector<MilOperand>> ReadOperands(MilContext& c,
                                                     absl::Span<const char* const> names) {
  std::vector<MilOperand> operands;
  size_t next = 0;
  for (const char* name : names) {
    MilOperand& operand = operands.emplace_back();
    if (!c.Has(name)) {
      if (next == c.arguments()) {
        return absl::InvalidArgumentError(
            absl::StrCat(c.call().op, ": operand '", name, "' is missing"));
      }
      operand.argument = next;
      operand.tensor = c.call().arguments[next++];
      if (!operand.tensor.constant && operand.tensor.dtype == "uint8") {
        return c.Refuse(rule::kElementwiseFormat, name, operand.tensor.dtype);
      }
    } else if (c.call().attributes.at(name).is_number()) {
      ANEMONE_ASSIGN_OR_RETURN(operand.number, c.Number(name, 0));
    } else {
      ANEMONE_ASSIGN_OR_RETURN(std::optional<MilTensor> constant, c.Constant(name));
      if (constant) operand.tensor = *constant;
    }
  }
  if (next != c.arguments()) {
    return absl::InvalidArgumentError(
        absl::StrCat(c.call().op, ": want ", next, " arguments, got ", c.arguments()));
  }
  return operands;
}

absl::StatusOr<std::vector<int64_t>> CommonShape(MilContext& c,
                                                 const std::vector<MilOperand>& operands) {
  MilCall all{.op = c.call().op, .arguments = {}};
  for (const MilOperand& operand : operands) all.arguments.push_back(operand.tensor);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                           MilContext(all, c.target(), c.route(), c.rewrites()).CommonShape());
  if (shape.size() > kMaxRank) {
    return c.Refuse(shape.size() == kMaxRank + 1 ? rule::kRank : rule::kRankAbove6);
  }
  return shape;
}

}  // namespace

absl::StatusOr<BroadcastOperands> OperandsOf(MilContext& c, absl::Span<const char* const> names) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<MilOperand> read, ReadOperands(c, names));
  BroadcastOperands made;
  ANEMONE_ASSIGN_OR_RETURN(made.shape, CommonShape(c, read));
  for (const MilOperand& operand : read) {
    Operand x;
    if (operand.number) {
      x = ScalarConstant(c, *operand.number);
    } else if (operand.tensor.constant) {
      ANEMONE_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(operand.tensor));
      x = AlignedConstant(c, zeros, made.shape);
    } else {
      x = c.Aligned(operand.argument, made.shape);
    }
    made.operands.push_back(x);
  }
  return made;
}

absl::StatusOr<std::vector<bool>> MaskOf(MilContext& c, absl::string_view key, size_t count) {
  std::vector<bool> mask(count, false);
  c.Ignore(key);
  auto found = c.call().attributes.find(key);
  if (found == c.call().attributes.end()) return mask;
  bool wanted = found->is_array() && found->size() == count;
  for (size_t i = 0; wanted && i < count; ++i) {
    wanted = (*found)[i].is_boolean();
    mask[i] = wanted && (*found)[i].get<bool>();
  }
  if (wanted) return mask;
  const absl::Status status = Unwanted(absl::StrCat(count, " booleans"), *found);
  return absl::InvalidArgumentError(
      absl::StrCat(c.call().op, ", attribute '", key, "': ", std::string(status.message())));
}

}  // namespace anemone
