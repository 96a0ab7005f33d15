#include "importer/write/compressed_nodes.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/fp16.h"
#include "base/give_back_large.h"
#include "base/nibbles.h"
#include "base/status_macros.h"
#include "importer/edit.h"
#include "importer/operators/operators.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

// Smaller constants are not kept compressed: that would save little.
constexpr int64_t kLeastElements = 1024;
constexpr int64_t kMostEntries = 256;

// Constant input `i`, or null if there is no such input or it is not constant.
const Tensor* ConstantInput(const Graph& graph, const Node& node, size_t i) {
  if (!HasInput(node, i)) return nullptr;
  const Value& value = graph.values[node.inputs[i]];
  return value.constant.has_value() ? &*value.constant : nullptr;
}

absl::Status AtNode(const Model& model, const Node& node, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(NodeLabel(model, node), ": ", status.message()));
}

// The grid of factors of shape `factors` that are broadcast to `codes`; nullopt unless they vary
// along axes that follow each other, and a few elements at least share one.
std::optional<ScaleGrid> GridOfFactors(const Tensor& codes, const std::vector<int64_t>& factors) {
  const std::vector<int64_t>& dims = codes.dims();
  if (factors.size() > dims.size()) return std::nullopt;
  ScaleGrid grid = {.axis = 1, .inner = 1, .block = 1, .axis_stride = 1};
  bool is_over = false;  // the axes along which they vary
  for (size_t i = 1; i <= dims.size(); ++i) {
    const int64_t dim = dims[dims.size() - i];
    const int64_t factor = i <= factors.size() ? factors[factors.size() - i] : 1;
    if (factor != 1 && (factor != dim || is_over)) return std::nullopt;
    if (dim == 1) continue;
    if (factor != 1) {
      grid.axis *= dim;
    } else if (grid.axis == 1) {
      grid.inner *= dim;
    } else {
      is_over = true;
    }
  }
  constexpr int64_t kLeastSharing = 8;
  if (codes.elements() / kLeastSharing < grid.axis) return std::nullopt;
  return grid;
}

// Whether codes of 8 bits or less times the factors are in fp16's range, and not all subnormal in
// it. What is known of other constants decides where their readers run; nothing is known of the
// elements of a compressed one.
bool FitFp16(const std::vector<float>& factors) {
  constexpr float kMostCode = 256;
  return std::all_of(factors.begin(), factors.end(), [](float factor) {
    const float largest = std::fabs(factor) * kMostCode;
    return factor == 0 || (largest <= fp16::kLargest && largest >= fp16::kSmallestNormal);
  });
}

// Writes the nodes that represent one compressed constant.
class Body {
 public:
  Body(const std::string& name, const Tensor& constant, onnx::GraphProto* out,
       absl::FunctionRef<void(const std::string&, const Tensor&)> add)
      : name_(name), constant_(constant), stored_(*constant.compressed()), out_(out), add_(add) {}

  void Write() {
    if (stored_.form() == CompressedForm::kSparse) return WriteSparse();
    if (stored_.form() == CompressedForm::kPalette) return WritePalette();
    if (stored_.is_plain()) return WriteCast(constant_.dims(), stored_.type(), name_);
    WriteAffine();
  }

 private:
  std::string Part(const char* part) const { return absl::StrCat(name_, "/", part); }

  onnx::NodeProto* Node(const char* op_type, std::initializer_list<std::string> inputs,
                        const std::string& output) {
    onnx::NodeProto* node = out_->add_node();
    node->set_op_type(op_type);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
  }
  static void SetInt(onnx::NodeProto* node, const char* name, int64_t value) {
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
  }

  void WriteCast(const std::vector<int64_t>& dims, DataType type, const std::string& output) {
    add_(Part("codes"), stored_.codes().Reshaped(dims));
    SetInt(Node("Cast", {Part("codes")}, output), "to", static_cast<int64_t>(type));
  }

  void WritePalette() {
    const std::vector<float>& table = stored_.values();
    add_(Part("table"), Tensor::Floats({static_cast<int64_t>(table.size())}, table));
    WriteCast(constant_.dims(), DataType::kInt32, Part("indices"));
    Node("Gather", {Part("table"), Part("indices")}, name_);
  }

  void WriteSparse() {
    const std::vector<int64_t> positions = stored_.Positions();
    const auto count = static_cast<int64_t>(positions.size());
    onnx::SparseTensorProto* sparse = out_->add_sparse_initializer();
    *sparse->mutable_values() = ToProto(Tensor::Floats({count}, stored_.values()));
    sparse->mutable_values()->set_name(name_);
    *sparse->mutable_indices() = ToProto(Tensor::Int64s({count}, positions));
    for (int64_t dim : constant_.dims()) sparse->add_dims(dim);
  }

  void WriteAffine();
  Tensor ZeroPoints(const std::vector<int64_t>& order, std::vector<int64_t> dims) const;

  const std::string& name_;
  const Tensor& constant_;
  const Compressed& stored_;
  onnx::GraphProto* out_;
  absl::FunctionRef<void(const std::string&, const Tensor&)> add_;
};

// The zero points of scales order[0], order[1], ..., in the codes' type.
Tensor Body::ZeroPoints(const std::vector<int64_t>& order, std::vector<int64_t> dims) const {
  Tensor zeros = Tensor::Zeros(stored_.codes().type(), std::move(dims));
  auto* bytes = zeros.mutable_data<uint8_t>();
  for (size_t i = 0; i < order.size(); ++i) {
    const int zero = stored_.zero_points()[order[i]];
    if (stored_.code_bits() == 8) {
      bytes[i] = static_cast<uint8_t>(zero);
    } else {
      PutNibble(bytes, static_cast<int64_t>(i), zero);
    }
  }
  return zeros;
}

void Body::WriteAffine() {
  const ScaleGrid& grid = stored_.grid();
  const std::vector<int64_t>& dims = constant_.dims();
  const bool blocked = grid.outer_stride != 0 || grid.inner_stride != 0 || grid.block > 1;
  const int64_t outer = stored_.elements() / (grid.axis * grid.inner);
  const int64_t blocks = (grid.axis + grid.block - 1) / grid.block;
  // Finds the constant's axis that is the grid's axis. If there is none, the codes are written with
  // dims (outer, axis, inner).
  std::vector<int64_t> code_dims = {outer, grid.axis, grid.inner};
  int64_t axis = 1;
  for (int64_t inner = 1, i = static_cast<int64_t>(dims.size()) - 1; i >= 0; inner *= dims[i--]) {
    if (inner != grid.inner || dims[i] != grid.axis) continue;
    code_dims = dims;
    axis = i;
    break;
  }
  std::vector<int64_t> order, scale_dims;
  if (stored_.scales().size() == 1) {
    order = {0};
    code_dims = dims;
  } else if (!blocked) {
    for (int64_t i = 0; i < grid.axis; ++i) order.push_back(i * grid.axis_stride);
    scale_dims = {grid.axis};
  } else {
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t block = 0; block < blocks; ++block) {
        for (int64_t i = 0; i < grid.inner; ++i) {
          order.push_back(o * grid.outer_stride + block * grid.axis_stride + i * grid.inner_stride);
        }
      }
    }
    scale_dims = code_dims;
    scale_dims[axis] = blocks;
  }
  std::vector<float> scales;
  scales.reserve(order.size());
  for (int64_t i : order) scales.push_back(stored_.scales()[i]);
  add_(Part("codes"), stored_.codes().Reshaped(code_dims));
  add_(Part("scales"), Tensor::Floats(scale_dims, scales));
  const bool reshaped = code_dims != dims;
  onnx::NodeProto* node =
      Node("DequantizeLinear", {Part("codes"), Part("scales")}, reshaped ? Part("values") : name_);
  if (!stored_.zero_points().empty()) {
    add_(Part("zero_points"), ZeroPoints(order, scale_dims));
    node->add_input(Part("zero_points"));
  }
  if (!scale_dims.empty()) SetInt(node, "axis", axis);
  if (blocked && stored_.scales().size() > 1) SetInt(node, "block_size", grid.block);
  if (!reshaped) return;
  add_(Part("shape"), Tensor::Int64s({static_cast<int64_t>(dims.size())}, dims));
  Node("Reshape", {Part("values"), Part("shape")}, name_);
}

}  // namespace

absl::StatusOr<Tensor> Dequantized(const Tensor& codes, const Tensor& scales,
                                   const Tensor* zero_points, int64_t axis, int64_t block_size) {
  ANEMONE_ASSIGN_OR_RETURN(const ScaleGrid grid,
                           ScaleGrid::Of(codes.dims(), scales.dims(), axis, block_size));
  ANEMONE_ASSIGN_OR_RETURN(
      Compressed::Ptr made,
      Compressed::Affine(codes, scales, zero_points == nullptr ? Tensor() : *zero_points, grid));
  return Tensor::Of(codes.dims(), std::move(made));
}

absl::StatusOr<std::optional<Tensor>> CompressedByDequantizeLinear(const Graph& graph,
                                                                   const Node& node) {
  const Tensor& codes = *ConstantInput(graph, node, 0);
  const Tensor* scales = ConstantInput(graph, node, 1);
  const Tensor* zero_points = ConstantInput(graph, node, 2);
  const int64_t to = IntOr(node, "output_dtype", 0);
  if (!IsCodeType(codes.type()) || scales == nullptr || scales->type() != DataType::kFloat ||
      (HasInput(node, 2) && zero_points == nullptr) ||
      (to != 0 && to != static_cast<int64_t>(DataType::kFloat))) {
    return std::nullopt;
  }
  ANEMONE_ASSIGN_OR_RETURN(Tensor made,
                           Dequantized(codes, *scales, zero_points, IntOr(node, "axis", 1),
                                       IntOr(node, "block_size", 0)));
  return made;
}

absl::StatusOr<std::optional<Tensor>> CompressedByCast(const Graph& graph, const Node& node) {
  const Tensor& codes = *ConstantInput(graph, node, 0);
  const auto to = static_cast<DataType>(IntOr(node, "to", 0));
  if (!IsCodeType(codes.type())) return std::nullopt;
  if (to == DataType::kFloat) {  // until a Mul scales them
    ANEMONE_ASSIGN_OR_RETURN(Compressed::Ptr made,
                             Compressed::Affine(codes, Tensor::Floats({}, {1}), Tensor(),
                                                ScaleGrid::OfTensor(codes.elements())));
    return Tensor::Of(codes.dims(), std::move(made));
  }
  if (to != DataType::kInt32 && to != DataType::kInt64) return std::nullopt;
  return Tensor::Of(codes.dims(), Compressed::Integers(codes, to));
}

absl::StatusOr<std::optional<Tensor>> CompressedByMul(const Graph& graph, const Node& node) {
  const Tensor *codes = ConstantInput(graph, node, 0), *scales = ConstantInput(graph, node, 1);
  if (scales == nullptr) return std::nullopt;
  if (scales->compressed() != nullptr) std::swap(codes, scales);
  const Compressed* stored = codes->compressed();
  const bool are_integers = stored != nullptr && stored->form() == CompressedForm::kAffine &&
                            !stored->is_plain() && stored->scales() == std::vector<float>{1} &&
                            stored->zero_points().empty();
  if (!are_integers || scales->type() != DataType::kFloat || scales->is_fill() ||
      scales->compressed() != nullptr) {
    return std::nullopt;
  }
  const std::optional<ScaleGrid> grid = GridOfFactors(*codes, scales->dims());
  if (!grid) return std::nullopt;
  auto made = Compressed::Affine(stored->codes(), *scales, Tensor(), *grid);
  if (!made.ok() || !FitFp16((*made)->scales())) return std::nullopt;  // or are not finite
  return Tensor::Of(codes->dims(), *std::move(made));
}

absl::StatusOr<std::optional<Tensor>> CompressedByGather(const Graph& graph, const Node& node) {
  const Tensor& table = *ConstantInput(graph, node, 0);
  const Tensor* indices = ConstantInput(graph, node, 1);
  const Compressed* stored = indices == nullptr ? nullptr : indices->compressed();
  if (stored == nullptr || !stored->is_plain() || stored->has_signed_codes() ||
      table.type() != DataType::kFloat || table.dims().size() != 1 ||
      table.elements() > kMostEntries) {
    return std::nullopt;
  }
  ANEMONE_ASSIGN_OR_RETURN(Compressed::Ptr made, Compressed::Palette(stored->codes(), table));
  return Tensor::Of(indices->dims(), std::move(made));
}

absl::StatusOr<std::optional<Tensor>> CompressedByTranspose(const Graph& graph, const Node& node) {
  const Tensor& matrix = *ConstantInput(graph, node, 0);
  if (matrix.compressed() == nullptr || matrix.dims().size() != 2) return std::nullopt;
  const Attribute* perm = node.FindAttribute("perm");
  if (perm != nullptr) {
    const auto* order = std::get_if<std::vector<int64_t>>(&perm->value);
    if (order == nullptr || *order != std::vector<int64_t>{1, 0}) return std::nullopt;
  }
  const int64_t rows = matrix.dims()[0], columns = matrix.dims()[1];
  Compressed::Ptr turned = matrix.compressed()->Transposed(rows, columns);
  if (turned == nullptr) return std::nullopt;
  GiveBackLarge(matrix.compressed()->codes().bytes());  // the transposed codes are read from now
  return Tensor::Of({columns, rows}, std::move(turned));
}

absl::StatusOr<std::optional<Tensor>> CompressedByRule(const Model& model, const Graph& graph,
                                                       const Node& node) {
  const CompressedRule rule = OperatorOf(node).compressed;
  if (rule == nullptr || node.outputs.size() != 1 || node.outputs[0] == kNone) return std::nullopt;
  bool is_large = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor* constant = ConstantInput(graph, node, i);
    is_large |= constant != nullptr && constant->elements() >= kLeastElements;
  }
  if (!is_large || ConstantInput(graph, node, 0) == nullptr) return std::nullopt;
  absl::StatusOr<std::optional<Tensor>> made = rule(graph, node);
  if (!made.ok()) return AtNode(model, node, made.status());
  return made;
}

void WriteCompressed(
    const std::string& name, const Tensor& constant, onnx::GraphProto* out,
    absl::FunctionRef<void(const std::string& name, const Tensor& initializer)> add) {
  Body(name, constant, out, add).Write();
}

}  // namespace anemone
