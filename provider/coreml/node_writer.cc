#include "provider/coreml/node_writer.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "importer/edit.h"
#include "importer/elements.h"

namespace anemone {

const Value* NodeWriter::ValueAt(size_t i) {
  if (ok() && !Has(i)) Fail(absl::StrCat("input ", i + 1, " is missing"));
  return ok() ? &to_.graph().values[node_.inputs[i]] : nullptr;
}

std::string NodeWriter::TypeOf(size_t i) {
  const Value* value = ValueAt(i);
  if (value == nullptr) return floats_;
  const char* dtype = MilTypeOf(value->type);
  if (dtype == nullptr)
    Fail(absl::StrCat("the type of '", value->name, "' is not one of Core ML's"));
  return dtype == nullptr || IsFloating(value->type) ? floats_ : dtype;
}

MilShape NodeWriter::ShapeOf(size_t i) {
  const Value* value = ValueAt(i);
  if (value == nullptr) return {1};
  const std::optional<MilShape> shape = MilShapeOf(*value);
  if (!shape || (HasFree(*shape) && !to_.may_be_free())) {
    Fail(absl::StrCat("'", value->name, "' has a free dimension; bind it with --dim NAME=N"));
    return {1};
  }
  return *shape;
}

int NodeWriter::RankOf(size_t i) {
  const Value* value = ValueAt(i);
  if (value == nullptr || !value->shape) return 1;
  return static_cast<int>(value->shape->size());
}

MilShape NodeWriter::OutShape(size_t i) {
  const std::optional<MilShape> shape = MilShapeOf(to_.graph().values[node_.outputs[i]]);
  if (!shape || (HasFree(*shape) && !to_.may_be_free())) {
    Fail(absl::StrCat("'", to_.graph().values[node_.outputs[i]].name,
                      "' has a size that is only known at run time, or a free dimension"));
    return {1};
  }
  return *shape;
}

std::string NodeWriter::OutType(size_t i) {
  const DataType type = to_.graph().values[node_.outputs[i]].type;
  const char* dtype = MilTypeOf(type);
  return dtype == nullptr || IsFloating(type) ? floats_ : dtype;
}

DataType NodeWriter::ResultType() const { return to_.graph().values[node_.outputs[0]].type; }

MilVar NodeWriter::In(size_t i, const std::string& dtype) {
  if (ValueAt(i) == nullptr) return {"", dtype, {1}};
  absl::StatusOr<MilVar> variable = to_.Read(node_.inputs[i], dtype);
  if (variable.ok()) return *variable;
  status_ = variable.status();
  return {"", dtype, {1}};
}

MilVar NodeWriter::Movable(size_t i) {
  const std::string dtype = TypeOf(i);
  return In(i, dtype == "bool" ? "int32" : dtype);
}

bool NodeWriter::IsConstant(size_t i) {
  const Value* value = ValueAt(i);
  return value != nullptr && value->constant.has_value();
}

bool NodeWriter::IsSameSize(size_t i, size_t axis_i, size_t j, size_t axis_j) {
  const Value *a = ValueAt(i), *b = ValueAt(j);
  if (a == nullptr || b == nullptr || !a->shape || !b->shape) return false;
  const Dim &x = (*a->shape)[axis_i], &y = (*b->shape)[axis_j];
  return x.known() ? x.size == y.size : !y.known() && !x.symbol.empty() && x.symbol == y.symbol;
}

std::vector<int64_t> NodeWriter::IntsAt(size_t i) {
  const Value* value = ValueAt(i);
  if (value == nullptr) return {};
  if (!value->constant || (value->constant->type() != DataType::kInt64 &&
                           value->constant->type() != DataType::kInt32)) {
    Fail(absl::StrCat("'", value->name, "' is only known at run time"));
    return {};
  }
  std::vector<int64_t> numbers(value->constant->elements());
  for (size_t at = 0; at < numbers.size(); ++at) {
    const auto j = static_cast<int64_t>(at);
    numbers[at] = value->constant->type() == DataType::kInt64 ? value->constant->at<int64_t>(j)
                                                              : value->constant->at<int32_t>(j);
  }
  return numbers;
}

std::vector<double> NodeWriter::NumbersAt(size_t i) {
  const Value* value = ValueAt(i);
  if (value == nullptr) return {};
  std::optional<std::vector<double>> numbers;
  if (value->constant) numbers = ToNumbers(*value->constant, value->constant->elements());
  if (!numbers) Fail(absl::StrCat("'", value->name, "' is only known at run time"));
  return numbers.value_or(std::vector<double>());
}

double NodeWriter::NumberAt(size_t i, double fallback) {
  if (!Has(i)) return fallback;
  const Value* value = ValueAt(i);
  if (value == nullptr) return fallback;
  if (!value->constant || value->constant->elements() != 1) {
    Fail(absl::StrCat("'", value->name, "' is only known at run time"));
    return fallback;
  }
  const NumberReader read = NumberReaderOf(value->constant->type());
  if (read != nullptr) return read(*value->constant, 0);
  Fail(absl::StrCat("the type of '", value->name, "' is not one of Core ML's"));
  return fallback;
}

int64_t NodeWriter::Int(absl::string_view name, int64_t fallback) const {
  return IntOr(node_, name, fallback);
}
double NodeWriter::Number(absl::string_view name, float fallback) const {
  return FloatOr(node_, name, fallback);
}
std::string NodeWriter::Text(absl::string_view name, const char* fallback) const {
  return StringOr(node_, name, fallback);
}
std::vector<int64_t> NodeWriter::Ints(absl::string_view name, std::vector<int64_t> fallback) const {
  return IntsOf(node_, name).value_or(std::move(fallback));
}
int64_t NodeWriter::Axis(absl::string_view name, int64_t fallback) {
  const int64_t axis = Int(name, fallback);
  return axis < 0 ? axis + RankOf(0) : axis;
}

MilVar NodeWriter::Emit(const std::string& op, std::vector<MilArgument> arguments) {
  return Emit(op, std::move(arguments), OutType(), OutShape());
}
MilVar NodeWriter::Emit(const std::string& op, std::vector<MilArgument> arguments,
                        const std::string& dtype, MilShape shape) {
  if (!ok()) return {"", dtype, std::move(shape)};
  return to_.Emit(op, std::move(arguments), dtype, std::move(shape));
}

MilVar NodeWriter::Binary(const std::string& op, const MilVar& x, const MilVar& y) {
  return Emit(op, {{"x", {x.name}}, {"y", {y.name}}}, x.dtype, Broadcast(x.shape, y.shape));
}
MilVar NodeWriter::Binary(const std::string& op, const MilVar& x, double y) {
  return Emit(op, {{"x", {x.name}}, {"y", {Scalar(y, x.dtype).name}}}, x.dtype, x.shape);
}
MilVar NodeWriter::Unary(const std::string& op, const MilVar& x) {
  return Emit(op, {{"x", {x.name}}}, x.dtype, x.shape);
}
MilVar NodeWriter::Select(const MilVar& condition, const MilVar& yes, const MilVar& no) {
  return Emit("select", {{"cond", {condition.name}}, {"a", {yes.name}}, {"b", {no.name}}},
              yes.dtype, Broadcast(yes.shape, no.shape));
}

MilVar NodeWriter::Spread(MilVar x, const MilShape& shape) {
  MilShape from = x.shape;
  if (from.size() < shape.size()) from.insert(from.begin(), shape.size() - from.size(), 1);
  if (!ok() || from == shape) return Reshape(x, shape);
  if (HasFree(from) || HasFree(shape)) {
    Fail("a value is repeated to a size that is only known at run time");
    return x;
  }
  x = Reshape(x, from);
  std::vector<int64_t> repeats(shape.size(), 1);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (from[i] != shape[i]) repeats[i] = shape[i];
  }
  return Emit("tile", {{"x", {x.name}}, {"reps", {to_.Ints(repeats)}}}, x.dtype, shape);
}

// x + 0 * condition.
MilVar NodeWriter::SpreadWith(const MilVar& x, const MilVar& condition) {
  if (!ok()) return x;
  return Binary("add", x, Binary("mul", to_.Cast(condition, x.dtype), 0));
}

MilVar NodeWriter::Reshape(const MilVar& x, const MilShape& shape) {
  if (!ok()) return x;
  if (ProgramWriter::CanReshape(x, shape)) return to_.Reshape(x, shape);
  Fail("several sizes that are only known at run time");
  return x;
}

MilVar NodeWriter::ReshapeBy(const MilVar& x, const MilVar& sizes, const MilShape& shape) {
  return Emit("reshape", {{"x", {x.name}}, {"shape", {sizes.name}}}, x.dtype, shape);
}

MilVar NodeWriter::Part(const MilVar& x, int64_t first, int64_t count, int64_t axis) {
  if (!ok()) return x;
  std::vector<int64_t> begin(x.shape.size(), 0);
  MilShape shape = x.shape;  // kFree is MIL's -1: the rest of the axis
  begin[axis] = first;
  shape[axis] = count;
  return Emit("slice_by_size",
              {{"x", {x.name}}, {"begin", {to_.Ints(begin)}}, {"size", {to_.Ints(shape)}}}, x.dtype,
              shape);
}

MilVar NodeWriter::Joined(const std::vector<MilVar>& parts, int64_t axis) {
  if (!ok() || parts.size() == 1) return parts[0];
  MilArgument values{.name = "values", .is_list = true};
  MilShape shape = parts[0].shape;
  shape[axis] = 0;
  for (const MilVar& part : parts) {
    values.values.push_back(part.name);
    const bool is_known = shape[axis] != kFree && part.shape[axis] != kFree;
    shape[axis] = is_known ? shape[axis] + part.shape[axis] : kFree;
  }
  return Emit("concat",
              {std::move(values), {"axis", {to_.Int(axis)}}, {"interleave", {to_.Bool(false)}}},
              parts[0].dtype, shape);
}

MilVar NodeWriter::Picked(const MilVar& x, const std::vector<int64_t>& places, int64_t axis) {
  if (!ok()) return x;
  MilShape shape = x.shape;
  shape[axis] = static_cast<int64_t>(places.size());
  return Emit("gather",
              {{"x", {x.name}}, {"indices", {to_.Ints(places)}}, {"axis", {to_.Int(axis)}}},
              x.dtype, shape);
}

MilVar NodeWriter::Reversed(const MilVar& x, int64_t axis) {
  return Emit("reverse", {{"x", {x.name}}, {"axes", {to_.Ints({&axis, 1})}}}, x.dtype, x.shape);
}

MilVar NodeWriter::Transposed(const MilVar& x, const std::vector<int64_t>& order) {
  MilShape shape;
  shape.reserve(order.size());
  for (int64_t axis : order) shape.push_back(x.shape[axis]);
  return Emit("transpose", {{"x", {x.name}}, {"perm", {to_.Ints(order)}}}, x.dtype, shape);
}

MilVar NodeWriter::MatMul(const MilVar& x, const MilVar& y, bool transposes_y) {
  if (!ok()) return x;
  std::vector<MilArgument> arguments = {{"x", {x.name}}, {"y", {y.name}}};
  if (transposes_y) {
    arguments.push_back({"transpose_x", {to_.Bool(false)}});
    arguments.push_back({"transpose_y", {to_.Bool(true)}});
  }
  MilShape shape = Broadcast(MilShape(x.shape.begin(), x.shape.end() - 2),
                             MilShape(y.shape.begin(), y.shape.end() - 2));
  shape.push_back(x.shape[x.shape.size() - 2]);
  shape.push_back(y.shape[y.shape.size() - (transposes_y ? 2 : 1)]);
  return Emit("matmul", std::move(arguments), x.dtype, shape);
}

MilVar NodeWriter::Squeezed(const MilVar& x, int64_t axis) {
  if (!ok()) return x;
  MilShape shape = x.shape;
  shape.erase(shape.begin() + axis);
  return Emit("squeeze", {{"x", {x.name}}, {"axes", {to_.Ints({&axis, 1})}}}, x.dtype, shape);
}

MilVar NodeWriter::Expanded(const MilVar& x, int64_t axis) {
  if (!ok()) return x;
  MilShape shape = x.shape;
  shape.insert(shape.begin() + axis, 1);
  return Emit("expand_dims", {{"x", {x.name}}, {"axes", {to_.Ints({&axis, 1})}}}, x.dtype, shape);
}

MilVar NodeWriter::Filled(const MilVar& sizes, double value, const std::string& dtype,
                          const MilShape& shape) {
  return Emit("fill", {{"shape", {sizes.name}}, {"value", {Scalar(value, dtype).name}}}, dtype,
              shape);
}

MilVar NodeWriter::SizeOf(const MilVar& x, int64_t axis) {
  if (!ok() || x.shape[axis] != kFree) return VectorOf({ok() ? x.shape[axis] : 1});
  return Part(to_.ExtentsOf(x), axis);
}

MilVar NodeWriter::Scalar(double value, const std::string& dtype) {
  if (dtype == "bool") return {to_.Bool(value != 0), dtype, {}};
  if (dtype == "int32") return {to_.Int(static_cast<int64_t>(value)), dtype, {}};
  return {to_.Number(value, dtype), dtype, {}};
}

void NodeWriter::Out(const MilVar& variable, size_t i) {
  if (!ok() || OutputOr(node_, i) == kNone) return;
  status_ = to_.Set(node_.outputs[i], variable, floats_ == "fp32");
}

void NodeWriter::Fail(absl::string_view why) {
  if (ok()) status_ = absl::UnimplementedError(why);
}

const MilNode* FindMilNode(const Node& node) {
  static const auto& rows = *[] {
    auto* made = new std::map<std::string, const MilNode*, std::less<>>;
    for (absl::Span<const MilNode> family :
         {ElementwiseMilNodes(), LayerMilNodes(), MoveMilNodes(), IndexMilNodes(),
          RecurrentMilNodes(), EinsumMilNodes(), QuantizedMilNodes(), WindowMilNodes()}) {
      for (const MilNode& row : family) made->emplace(row.op_type, &row);
    }
    return made;
  }();
  if (!node.domain.empty()) return nullptr;
  const auto found = rows.find(node.op_type);
  return found == rows.end() ? nullptr : found->second;
}

MilShape Broadcast(const MilShape& a, const MilShape& b) {
  MilShape shape(std::max(a.size(), b.size()), 1);
  for (const MilShape* from : {&a, &b}) {
    for (size_t i = 0; i < from->size(); ++i) {
      int64_t& extent = shape[shape.size() - from->size() + i];
      if (extent == 1 || (extent == kFree && (*from)[i] != 1)) extent = (*from)[i];
    }
  }
  return shape;
}

}  // namespace anemone
