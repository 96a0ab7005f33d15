// Operators that compute each element of the result from one element of each operand.
#include <limits>

#include "provider/coreml/node_writer.h"

namespace anemone {
namespace {

template <const char* kOp>
void WriteUnary(NodeWriter& w) {
  w.Out(w.Unary(kOp, w.In(0)));
}

// The operands of an arithmetic operator; those of booleans and comparisons keep their type.
template <const char* kOp>
void WriteBinary(NodeWriter& w) {
  w.Out(w.Binary(kOp, w.In(0), w.In(1)));
}

template <const char* kOp>
void WriteComparison(NodeWriter& w) {
  std::string dtype = w.TypeOf(0);
  if (dtype == "bool") dtype = "int32";
  const MilVar x = w.In(0, dtype), y = w.In(1, dtype);
  w.Out(w.Emit(kOp, {{"x", {x.name}}, {"y", {y.name}}}, "bool", Broadcast(x.shape, y.shape)));
}

// Sum, Max, ...: any number of operands.
template <const char* kOp>
void WriteVariadic(NodeWriter& w) {
  MilVar result = w.In(0);
  for (size_t i = 1; i < w.inputs(); ++i) result = w.Binary(kOp, result, w.In(i));
  w.Out(result);
}

constexpr char kAbs[] = "abs", kAcos[] = "acos", kAsin[] = "asin", kAtan[] = "atan",
               kAtanh[] = "atanh", kCeil[] = "ceil", kCos[] = "cos", kCosh[] = "cosh",
               kErf[] = "erf", kExp[] = "exp", kFloor[] = "floor", kRelu[] = "relu",
               kRound[] = "round", kSigmoid[] = "sigmoid", kSign[] = "sign", kSin[] = "sin",
               kSinh[] = "sinh", kSqrt[] = "sqrt", kSoftplus[] = "softplus",
               kSoftsign[] = "softsign", kTan[] = "tan", kTanh[] = "tanh", kNot[] = "logical_not";
constexpr char kAdd[] = "add", kSub[] = "sub", kMul[] = "mul", kMin[] = "minimum",
               kMax[] = "maximum", kAnd[] = "logical_and", kOr[] = "logical_or",
               kXor[] = "logical_xor";
constexpr char kEqual[] = "equal", kLess[] = "less", kGreater[] = "greater",
               kLessEqual[] = "less_equal", kGreaterEqual[] = "greater_equal";

void WriteIdentity(NodeWriter& w) { w.Out(w.In(0)); }

void WriteDropout(NodeWriter& w) {
  const bool is_training = w.Has(2) && !(w.IsConstant(2) && w.NumberAt(2, 0) == 0);
  const bool drops = !(w.Has(1) && w.IsConstant(1) && w.NumberAt(1, 0) == 0);
  if (is_training && drops) return w.Fail("training_mode");
  const MilVar x = w.In(0);
  w.Out(x);
  if (OutputOr(w.node(), 1) == kNone || !w.ok()) return;
  w.Out(w.Filled(w.to().ExtentsOf(x), 1, "int32", x.shape), 1);  // the mask: nothing is dropped
}

void WriteNeg(NodeWriter& w) { w.Out(w.Binary("mul", w.In(0), -1)); }

// MIL adds 1e-45 to x unless told otherwise.
MilVar Log(NodeWriter& w, const MilVar& x) {
  return w.Emit("log", {{"x", {x.name}}, {"epsilon", {w.to().Number(0, x.dtype)}}}, x.dtype,
                x.shape);
}

void WriteLog(NodeWriter& w) { w.Out(Log(w, w.In(0))); }

void WriteReciprocal(NodeWriter& w) {
  const MilVar x = w.In(0);
  w.Out(w.Emit("real_div", {{"x", {w.Scalar(1, x.dtype).name}}, {"y", {x.name}}}));
}

// Integers are divided as ONNX does, toward 0; MIL's floor_div rounds down.
void WriteDiv(NodeWriter& w) {
  const MilVar x = w.In(0), y = w.In(1);
  if (x.dtype != "int32") return w.Out(w.Binary("real_div", x, y));
  const MilVar size = w.Binary("floor_div", w.Unary("abs", x), w.Unary("abs", y));
  w.Out(w.Binary("mul", size, w.Binary("mul", w.Unary("sign", x), w.Unary("sign", y))));
}

// With fmod, the remainder has the sign of the dividend; MIL's has that of the divisor.
void WriteMod(NodeWriter& w) {
  const MilVar x = w.In(0), y = w.In(1);
  if (w.Int("fmod", 0) == 0) return w.Out(w.Binary("mod", x, y));
  const MilVar size = w.Binary("mod", w.Unary("abs", x), w.Unary("abs", y));
  w.Out(w.Binary("mul", size, w.Unary("sign", x)));
}

bool IsUnsigned(DataType type) {
  return type == DataType::kUInt8 || type == DataType::kUInt16 || type == DataType::kUInt32 ||
         type == DataType::kUInt64;
}

// Integers as those of a type of fewer than 32 bits, which wraps. MIL's remainder of a positive
// divisor is from 0.
MilVar Wrapped(NodeWriter& w, const MilVar& x, DataType type) {
  const int bits = BitsOf(type);
  if (x.dtype != "int32" || bits >= 32) return x;
  const auto count = static_cast<double>(int64_t{1} << bits);
  if (IsUnsigned(type)) return w.Binary("mod", x, count);
  return w.Binary("add", w.Binary("mod", w.Binary("add", x, count / 2), count), -count / 2);
}

// A product with a power of two, or a division that rounds down.
void WriteBitShift(NodeWriter& w) {
  const MilVar x = w.In(0);
  const std::vector<double> shifts = w.NumbersAt(1);
  const bool is_left = w.Text("direction", "") == "LEFT";
  std::vector<int64_t> factors;
  factors.reserve(shifts.size());
  for (double shift : shifts) {
    if (shift < 0 || shift > 30) return w.Fail("a shift by more than 30 bits");
    factors.push_back(int64_t{1} << static_cast<int>(shift));
  }
  if (!w.ok()) return;
  const MilShape shape = w.ShapeOf(1);
  const MilVar factor = w.to().Constant(Tensor::Int64s(shape, factors), "int32", shape);
  const MilVar shifted = w.Binary(is_left ? "mul" : "floor_div", x, factor);
  w.Out(is_left ? Wrapped(w, shifted, w.ResultType()) : shifted);
}

void WriteBitwiseNot(NodeWriter& w) {
  const DataType type = w.ResultType();
  if (IsUnsigned(type) && BitsOf(type) >= 32) return w.Fail("unsigned integers of 32 bits or more");
  const MilVar negative = w.Binary("mul", w.In(0), -1);
  const double all = IsUnsigned(type) ? static_cast<double>((int64_t{1} << BitsOf(type)) - 1) : -1;
  w.Out(w.Binary("add", negative, all));
}

// 2^0 to 2^30, and `last`.
std::vector<int64_t> PlacesOfBits(int64_t last) {
  std::vector<int64_t> places(32, last);
  for (int i = 0; i < 31; ++i) places[i] = int64_t{1} << i;
  return places;
}

// The 32 bits of integers in two's complement, along a new last axis.
MilVar Bits(NodeWriter& w, const MilVar& x) {
  if (x.shape.size() >= 5) w.Fail("the bits of an array of 5 dimensions");
  if (!w.ok()) return x;
  std::vector<int64_t> halves(32, 1);  // 2^31 is beyond int32
  halves[31] = 2;
  const auto vector = [&](const std::vector<int64_t>& numbers) {
    return w.to().Constant(Tensor::Int64s({32}, numbers), "int32", {32});
  };
  const MilVar shifted = w.Binary("floor_div", w.Expanded(x, static_cast<int64_t>(x.shape.size())),
                                  vector(PlacesOfBits(int64_t{1} << 30)));
  return w.Binary("mod", w.Binary("floor_div", shifted, vector(halves)), 2);
}

// kOp of bits: their product, maximum, or difference without its sign.
template <const char* kOp>
void WriteBitwise(NodeWriter& w) {
  const MilVar bits = w.Unary("abs", w.Binary(kOp, Bits(w, w.In(0)), Bits(w, w.In(1))));
  if (!w.ok()) return;
  const std::vector<int64_t> places = PlacesOfBits(-(int64_t{1} << 31));
  const MilVar numbers =
      w.Binary("mul", bits, w.to().Constant(Tensor::Int64s({32}, places), "int32", {32}));
  w.Out(w.Emit("reduce_sum",
               {{"x", {numbers.name}},
                {"axes", {w.to().Ints(std::vector<int64_t>{-1})}},
                {"keep_dims", {w.to().Bool(false)}}},
               "int32", MilShape(numbers.shape.begin(), numbers.shape.end() - 1)));
}

// Bits as those of another type of integers.
void WriteBitCast(NodeWriter& w) {
  if (w.TypeOf(0) == w.floats() || w.OutType() != "int32") return w.Fail("bits of a float or bool");
  if (BitsOf(w.ResultType()) >= 32) return w.Fail("integers of 32 bits or more");
  const MilVar x = w.In(0, "int32");
  w.Out(Wrapped(w, x, w.ResultType()));
}

// Of the infinities of one sign or both, which compare equal to themselves.
void WriteIsInf(NodeWriter& w) {
  MilVar x = w.In(0);
  if (w.Int("detect_negative", 1) == 0) x = w.Binary("maximum", x, 0);
  if (w.Int("detect_positive", 1) == 0) x = w.Binary("minimum", x, 0);
  const MilVar size = w.Unary("abs", x);
  const double largest = x.dtype == "fp32" ? 3.4028234e38 : 65504;
  w.Out(w.Emit("greater", {{"x", {size.name}}, {"y", {w.Scalar(largest, x.dtype).name}}}, "bool",
               x.shape));
}

// Integer powers are exact up to 2^24, which fp32 represents.
void WritePow(NodeWriter& w) {
  const bool is_integer = w.OutType() == "int32";
  const std::string floats = is_integer ? "fp32" : w.floats();
  const MilVar x = w.In(0, floats), y = w.In(1, floats);
  MilVar result = w.Binary("pow", x, y);
  if (is_integer) {
    result = w.to().Cast(w.Unary("round", result), "int32");
    w.to().AddNote("powers of integers are computed in fp32, and are exact up to 2^24");
  }
  w.Out(result);
}

void WriteClip(NodeWriter& w) {
  MilVar x = w.In(0);
  if (w.Has(1)) x = w.Binary("maximum", x, w.In(1));
  if (w.Has(2)) x = w.Binary("minimum", x, w.In(2));
  w.Out(x);
}

bool HasShapeOf(NodeWriter& w, size_t i, size_t j) {
  const int rank = w.RankOf(i);
  bool is_same = rank == w.RankOf(j);
  for (int axis = 0; is_same && axis < rank; ++axis) is_same = w.IsSameSize(i, axis, j, axis);
  return is_same;
}

// The shape of `select` is that of its values: the condition does not widen it.
void WriteWhere(NodeWriter& w) {
  const std::string type = w.TypeOf(1), dtype = type == "bool" ? "int32" : type;
  MilVar yes = w.In(1, dtype);
  const MilVar no = w.In(2, dtype);
  const MilVar condition = w.In(0);
  const MilShape shape = w.OutShape();
  if (HasFree(shape)) {
    if (!HasShapeOf(w, 0, 1) && !HasShapeOf(w, 0, 2)) yes = w.SpreadWith(yes, condition);
  } else if (Broadcast(yes.shape, no.shape) != shape) {
    yes = w.Spread(yes, shape);
  }
  const MilVar result = w.Select(condition, yes, no);
  if (w.ok()) w.Out(w.to().Cast(result, type));
}

void WriteCast(NodeWriter& w) {
  const std::string to = w.OutType();
  MilVar x = w.In(0);
  if (to == "bool") {  // whatever is not 0 is true; a cast alone may truncate first
    x = w.Emit("not_equal", {{"x", {x.name}}, {"y", {w.Scalar(0, x.dtype).name}}}, "bool", x.shape);
  }
  const bool is_flag = x.dtype == "bool";
  if (!w.ok()) return;
  x = w.to().Cast(x, to);
  w.Out(is_flag ? x : Wrapped(w, x, w.ResultType()));
}

void WriteLeakyRelu(NodeWriter& w) {
  const MilVar x = w.In(0);
  w.Out(w.Emit("leaky_relu",
               {{"x", {x.name}}, {"alpha", {w.to().Number(w.Number("alpha", 0.01F), x.dtype)}}}));
}

void WriteElu(NodeWriter& w) {
  const MilVar x = w.In(0);
  w.Out(
      w.Emit("elu", {{"x", {x.name}}, {"alpha", {w.to().Number(w.Number("alpha", 1), x.dtype)}}}));
}

void WriteHardSigmoid(NodeWriter& w) {
  const MilVar x = w.In(0);
  w.Out(w.Emit("sigmoid_hard", {{"x", {x.name}},
                                {"alpha", {w.to().Number(w.Number("alpha", 0.2F), x.dtype)}},
                                {"beta", {w.to().Number(w.Number("beta", 0.5F), x.dtype)}}}));
}

void WriteHardSwish(NodeWriter& w) {
  const MilVar x = w.In(0);
  const MilVar six = w.Unary("relu6", w.Binary("add", x, 3));
  w.Out(w.Binary("mul", w.Binary("mul", x, six), 1.0 / 6));
}

void WriteGelu(NodeWriter& w) {
  const bool is_tanh = w.Text("approximate", "none") == "tanh";
  w.Out(w.Emit("gelu", {{"x", {w.In(0).name}},
                        {"mode", {w.to().Text(is_tanh ? "TANH_APPROXIMATION" : "EXACT")}}}));
}

void WritePRelu(NodeWriter& w) {
  const MilVar x = w.In(0), slope = w.In(1);
  const MilVar below = w.Binary("mul", w.Binary("minimum", x, 0), slope);
  w.Out(w.Binary("add", w.Unary("relu", x), below));
}

void WriteMean(NodeWriter& w) {
  MilVar result = w.In(0);
  for (size_t i = 1; i < w.inputs(); ++i) result = w.Binary("add", result, w.In(i));
  w.Out(w.Binary("mul", result, 1.0 / static_cast<double>(w.inputs())));
}

void WriteIsNaN(NodeWriter& w) {
  const MilVar x = w.In(0);
  w.Out(w.Emit("not_equal", {{"x", {x.name}}, {"y", {x.name}}}, "bool", x.shape));
}

// Asinh and Acosh square x, which exceeds fp16's range from 256 on, so they are computed in fp32.
void WriteAsinh(NodeWriter& w) {  // sign(x) log(|x| + sqrt(x^2 + 1))
  const MilVar x = w.In(0, "fp32"), size = w.Unary("abs", x);
  const MilVar root = w.Unary("sqrt", w.Binary("add", w.Binary("mul", x, x), 1));
  const MilVar log = Log(w, w.Binary("add", size, root));
  w.Out(w.Binary("mul", w.Unary("sign", x), log));
}

void WriteAcosh(NodeWriter& w) {
  const MilVar x = w.In(0, "fp32");
  const MilVar root = w.Unary("sqrt", w.Binary("add", w.Binary("mul", x, x), -1));
  w.Out(Log(w, w.Binary("add", x, root)));
}

constexpr MilNode kElementwiseNodes[] = {
    {"Abs", WriteUnary<kAbs>},
    {"Acos", WriteUnary<kAcos>},
    {"Acosh", WriteAcosh},
    {"Add", WriteBinary<kAdd>},
    {"And", WriteBinary<kAnd>},
    {"Asin", WriteUnary<kAsin>},
    {"Asinh", WriteAsinh},
    {"Atan", WriteUnary<kAtan>},
    {"Atanh", WriteUnary<kAtanh>},
    {"BitCast", WriteBitCast},
    {"BitShift", WriteBitShift},
    {"BitwiseAnd", WriteBitwise<kMul>},
    {"BitwiseNot", WriteBitwiseNot},
    {"BitwiseOr", WriteBitwise<kMax>},
    {"BitwiseXor", WriteBitwise<kSub>},
    {"Cast", WriteCast},
    {"Ceil", WriteUnary<kCeil>},
    {"Clip", WriteClip},
    {"Cos", WriteUnary<kCos>},
    {"Cosh", WriteUnary<kCosh>},
    {"Div", WriteDiv},
    {"Dropout", WriteDropout},
    {"Elu", WriteElu},
    {"Equal", WriteComparison<kEqual>},
    {"Erf", WriteUnary<kErf>},
    {"Exp", WriteUnary<kExp>},
    {"Floor", WriteUnary<kFloor>},
    {"Gelu", WriteGelu},
    {"Greater", WriteComparison<kGreater>},
    {"GreaterOrEqual", WriteComparison<kGreaterEqual>},
    {"HardSigmoid", WriteHardSigmoid},
    {"HardSwish", WriteHardSwish},
    {"Identity", WriteIdentity},
    {"IsInf", WriteIsInf},
    {"IsNaN", WriteIsNaN},
    {"LeakyRelu", WriteLeakyRelu},
    {"Less", WriteComparison<kLess>},
    {"LessOrEqual", WriteComparison<kLessEqual>},
    {"Log", WriteLog},
    {"Max", WriteVariadic<kMax>},
    {"Mean", WriteMean},
    {"Min", WriteVariadic<kMin>},
    {"Mod", WriteMod},
    {"Mul", WriteBinary<kMul>},
    {"Neg", WriteNeg},
    {"Not", WriteUnary<kNot>},
    {"Or", WriteBinary<kOr>},
    {"PRelu", WritePRelu},
    {"Pow", WritePow},
    {"Reciprocal", WriteReciprocal},
    {"Relu", WriteUnary<kRelu>},
    {"Round", WriteUnary<kRound>},
    {"Sigmoid", WriteUnary<kSigmoid>},
    {"Sign", WriteUnary<kSign>},
    {"Sin", WriteUnary<kSin>},
    {"Sinh", WriteUnary<kSinh>},
    {"Softplus", WriteUnary<kSoftplus>},
    {"Softsign", WriteUnary<kSoftsign>},
    {"Sqrt", WriteUnary<kSqrt>},
    {"Sub", WriteBinary<kSub>},
    {"Sum", WriteVariadic<kAdd>},
    {"Tan", WriteUnary<kTan>},
    {"Tanh", WriteUnary<kTanh>},
    {"Where", WriteWhere},
    {"Xor", WriteBinary<kXor>},
};

}  // namespace

absl::Span<const MilNode> ElementwiseMilNodes() { return kElementwiseNodes; }

}  // namespace anemone
