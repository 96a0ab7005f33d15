#include "kernels/mil.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/constant.h"
#include "engine/formats/json_keys.h"
#include "kernels/shared/bounds.h"
#include "kernels/units/reshape.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

using OperationIndex = std::map<std::string, const MilOperation*, std::less<>>;

const OperationIndex& Operations() {
  static const OperationIndex& index = *[] {
    auto* made = new OperationIndex;
    for (const KernelRows& rows : AllKernelRows()) {
      for (const MilOperation& row : rows.operations) made->emplace(row.op, &row);
    }
    return made;
  }();
  return index;
}

struct TypeName {
  const char* name;
  DataType type;
};
constexpr TypeName kTypes[] = {
    {"fp16", DataType::kFloat16}, {"fp32", DataType::kFloat},  {"bf16", DataType::kBFloat16},
    {"uint8", DataType::kUInt8},  {"int8", DataType::kInt8},   {"uint16", DataType::kUInt16},
    {"int16", DataType::kInt16},  {"int32", DataType::kInt32}, {"int64", DataType::kInt64},
    {"bool", DataType::kBool},
};

// kInvalidArgument if the tensor's dtype does not exist. That is an error of the caller and not a
// refusal by the engine.
absl::StatusOr<DataType> TypeOf(const MilTensor& tensor) {
  std::vector<std::string> known;
  for (const TypeName& type : kTypes) {
    if (tensor.dtype == type.name) return type.type;
    known.emplace_back(type.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("'", tensor.name, "': there is no dtype '",
                                                 tensor.dtype, "'; want ",
                                                 absl::StrJoin(known, ", ")));
}

// The type of an image buffer is checked only by the operations that take images.
bool IsImage(const MilTensor& tensor) { return absl::StartsWith(tensor.dtype, "pixel_buffer"); }

absl::StatusOr<Format> FormatOf(const MilTensor& tensor) {
  Format format = Format::kFloat16;
  absl::Status status = Plain::Read(tensor.dtype, format);
  if (status.ok()) return format;
  return absl::InvalidArgumentError(absl::StrCat("'", tensor.name, "', dtype: ", status.message()));
}

// Reads a constant tensor from an attribute.
absl::StatusOr<MilTensor> TensorOf(absl::string_view name, const Json& from) {
  MilTensor tensor{.name = std::string(name), .constant = true};
  if (!from.is_object() || !from.contains("shape")) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "': want a constant, {\"shape\": [...], \"dtype\": \"fp16\"}"));
  }
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "shape", tensor.shape));
  ANEMONE_RETURN_IF_ERROR(ReadIfThere(from, "dtype", tensor.dtype));
  return tensor;
}

// Refuses extents far above every target's limit, so that their products cannot overflow later.
absl::Status CheckExtents(NetworkBuilder& c, const MilTensor& tensor) {
  constexpr int64_t kMostElements = int64_t{1} << 40;
  int64_t elements = 1;
  for (int64_t extent : tensor.shape) {
    elements *= std::max<int64_t>(extent, 1);
    if (extent <= kExtentBound && elements <= kMostElements) continue;
    return c.Refuse(c.route() == Route::kNetplist ? rule::kMaxExtent : rule::kMaxDimension);
  }
  return absl::OkStatus();
}

// The checks of the compiler's frontend that apply to a tensor of any operation.
absl::Status CheckTensor(NetworkBuilder& c, const MilTensor& tensor) {
  const size_t rank = tensor.shape.size();
  if (rank > kMaxRank) return c.Refuse(rank == kMaxRank + 1 ? rule::kRank : rule::kRankAbove6);
  for (int64_t extent : tensor.shape) {
    if (extent < 0) return c.Refuse(rule::kSymbolicShape);
  }
  ANEMONE_RETURN_IF_ERROR(CheckExtents(c, tensor));
  if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) == tensor.shape.end()) {
    return absl::OkStatus();
  }
  if (c.route() == Route::kNetplist) return c.Refuse(rule::kEmptyTensor);
  std::vector<int64_t> least = tensor.shape;
  for (int64_t& extent : least) extent = std::max<int64_t>(extent, 1);
  return c.Refuse(rule::kEmptyMilTensor, absl::StrJoin(least, ","),
                  absl::StrJoin(tensor.shape, ","));
}

absl::Status CheckArguments(NetworkBuilder& c, const MilCall& call) {
  for (const MilTensor& tensor : call.arguments) {
    if (!IsImage(tensor)) {
      ANEMONE_RETURN_IF_ERROR(TypeOf(tensor).status());
      if (!tensor.constant && tensor.dtype != "fp16" && tensor.dtype != "uint8") {
        return c.Refuse(rule::kPortFormat);
      }
    }
    ANEMONE_RETURN_IF_ERROR(CheckTensor(c, tensor));
  }
  return absl::OkStatus();
}

// The unit that `call` describes with the keys of a netplist.
Operand BuildUnit(const UnitKind& kind, const MilCall& call, NetworkBuilder& c) {
  std::vector<Operand> operands;
  for (const MilTensor& tensor : call.arguments) {
    if (!IsImage(tensor)) ANEMONE_FAIL_IF_ERROR(c, TypeOf(tensor).status());
    ANEMONE_FAIL_IF_ERROR(c, CheckTensor(c, tensor));
    const Dims dims = tensor.dims();
    if (tensor.constant) {
      ANEMONE_ASSIGN_OR_FAIL(c, Tensor zeros, ZerosOf(tensor));
      operands.push_back(c.AddConstant(std::move(zeros), dims));
    } else {
      absl::StatusOr<Format> format = FormatOf(tensor);
      if (!format.ok()) return c.Refuse(rule::kPortFormat);
      operands.push_back(c.AddInput(tensor.name, dims, *format));
    }
  }
  Json keys = Json::object();
  std::vector<Tensor> weights;
  for (const auto& [key, value] : call.attributes.items()) {
    if (!value.is_object()) {
      keys[key] = value;
      continue;
    }
    constexpr absl::string_view kWeights[] = {"weight", "bias", "scale"};
    if (std::find(std::begin(kWeights), std::end(kWeights), key) == std::end(kWeights)) {
      return c.Fail(absl::InvalidArgumentError(absl::StrCat(
          kind.type, ": there is no constant '", key, "'; want ", absl::StrJoin(kWeights, ", "))));
    }
    ANEMONE_ASSIGN_OR_FAIL(c, MilTensor tensor, TensorOf(key, value));
    ANEMONE_ASSIGN_OR_FAIL(c, Tensor zeros, ZerosOf(tensor));
    weights.push_back(std::move(zeros));
  }
  return AddAuthoredUnit(c, kind, keys, std::move(operands), std::move(weights));
}

absl::Status NoSuchOperation(absl::string_view op, Route route) {
  std::vector<std::string> known;
  for (const auto& [name, row] : Operations()) known.push_back(name);
  if (route == Route::kNetplist) {
    const std::vector<std::string> types = UnitTypes();
    known.insert(known.end(), types.begin(), types.end());
  }
  return absl::NotFoundError(absl::StrCat(
      "operation '", op, "': unknown on route ", RouteName(route), "; near: ",
      absl::StrJoin(NearNames(op, std::move(known)), ", "), "; `anemone units` lists all"));
}

}  // namespace

Dims MilTensor::dims() const {
  if (!in_engine_order || shape.size() != kAxisCount) return PlaceShape(shape);
  Dims dims;
  std::copy(shape.begin(), shape.end(), dims.extent.begin());
  return dims;
}

absl::StatusOr<Tensor> ZerosOf(const MilTensor& tensor) {
  if (tensor.value) return *tensor.value;
  ANEMONE_ASSIGN_OR_RETURN(DataType type, TypeOf(tensor));
  for (int64_t extent : tensor.shape) {
    if (extent < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", tensor.name, "': want extents of at least 1 for a constant"));
    }
  }
  return ZeroFill(type, tensor.shape);
}

const MilOperation* FindMilOperation(absl::string_view op) {
  auto found = Operations().find(op);
  return found == Operations().end() ? nullptr : found->second;
}

const std::vector<int64_t>& MilContext::ShapeOf(size_t i) {
  static const std::vector<int64_t>& ones = *new std::vector<int64_t>(kMaxRank, 1);
  if (i >= arguments()) {
    Fail(absl::InvalidArgumentError(absl::StrCat(call_.op, ": argument ", i + 1, " is missing")));
    return ones;
  }
  seen_.insert(i);
  return call_.arguments[i].shape;
}

Operand MilContext::In(size_t i) {
  ShapeOf(i);
  if (!ok()) return {};
  if (i < operands_.size() && operands_[i]) return *operands_[i];
  const MilTensor& tensor = call_.arguments[i];
  const Dims dims = tensor.dims();
  operands_.resize(std::max(operands_.size(), i + 1));
  if (tensor.constant) {
    ANEMONE_ASSIGN_OR_FAIL(*this, Tensor constant, ZerosOf(tensor));
    if (tensor.value && !tensor.in_engine_order && dims.d() > 1 && dims.c() > 1 &&
        IsEngineConstant(constant.type())) {
      constant = WithDepthMoved(constant);
    }
    operands_[i] = AddConstant(std::move(constant), dims);
  } else {
    ANEMONE_ASSIGN_OR_FAIL(*this, Format format, FormatOf(tensor));
    operands_[i] = AddInput(tensor.name, dims, format);
  }
  return *operands_[i];
}

Operand MilContext::Aligned(size_t i, absl::Span<const int64_t> shape) {
  const Operand x = In(i);
  const std::vector<int64_t>& own = ShapeOf(i);
  if (own.size() == shape.size()) return x;
  std::vector<int64_t> aligned(shape.size() - own.size(), 1);
  aligned.insert(aligned.end(), own.begin(), own.end());
  return FromOnnxOrder(*this, x, aligned);
}

absl::StatusOr<std::vector<int64_t>> MilContext::CommonShape() {
  std::vector<int64_t> common;
  for (const MilTensor& tensor : call_.arguments) {
    std::vector<int64_t> longer = tensor.shape, shorter = common;
    if (longer.size() < shorter.size()) std::swap(longer, shorter);
    for (size_t i = 0; i < shorter.size(); ++i) {
      int64_t& a = longer[longer.size() - 1 - i];
      int64_t b = shorter[shorter.size() - 1 - i];
      if (a != b && a != 1 && b != 1) {
        return absl::InvalidArgumentError(
            absl::StrCat(call_.op, ": want shapes that can be broadcast, got ",
                         DimsToString(tensor.shape), " and ", DimsToString(common)));
      }
      a = std::max(a, b);
    }
    common = std::move(longer);
  }
  return common;
}

absl::StatusOr<std::optional<MilTensor>> MilContext::Constant(absl::string_view name) {
  read_.emplace(name);
  if (auto found = call_.attributes.find(name); found != call_.attributes.end()) {
    ANEMONE_ASSIGN_OR_RETURN(MilTensor tensor, TensorOf(name, *found));
    return tensor;
  }
  for (size_t i = 0; i < arguments(); ++i) {
    const MilTensor& tensor = call_.arguments[i];
    if (!tensor.constant || tensor.name != name) continue;
    seen_.insert(i);
    return tensor;
  }
  return std::nullopt;
}

template <class T>
absl::StatusOr<T> MilContext::Get(absl::string_view key, T fallback) {
  read_.emplace(key);
  auto found = call_.attributes.find(key);
  if (found == call_.attributes.end()) return fallback;
  if (absl::Status status = Plain::Read(*found, fallback); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(call_.op, ", attribute '", key, "': ", status.message()));
  }
  return fallback;
}

absl::StatusOr<int64_t> MilContext::Int(absl::string_view key, int64_t fallback) {
  return Get(key, fallback);
}
absl::StatusOr<bool> MilContext::Bool(absl::string_view key, bool fallback) {
  return Get(key, fallback);
}
absl::StatusOr<float> MilContext::Number(absl::string_view key, float fallback) {
  return Get(key, fallback);
}
absl::StatusOr<std::string> MilContext::Text(absl::string_view key, std::string fallback) {
  return Get(key, std::move(fallback));
}
absl::StatusOr<std::vector<int64_t>> MilContext::Ints(absl::string_view key,
                                                      std::vector<int64_t> fallback) {
  return Get(key, std::move(fallback));
}

absl::StatusOr<int> MilContext::AxisAt(absl::string_view key, int64_t fallback) {
  ANEMONE_ASSIGN_OR_RETURN(int64_t axis, Int(key, fallback));
  In(0);
  ANEMONE_RETURN_IF_ERROR(status());
  if (axis < -rank(0) || axis >= rank(0)) {
    return absl::InvalidArgumentError(absl::StrCat(call_.op, ", attribute '", key,
                                                   "': want an axis of the argument, ", -rank(0),
                                                   "..", rank(0) - 1, ", got ", axis));
  }
  return static_cast<int>(axis < 0 ? axis + rank(0) : axis);
}

absl::Status MilContext::Out(const Operand& from, absl::Span<const int64_t> shape) {
  ANEMONE_RETURN_IF_ERROR(status());
  if (shape.size() > kMaxRank) return Refuse(rule::kReshapeRank);
  if (Dims want = PlaceShape(shape); DimsOf(from) != want) {
    return absl::InternalError(absl::StrCat(call_.op, ": computes ",
                                            anemone::DimsToString(DimsOf(from)), ", want ",
                                            anemone::DimsToString(want)));
  }
  AddOutput("y", from);
  return absl::OkStatus();
}

absl::Status MilContext::CheckOutputType() {
  constexpr absl::string_view kKey = "output_dtype";
  if (read_.contains(kKey)) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(std::string dtype, Text(kKey, "fp16"));
  if (dtype == "fp16") return absl::OkStatus();
  if (dtype == "bf16") return Refuse(rule::kOutputBf16);
  return NotLowered(absl::StrCat("output of type ", dtype));
}

absl::Status MilContext::NoneLeft() const {
  for (const auto& [key, value] : call_.attributes.items()) {
    if (read_.contains(key)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(call_.op, ": there is no attribute '", key, "'"));
  }
  for (size_t i = 0; i < arguments(); ++i) {
    // An operation may read only the dtype or the value of a constant.
    if (seen_.contains(i) || call_.arguments[i].constant) continue;
    return absl::InvalidArgumentError(absl::StrCat(call_.op, ": there is no argument ", i + 1,
                                                   " ('", call_.arguments[i].name, "', ",
                                                   DimsToString(call_.arguments[i].shape), ")"));
  }
  return absl::OkStatus();
}

absl::StatusOr<OperationVerdict> JudgeOperation(const MilCall& call, const Target& target,
                                                Route route, bool rewrites) {
  MilContext c(call, target, route, rewrites);
  const UnitKind* kind = route == Route::kNetplist ? FindUnitKind(call.op) : nullptr;
  const MilOperation* operation = kind == nullptr ? FindMilOperation(call.op) : nullptr;
  if (kind == nullptr && operation == nullptr) return NoSuchOperation(call.op, route);

  OperationVerdict answer;
  absl::Status status;
  if (route == Route::kMil && !target.mil_route()) {
    status = c.Refuse(rule::kMilRoute);
  } else if (kind != nullptr) {
    c.AddOutput("y", BuildUnit(*kind, call, c));
  } else {
    status = CheckArguments(c, call);
    if (status.ok()) status = operation->build(c);
    if (status.ok() && c.ok()) status = c.CheckOutputType();
    if (status.ok()) status = c.NoneLeft();
  }
  if (!c.ok()) status = c.status();  // the first error
  answer.rewritten = c.rewritten();
  if (c.refusal()) {
    answer.verdict = *c.refusal();
    return answer;
  }
  ANEMONE_RETURN_IF_ERROR(status);
  answer.network = c.TakeNetwork();
  for (const Unit& unit : answer.network.units) answer.units.emplace_back(unit.kind->type);
  answer.verdict = CheckNetwork(answer.network, target, route).verdict;
  return answer;
}

}  // namespace anemone
