// FusedMatMul, FusedConv and MatMulNBits of com.microsoft.
#include <algorithm>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "base/nibbles.h"
#include "base/status_macros.h"
#include "importer/contrib/builders.h"
#include "importer/infer/fold_rules.h"

namespace anemone {
namespace {

// An operand of FusedMatMul. If `batch`, its first axis comes after the axes of the batch; if
// `swap`, the last two axes change places after that.
ValueId Swapped(ContribBody& b, size_t index, bool batch, bool swap) {
  if (!batch && !swap) return b.input(index);
  const ValueId id = b.input(index);
  Sizes perm(b.value(id).shape->size());
  std::iota(perm.begin(), perm.end(), int64_t{0});
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (swap) std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return b.Transpose(id, perm);
}

bool HasRank(const ContribBody& b, size_t index, size_t least) {
  const std::optional<Shape>& shape = b.value(b.input(index)).shape;
  return shape.has_value() && shape->size() >= least;
}

// An activation of FusedConv: the ONNX operator, and the attributes for its parameters.
struct Fused {
  absl::string_view name;
  std::vector<const char*> parameters;
};

const std::vector<Fused>& Activations() {
  static const auto& rows = *new std::vector<Fused>{
      {"Relu", {}},
      {"Sigmoid", {}},
      {"Tanh", {}},
      {"LeakyRelu", {"alpha"}},
      {"HardSigmoid", {"alpha", "beta"}},
  };
  return rows;
}

struct Activation {
  std::string op;  // "": none
  std::vector<float> parameters;
};

absl::StatusOr<Activation> CheckActivation(ContribBody& b) {
  Activation a{b.Text("activation", ""), b.FloatList("activation_params")};
  if (a.op.empty()) return a;
  size_t want = 2;  // of Clip
  if (a.op != "Clip") {
    const auto row = std::find_if(Activations().begin(), Activations().end(),
                                  [&](const Fused& fused) { return fused.name == a.op; });
    ANEMONE_RETURN_IF_ERROR(b.Need(row != Activations().end(),
                                   absl::StrCat("activation '", a.op, "' is not supported")));
    want = row->parameters.size();
  }
  ANEMONE_RETURN_IF_ERROR(b.Need(a.parameters.size() == want,
                                 absl::StrCat("activation_params: want ", want, " values")));
  return a;
}

ValueId Activated(ContribBody& b, const Activation& a, DataType type, ValueId x) {
  if (a.op.empty()) return x;
  if (a.op == "Clip") {
    return b.Emit("Clip", {x, b.Scalar(type, a.parameters[0]), b.Scalar(type, a.parameters[1])});
  }
  const auto row = std::find_if(Activations().begin(), Activations().end(),
                                [&](const Fused& fused) { return fused.name == a.op; });
  std::vector<Attribute> attributes;
  for (size_t i = 0; i < row->parameters.size(); ++i) {
    attributes.push_back({row->parameters[i], a.parameters[i]});
  }
  return b.Emit(a.op, {x}, std::move(attributes));
}

// Weights of MatMulNBits: rows of blocks. Each block has a scale and a zero point.
struct Blocks {
  DataType type = DataType::kFloat;
  DataType packed = DataType::kUInt4;
  int64_t bits = 4, rows = 0, columns = 0, size = 0, blocks = 0;

  Sizes dims() const { return {rows, blocks, size}; }
  Sizes per_block() const { return {rows, blocks, 1}; }
  bool is_whole() const { return blocks * size == columns; }
  int64_t bytes_of(int64_t elements) const { return (elements * bits + 7) / 8; }
};

bool HasPackedZeroPoints(const ContribBody& b) {
  return !b.Has(3) || b.value(b.input(3)).type == DataType::kUInt8;
}

// True if the weights become one DequantizeLinear, whose result stays compressed
// (importer/write/compressed_nodes.h).
bool StaysCompressed(const ContribBody& b, const Blocks& w) {
  return w.type == DataType::kFloat && w.is_whole() && HasPackedZeroPoints(b);
}

absl::Status CheckBlocks(ContribBody& b, Blocks& w) {
  w.bits = b.Int("bits", 4);
  w.rows = b.Int("N", 0);
  w.columns = b.Int("K", 0);
  w.size = b.Int("block_size", 0);
  b.Int("accuracy_level", 0);  // the minimum accuracy of a kernel; this form has the highest
  ANEMONE_RETURN_IF_ERROR(
      b.Need(b.Int("weight_prepacked", 0) == 0, "weights packed for a device are not supported"));
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_RETURN_IF_ERROR(
      b.Need(w.bits == 4 || w.bits == 8,
             absl::StrCat("weights of ", w.bits, " bits are not supported, want 4 or 8")));
  ANEMONE_RETURN_IF_ERROR(b.Need(w.rows > 0 && w.columns > 0, "N and K: want at least 1"));
  const bool is_power = w.size > 0 && (w.size & (w.size - 1)) == 0;
  ANEMONE_RETURN_IF_ERROR(
      b.Need(is_power && w.size >= 16 && w.size <= (1 << 20),
             absl::StrCat("block_size ", w.size, ": want a power of 2 from 16 to ", 1 << 20)));
  w.packed = w.bits == 4 ? DataType::kUInt4 : DataType::kUInt8;
  w.blocks = (w.columns - 1) / w.size + 1;
  const auto bytes =
      ElementCount(std::vector<int64_t>{w.rows, w.blocks, w.size, BitsOf(w.type) / 8});
  return b.Need(bytes.ok() && (StaysCompressed(b, w) || *bytes <= kLargestFolded),
                "the weights are too large to expand to floats");
}

// Constant input `index`, which must have this type and number of elements.
absl::StatusOr<Tensor> CheckConstant(ContribBody& b, size_t index, DataType type,
                                     int64_t elements) {
  ANEMONE_ASSIGN_OR_RETURN(const Tensor* known, b.Known(index));
  ANEMONE_RETURN_IF_ERROR(
      b.Need(known != nullptr, absl::StrCat("input ", index, " is not constant")));
  ANEMONE_RETURN_IF_ERROR(b.Need(
      known->type() == type && known->elements() == elements && !known->is_fill(),
      absl::StrCat("input ", index, ": want ", elements, " elements of ", DataTypeName(type))));
  return *known;
}

// The same bytes, viewed as packed integers.
Tensor Unpacked(const Tensor& bytes, DataType type, Sizes dims) {
  return Tensor::View(type, std::move(dims), bytes.bytes(), std::make_shared<const Tensor>(bytes));
}

// Zero points are packed row by row; this removes the padding of the last byte of each row. If
// `bytes` is undefined, the zero points are the middle of the codes' range.
Tensor ZeroPoints(const Blocks& w, const Tensor& bytes) {
  if (bytes.type() == DataType::kUndefined) {
    const auto middle = static_cast<std::byte>(w.bits == 4 ? 8 : 128);
    return Tensor::Fill(w.packed, {w.rows, w.blocks}, {&middle, 1});
  }
  const int64_t row = w.bytes_of(w.blocks);
  if (row * 8 == w.blocks * w.bits) return Unpacked(bytes, w.packed, {w.rows, w.blocks});
  Tensor zeros = Tensor::Zeros(w.packed, {w.rows, w.blocks});
  auto* to = zeros.mutable_data<uint8_t>();
  for (int64_t i = 0; i < w.rows * w.blocks; ++i) {
    const int64_t at = i % w.blocks;
    const uint8_t byte = bytes.at<uint8_t>(i / w.blocks * row + at / 2);
    PutNibble(to, i, NibbleAt(&byte, at % 2));
  }
  return zeros;
}

// The weights as floats: (rows, blocks * size).
ValueId WeightsOf(ContribBody& b, const Blocks& w, const Tensor& packed, const Tensor& zeros) {
  const Sizes matrix = {w.rows, w.blocks * w.size};
  if (HasPackedZeroPoints(b)) {
    return b.Emit("DequantizeLinear",
                  {b.Constant(Unpacked(packed, w.packed, matrix)),
                   b.Reshape(b.input(2), {w.rows, w.blocks}), b.Constant(ZeroPoints(w, zeros))},
                  {{"axis", int64_t{1}}, {"block_size", w.size}});
  }
  ValueId weights = b.Widened(b.Constant(Unpacked(packed, w.packed, w.dims())), w.type);
  weights = b.Emit("Sub", {weights, b.Reshape(b.input(3), w.per_block())});
  weights = b.Emit("Mul", {weights, b.Reshape(b.input(2), w.per_block())});
  return b.Reshape(weights, matrix);
}

absl::StatusOr<Tensor> CheckZeroPoints(ContribBody& b, const Blocks& w) {
  return HasPackedZeroPoints(b)
             ? CheckConstant(b, 3, DataType::kUInt8, w.rows * w.bytes_of(w.blocks))
             : CheckConstant(b, 3, w.type, w.rows * w.blocks);
}

}  // namespace

absl::Status ExpandFusedMatMul(ContribBody& b) {
  const float alpha = b.Float("alpha", 1);
  const bool swap[] = {b.Int("transA", 0) != 0, b.Int("transB", 0) != 0};
  const bool batch[] = {b.Int("transBatchA", 0) != 0, b.Int("transBatchB", 0) != 0};
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, b.FloatTypeOf(0));
  for (size_t i : {0, 1}) {
    const size_t least = batch[i] ? 3 : swap[i] ? 2 : 0;
    ANEMONE_RETURN_IF_ERROR(b.Need(least == 0 || (b.Has(i) && HasRank(b, i, least)),
                                   "cannot transpose a vector or an input of unknown rank"));
  }
  const ValueId left = Swapped(b, 0, batch[0], swap[0]);
  const ValueId right = Swapped(b, 1, batch[1], swap[1]);
  ValueId y = b.Emit("MatMul", {left, right});
  if (alpha != 1) y = b.Emit("Mul", {y, b.Scalar(type, alpha)});
  return b.Give(0, y);
}

absl::Status ExpandFusedConv(ContribBody& b) {
  ANEMONE_ASSIGN_OR_RETURN(const DataType type, b.FloatTypeOf(0));
  ANEMONE_ASSIGN_OR_RETURN(const Activation activation, CheckActivation(b));
  std::vector<Attribute> attributes;
  for (const Attribute& attribute : b.node().attributes) {
    if (attribute.name.substr(0, 10) != "activation") attributes.push_back(attribute);
  }
  b.Int("group", 1);
  b.Text("auto_pad", "");
  for (const char* list : {"pads", "strides", "dilations", "kernel_shape"}) b.IntList(list);
  ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
  std::vector<ValueId> inputs = {b.input(0), b.input(1)};
  if (b.Has(2)) inputs.push_back(b.input(2));
  const ValueId y = b.Plus(b.Emit("Conv", std::move(inputs), std::move(attributes)), b.input(3));
  return b.Give(0, Activated(b, activation, type, y));
}

// The weights are constants, so the importer folds all nodes except the product.
absl::Status ExpandMatMulNBits(ContribBody& b) {
  Blocks w;
  ANEMONE_ASSIGN_OR_RETURN(w.type, b.FloatTypeOf(0));
  ANEMONE_RETURN_IF_ERROR(CheckBlocks(b, w));
  ANEMONE_RETURN_IF_ERROR(b.Need(!b.Has(4), "g_idx is not supported"));
  ANEMONE_ASSIGN_OR_RETURN(
      const Tensor packed,
      CheckConstant(b, 1, DataType::kUInt8, w.rows * w.blocks * (w.size * w.bits / 8)));
  ANEMONE_RETURN_IF_ERROR(CheckConstant(b, 2, w.type, w.rows * w.blocks).status());
  Tensor zeros;
  if (b.Has(3)) {
    ANEMONE_ASSIGN_OR_RETURN(zeros, CheckZeroPoints(b, w));
  }
  if (b.Has(5)) {
    ANEMONE_ASSIGN_OR_RETURN(const Sizes bias, b.DimsOf(5, {1}));
    ANEMONE_RETURN_IF_ERROR(b.Need(bias[0] == w.rows, "the bias has an unexpected size"));
  }
  const std::optional<Shape>& a = b.value(b.input(0)).shape;
  ANEMONE_RETURN_IF_ERROR(b.Need(a.has_value() && !a->empty() && a->back().size == w.columns,
                                 "input A is not known to have K columns"));
  ValueId weights = WeightsOf(b, w, packed, zeros);
  if (!w.is_whole()) weights = b.Slice(weights, 1, 0, w.columns);
  weights = b.Transpose(weights, {1, 0});
  return b.Give(0, b.Plus(b.Emit("MatMul", {b.input(0), weights}), b.input(5)));
}

}  // namespace anemone
