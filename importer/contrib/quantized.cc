// Replaces quantized operators by DequantizeLinear of their inputs, the float operator, and
// QuantizeLinear of its result. The sum of products of integers minus their zero points is exact
// and scaled afterwards; it differs from the product of the dequantized values only in float
// rounding. If the integers are a result of the model, they must be exact, and the node is kept.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/transpose_bytes.h"
#include "importer/contrib/builders.h"
#include "importer/operators/operators.h"
#include "importer/read/check.h"

namespace anemone {
namespace {

// The indices of a quantized input, its scale and its zero point (which may be omitted).
struct Quantized {
  size_t at = 0, scale = 0, zero = 0;
  int64_t axis = -1;  // of scales, if there may be several
};

Quantized SideBySide(size_t at, int64_t axis = -1) { return {at, at + 1, at + 2, axis}; }

absl::StatusOr<int64_t> CountOf(ContribBody& b, size_t index) {
  ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(index, {0, 1}));
  return dims.empty() ? 1 : dims[0];
}

bool IsQuantizedType(DataType type) {
  return type == DataType::kInt8 || type == DataType::kUInt8 || type == DataType::kInt16 ||
         type == DataType::kUInt16;
}

// Checks scales and zero points: there must be one, or one for each of `extent` elements.
absl::Status CheckScales(ContribBody& b, size_t scale, size_t zero, int64_t extent) {
  ANEMONE_RETURN_IF_ERROR(b.FloatTypeOf(scale).status());
  ANEMONE_ASSIGN_OR_RETURN(const int64_t scales, CountOf(b, scale));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(scales == 1 || scales == extent, "want one scale, or one for each column or channel"));
  if (!b.Has(zero)) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(const int64_t zeros, CountOf(b, zero));
  return b.Need(zeros == scales, "the numbers of scales and zero points differ");
}

absl::Status Check(ContribBody& b, const Quantized& q) {
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Has(q.at) && b.Has(q.scale), "an operand is missing"));
  const DataType type = b.value(b.input(q.at)).type;
  ANEMONE_RETURN_IF_ERROR(b.Need(IsQuantizedType(type), "an operand has an unsupported type"));
  ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(q.at));
  const auto rank = static_cast<int64_t>(dims.size());
  const bool has_axis = q.axis >= 0 && q.axis < rank;
  return CheckScales(b, q.scale, q.zero, has_axis ? dims[q.axis] : 1);
}

// Checks the result's scale, and that the model does not return the result's integers.
absl::Status CheckResult(ContribBody& b, size_t scale) {
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Has(scale), "the result's scale is missing"));
  ANEMONE_RETURN_IF_ERROR(CheckScales(b, scale, scale + 1, 1));
  const bool in_body = &b.graph() != &b.model().graph;
  ANEMONE_RETURN_IF_ERROR(
      b.Need(!in_body, "it is inside a body, which runs on the CPU as a whole"));
  const std::vector<ValueId>& outputs = b.graph().outputs;
  return b.Need(std::find(outputs.begin(), outputs.end(), b.output(0)) == outputs.end(),
                "its integers are an output of the model, so they must be exact");
}

// Input `index`: a scalar if it has one element, else a vector.
ValueId NumbersOf(ContribBody& b, size_t index) {
  const Shape& shape = *b.value(b.input(index)).shape;
  return shape.empty() || shape[0].size > 1 ? b.input(index) : b.Reshape(b.input(index), {});
}

absl::StatusOr<ValueId> Dequantized(ContribBody& b, const Quantized& q) {
  const auto emit = [&] {
    std::vector<ValueId> inputs = {b.input(q.at), NumbersOf(b, q.scale)};
    if (b.Has(q.zero)) inputs.push_back(NumbersOf(b, q.zero));
    return b.Emit("DequantizeLinear", std::move(inputs), {{"axis", std::max<int64_t>(q.axis, 0)}});
  };
  ANEMONE_ASSIGN_OR_RETURN(const Tensor* constant, b.Known(q.at));
  if (constant != nullptr) return emit();
  const ContribBody::Aside aside(b, absl::StrCat("dequantize", q.at));
  return emit();
}

// The operands as floats. All are checked before a node is emitted.
absl::StatusOr<std::vector<ValueId>> Operands(ContribBody& b,
                                              const std::vector<Quantized>& operands) {
  for (const Quantized& q : operands) ANEMONE_RETURN_IF_ERROR(Check(b, q));
  std::vector<ValueId> floats;
  for (const Quantized& q : operands) {
    ANEMONE_ASSIGN_OR_RETURN(floats.emplace_back(), Dequantized(b, q));
  }
  return floats;
}

// Quantizes y to the node's first output, which has type `type`.
absl::Status GiveQuantized(ContribBody& b, ValueId y, size_t scale, DataType type) {
  const ContribBody::Aside aside(b, "quantize");
  std::vector<ValueId> inputs = {y, NumbersOf(b, scale)};
  std::vector<Attribute> attributes;
  if (b.Has(scale + 1)) {
    inputs.push_back(NumbersOf(b, scale + 1));
  } else {
    attributes.push_back({"output_dtype", static_cast<int64_t>(type)});
  }
  return b.EmitLast("QuantizeLinear", std::move(inputs), std::move(attributes));
}

DataType TypeOfInput(const ContribBody& b, size_t index) { return b.value(b.input(index)).type; }

// The attributes that the node shares with `op`, an operator of ONNX. Keep() if the node has other
// attributes that were not read.
absl::StatusOr<std::vector<Attribute>> AttributesFor(ContribBody& b, const char* op) {
  const onnx::OpSchema* schema = SchemaOf("", op, kWorkingOpset);
  std::vector<Attribute> shared;
  for (const Attribute& attribute : b.node().attributes) {
    const bool known = schema != nullptr && schema->attributes().contains(attribute.name);
    if (!known) continue;
    shared.push_back(attribute);
    b.Ignore(attribute.name);
  }
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  return shared;
}

// A bias of int32 is in units of the product of the operands' scales.
ValueId DequantizedBias(ContribBody& b, size_t bias, size_t x_scale, size_t w_scale,
                        float factor = 1) {
  const DataType type = TypeOfInput(b, x_scale);
  ValueId scale = b.Emit("Mul", {NumbersOf(b, x_scale), NumbersOf(b, w_scale)});
  if (factor != 1) scale = b.Emit("Mul", {scale, b.Scalar(type, factor)});
  return b.Emit("Mul",
                {b.Emit("Cast", {b.input(bias)}, {{"to", static_cast<int64_t>(type)}}), scale});
}

absl::Status CheckBias(ContribBody& b, size_t bias) {
  if (!b.Has(bias)) return absl::OkStatus();
  ANEMONE_RETURN_IF_ERROR(b.DimsOf(bias).status());
  return b.Need(TypeOfInput(b, bias) == DataType::kInt32, "the bias is not int32");
}

// The index of the last axis of an operand.
absl::StatusOr<int64_t> LastAxis(ContribBody& b, size_t index) {
  ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(index));
  return static_cast<int64_t>(dims.size()) - 1;
}

}  // namespace

// The inputs are one or two quantized operands, each followed by its scale and zero point, and then
// the scale and zero point of the result.
absl::Status ExpandQLinear(ContribBody& b) {
  const Contrib& row = *OperatorOf(b.node()).contrib;
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Int("channels_last", 0) == 0, "channels_last is not supported"));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Attribute> attributes, AttributesFor(b, row.plain));
  ANEMONE_RETURN_IF_ERROR(CheckResult(b, row.operands * 3));
  std::vector<Quantized> quantized(row.operands);
  for (size_t i = 0; i < row.operands; ++i) quantized[i] = SideBySide(i * 3);
  ANEMONE_ASSIGN_OR_RETURN(std::vector<ValueId> operands, Operands(b, quantized));
  const ValueId y = b.Emit(row.plain, std::move(operands), std::move(attributes));
  return GiveQuantized(b, y, row.operands * 3, TypeOfInput(b, 0));
}

// Before opset 13 Softmax flattens the axes from `axis` on.
absl::Status ExpandQLinearSoftmax(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(const int64_t last, LastAxis(b, 0));
  const int64_t axis = b.Int("axis", -1);
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Int("opset", 0) >= 13 || axis == -1 || axis == last,
             "an opset below 13 with another axis than the last is not supported"));
  return ExpandQLinear(b);
}

absl::Status ExpandQLinearConcat(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Attribute> attributes, AttributesFor(b, "Concat"));
  ANEMONE_RETURN_IF_ERROR(CheckResult(b, 0));
  std::vector<Quantized> quantized;
  for (size_t at = 2; at < b.node().inputs.size(); at += 3) quantized.push_back(SideBySide(at));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<ValueId> operands, Operands(b, quantized));
  const ValueId y = b.Emit("Concat", std::move(operands), std::move(attributes));
  return GiveQuantized(b, y, 0, TypeOfInput(b, 2));
}

// The inputs are the condition, the operands, and the scale and zero point of the result.
absl::Status ExpandQLinearWhere(ContribBody& b) {
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_RETURN_IF_ERROR(CheckResult(b, 7));
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<ValueId> floats,
                           Operands(b, {SideBySide(1), SideBySide(4)}));
  const ValueId y = b.Emit("Where", {b.input(0), floats[0], floats[1]});
  return GiveQuantized(b, y, 7, TypeOfInput(b, 1));
}

absl::Status ExpandQLinearConv(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Attribute> attributes, AttributesFor(b, "Conv"));
  ANEMONE_RETURN_IF_ERROR(CheckResult(b, 6));
  ANEMONE_RETURN_IF_ERROR(CheckBias(b, 8));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<ValueId> operands,
                           Operands(b, {SideBySide(0), SideBySide(3, 0)}));
  if (b.Has(8)) operands.push_back(DequantizedBias(b, 8, 1, 4));
  const ValueId y = b.Emit("Conv", std::move(operands), std::move(attributes));
  return GiveQuantized(b, y, 6, TypeOfInput(b, 0));
}

absl::Status ExpandQLinearMatMul(ContribBody& b) {
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(const int64_t columns, LastAxis(b, 3));
  ANEMONE_RETURN_IF_ERROR(CheckResult(b, 6));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<ValueId> operands,
                           Operands(b, {SideBySide(0), SideBySide(3, columns)}));
  return GiveQuantized(b, b.Emit("MatMul", std::move(operands)), 6, TypeOfInput(b, 0));
}

absl::Status ExpandQGemm(ContribBody& b) {
  const float alpha = b.Float("alpha", 1);
  const int64_t columns = b.Int("transB", 0) == 0 ? 1 : 0;
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Attribute> attributes, AttributesFor(b, "Gemm"));
  if (b.Has(7)) ANEMONE_RETURN_IF_ERROR(CheckResult(b, 7));
  ANEMONE_RETURN_IF_ERROR(CheckBias(b, 6));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<ValueId> operands,
                           Operands(b, {SideBySide(0), SideBySide(3, columns)}));
  if (b.Has(6)) operands.push_back(DequantizedBias(b, 6, 1, 4, alpha));
  const ValueId y = b.Emit("Gemm", std::move(operands), std::move(attributes));
  return b.Has(7) ? GiveQuantized(b, y, 7, TypeOfInput(b, 0)) : b.Give(0, y);
}

// A product with a float result, so the bias is a float and nothing is quantized afterwards. The
// first operand is a float; its scale and zero point are computed at run time.
absl::Status ExpandDynamicQuantizeMatMul(ContribBody& b) {
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_RETURN_IF_ERROR(b.FloatTypeOf(0).status());
  ANEMONE_RETURN_IF_ERROR(b.Need(TypeOfInput(b, 0) == DataType::kFloat, "input 0 is not float32"));
  ANEMONE_ASSIGN_OR_RETURN(const int64_t columns, LastAxis(b, 1));
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<ValueId> w, Operands(b, {SideBySide(1, columns)}));
  ValueId x = kNone;
  {
    const ContribBody::Aside aside(b, "quantize");
    const ValueId integers = b.Emit("DynamicQuantizeLinear", {b.input(0)});
    const size_t made = b.emitted().size() - 1;
    const ValueId scale = b.NewValue(), zero = b.NewValue();
    b.emitted()[made].outputs = {integers, scale, zero};
    x = b.Emit("DequantizeLinear", {integers, scale, zero});
  }
  const ValueId y = b.Emit("MatMul", {x, w[0]});
  return b.Give(0, b.Has(4) ? b.Emit("Add", {y, b.input(4)}) : y);
}

namespace {

// The weights of an LSTM from an input of constant integers: (directions, columns, rows). There is
// a scale for each direction, or for each row of each direction.
struct RecurrentWeight {
  Tensor codes;
  size_t scale = 0;
  Sizes scales;
};

absl::StatusOr<RecurrentWeight> CheckRecurrent(ContribBody& b, size_t at, size_t scale) {
  RecurrentWeight w{.scale = scale};
  ANEMONE_ASSIGN_OR_RETURN(const Sizes dims, b.DimsOf(at, {3}));
  ANEMONE_ASSIGN_OR_RETURN(w.scales, b.DimsOf(scale, {1, 2}));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(w.scales == Sizes{dims[0]} || w.scales == Sizes{dims[0], dims[2]},
             "want one scale for each direction, or one for each row of each direction"));
  if (b.Has(scale + 1)) {
    ANEMONE_ASSIGN_OR_RETURN(const Sizes zeros, b.DimsOf(scale + 1));
    ANEMONE_RETURN_IF_ERROR(
        b.Need(zeros == w.scales, "the numbers of scales and zero points differ"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const Tensor* known, b.Known(at));
  ANEMONE_RETURN_IF_ERROR(b.Need(known != nullptr && !known->is_fill() && known->elements() > 0,
                                 absl::StrCat("input ", at, " is not constant")));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(known->type() == DataType::kInt8 || known->type() == DataType::kUInt8,
             "the weights are not int8 or uint8"));
  w.codes = *known;
  return w;
}

// The weights as floats: (directions, rows, columns), as LSTM has them.
ValueId Dequantized(ContribBody& b, const RecurrentWeight& w) {
  const int64_t directions = w.codes.dims()[0], columns = w.codes.dims()[1],
                rows = w.codes.dims()[2];
  // Directions, and rows of directions, are the rows of a matrix.
  const int64_t groups = w.scales.size() == 1 ? directions : directions * rows;
  Tensor turned = Tensor::Uninitialized(w.codes.type(), {groups, w.codes.elements() / groups});
  const std::byte* from = w.codes.bytes().data();
  auto* to = turned.mutable_data<std::byte>();
  for (int64_t d = 0; d < directions; ++d) {
    TransposeBytes(from + d * columns * rows, columns, rows, to + d * columns * rows);
  }
  std::vector<ValueId> inputs = {b.Constant(std::move(turned)),
                                 b.Reshape(b.input(w.scale), {groups})};
  if (b.Has(w.scale + 1)) inputs.push_back(b.Reshape(b.input(w.scale + 1), {groups}));
  const ValueId weight = b.Emit("DequantizeLinear", std::move(inputs), {{"axis", int64_t{0}}});
  return b.Reshape(weight, {directions, rows, columns});
}

}  // namespace

// The kernel quantizes the input and the hidden state at run time. The LSTM of floats that replaces
// it does not.
absl::Status ExpandDynamicQuantizeLstm(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Attribute> attributes, AttributesFor(b, "LSTM"));
  ANEMONE_RETURN_IF_ERROR(b.Need(b.Int("layout", 0) == 0, "layout 1 is not supported"));
  ANEMONE_RETURN_IF_ERROR(b.Need(TypeOfInput(b, 0) == DataType::kFloat, "input 0 is not float32"));
  ANEMONE_ASSIGN_OR_RETURN(const RecurrentWeight w, CheckRecurrent(b, 1, 8));
  ANEMONE_ASSIGN_OR_RETURN(const RecurrentWeight r, CheckRecurrent(b, 2, 10));
  std::vector<ValueId> inputs = {b.input(0), Dequantized(b, w), Dequantized(b, r)};
  for (size_t i = 3; i < 8; ++i) inputs.push_back(b.input(i));
  while (inputs.back() == kNone) inputs.pop_back();
  b.Emit("LSTM", std::move(inputs), std::move(attributes));
  b.emitted().back().outputs = b.node().outputs;
  return absl::OkStatus();
}

// Unlike other operators, the inputs are a, b, a's scale, b's scale, a's zero point, b's zero
// point, bias.
absl::Status ExpandMatMulIntegerToFloat(ContribBody& b) {
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(const int64_t columns, LastAxis(b, 1));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<ValueId> operands,
                           Operands(b, {{0, 2, 4}, {1, 3, 5, columns}}));
  const ValueId y = b.Emit("MatMul", std::move(operands));
  return b.Give(0, b.Has(6) ? b.Emit("Add", {y, b.input(6)}) : y);
}

}  // namespace anemone
