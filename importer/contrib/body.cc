#include "importer/contrib/body.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace anemone {

absl::Status ContribBody::Keep(absl::string_view why) {
  kept_ = std::string(why);
  return absl::CancelledError(why);
}

absl::Status ContribBody::Need(bool holds, absl::string_view why) {
  return holds ? absl::OkStatus() : Keep(why);
}

template <class T>
const T* ContribBody::Find(absl::string_view name) {
  const Attribute* attribute = node().FindAttribute(name);
  const T* value = attribute == nullptr ? nullptr : std::get_if<T>(&attribute->value);
  if (value != nullptr) asked_.emplace(name);
  return value;
}

int64_t ContribBody::Int(absl::string_view name, int64_t fallback) {
  const auto* value = Find<int64_t>(name);
  return value == nullptr ? fallback : *value;
}

float ContribBody::Float(absl::string_view name, float fallback) {
  const auto* value = Find<float>(name);
  return value == nullptr ? fallback : *value;
}

std::string ContribBody::Text(absl::string_view name, absl::string_view fallback) {
  const auto* value = Find<std::string>(name);
  return value == nullptr ? std::string(fallback) : *value;
}

Sizes ContribBody::IntList(absl::string_view name) {
  const auto* value = Find<std::vector<int64_t>>(name);
  return value == nullptr ? Sizes() : *value;
}

std::vector<float> ContribBody::FloatList(absl::string_view name) {
  const auto* value = Find<std::vector<float>>(name);
  return value == nullptr ? std::vector<float>() : *value;
}

absl::Status ContribBody::NoneLeft() {
  for (const Attribute& attribute : node().attributes) {
    if (asked_.contains(attribute.name)) continue;
    return Keep(absl::StrCat("attribute '", attribute.name, "' is unknown or has the wrong type"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Sizes> ContribBody::DimsOf(size_t index, const std::vector<size_t>& ranks) {
  const ValueId id = input(index);
  if (id == kNone) return Keep(absl::StrCat("input ", index, " is missing"));
  if (!value(id).is_static()) {
    return Keep(absl::StrCat("the shape of '", value(id).name, "' is not known"));
  }
  Sizes dims = value(id).dims();
  if (!ElementCount(dims).ok()) return Keep(absl::StrCat("'", value(id).name, "' is too large"));
  if (!ranks.empty() && std::find(ranks.begin(), ranks.end(), dims.size()) == ranks.end()) {
    return Keep(
        absl::StrCat("'", value(id).name, "' has rank ", dims.size(), ", which is not supported"));
  }
  return dims;
}

absl::StatusOr<const Tensor*> ContribBody::Known(size_t index) const {
  const ValueId id = input(index);
  if (id == kNone) return nullptr;
  return constants_(id);
}

absl::StatusOr<DataType> ContribBody::FloatTypeOf(size_t index) {
  const ValueId id = input(index);
  const DataType type = id == kNone ? DataType::kUndefined : value(id).type;
  if (type == DataType::kFloat || type == DataType::kFloat16) return type;
  return Keep(
      absl::StrCat("input ", index, " is ", DataTypeName(type), ", want float32 or float16"));
}

namespace {

// The largest constant of an Aside that is looked for.
constexpr size_t kMostKeyBytes = size_t{1} << 16;

// Appends bytes behind their number, so that no two lists of them are the same text.
void AppendBytes(std::string& key, absl::string_view bytes) {
  absl::StrAppend(&key, bytes.size(), ":", bytes, ";");
}

// False for an attribute that has no key.
bool AppendAttribute(std::string& key, const Attribute& attribute) {
  AppendBytes(key, attribute.name);
  if (const auto* number = std::get_if<int64_t>(&attribute.value)) {
    absl::StrAppend(&key, "i", *number, ";");
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    AppendBytes(key, *text);
  } else if (const auto* numbers = std::get_if<Sizes>(&attribute.value)) {
    absl::StrAppend(&key, "l", absl::StrJoin(*numbers, ","), ";");
  } else {
    return false;
  }
  return true;
}

}  // namespace

ContribBody::Aside::Aside(ContribBody& body, absl::string_view what) : body_(body) {
  body.is_aside_ = true;
  const std::vector<OriginId>& call = body.node().origins;
  // Not needed in the body of an If or Loop, which is on the CPU as a whole.
  if (call.empty() || &body.graph() != &body.model().graph) return;
  std::vector<Origin>& origins = body.model().origins;
  Origin own = origins[call.front()];
  absl::StrAppend(&own.id, "/", what);
  own.is_aside = true;
  origins.push_back(std::move(own));
  body.set_origins({static_cast<OriginId>(origins.size() - 1)});
}

ContribBody::Aside::~Aside() {
  body_.is_aside_ = false;
  body_.set_origins(body_.node().origins);
}

ValueId ContribBody::Once(std::string key, absl::FunctionRef<ValueId()> make) {
  for (const AsideValues* made : {&earlier_asides_, &std::as_const(new_asides_)}) {
    if (const auto found = made->find(key); found != made->end()) return found->second;
  }
  const ValueId value = make();
  new_asides_.emplace(std::move(key), value);
  return value;
}

ValueId ContribBody::Append(absl::string_view op_type, std::vector<ValueId> inputs,
                            std::vector<Attribute> attributes) {
  if (!is_aside_) return LiftContext::Append(op_type, std::move(inputs), std::move(attributes));
  std::string key = absl::StrCat(op_type, "(", absl::StrJoin(inputs, ","), ")");
  bool has_key = true;
  for (const Attribute& attribute : attributes) has_key &= AppendAttribute(key, attribute);
  const auto make = [&] {
    return LiftContext::Append(op_type, std::move(inputs), std::move(attributes));
  };
  return has_key ? Once(std::move(key), make) : make();
}

ValueId ContribBody::Constant(Tensor tensor) {
  if (!is_aside_ || tensor.bytes().size() > kMostKeyBytes) {
    return LiftContext::Constant(std::move(tensor));
  }
  std::string key = absl::StrCat(tensor.is_fill(), DataTypeName(tensor.type()), "[",
                                 absl::StrJoin(tensor.dims(), ","), "]");
  AppendBytes(key, {reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()});
  return Once(std::move(key), [&] { return LiftContext::Constant(std::move(tensor)); });
}

absl::Status ContribBody::Give(size_t index, ValueId value) {
  if (!Makes(index)) return absl::OkStatus();
  LiftContext::Append("Identity", {value}, {});
  emitted().back().outputs = {output(index)};
  return absl::OkStatus();
}

ValueId ContribBody::Concat(std::vector<ValueId> values, int64_t axis) {
  return Emit("Concat", std::move(values), {{"axis", axis}});
}

ValueId ContribBody::Slice(ValueId value, int64_t axis, int64_t from, int64_t to) {
  return Emit("Slice", {value, Ints({from}), Ints({to}), Ints({axis})});
}

std::vector<ValueId> ContribBody::Split(ValueId value, int64_t axis, const Sizes& sizes) {
  LiftContext::Append("Split", {value, Ints(sizes)}, {{"axis", axis}});
  const size_t split = emitted().size() - 1;
  std::vector<ValueId> parts = emitted()[split].outputs;
  while (parts.size() < sizes.size()) parts.push_back(NewValue());
  emitted()[split].outputs = parts;
  return parts;
}

ValueId ContribBody::Gather(ValueId value, int64_t axis, ValueId indices) {
  return Emit("Gather", {value, indices}, {{"axis", axis}});
}

ValueId ContribBody::RefusedIfNegative(size_t input, int64_t count) {
  const ValueId indices = this->input(input);
  const bool is_wide = value(indices).type == DataType::kInt64;
  const auto number = [&](int64_t n) {
    return Constant(is_wide ? Tensor::Int64s({}, {n})
                            : Tensor::Of<int32_t>(DataType::kInt32, {}, {static_cast<int32_t>(n)}));
  };
  const ValueId is_negative = Emit("Less", {indices, number(0)});
  return Emit("Add", {indices, Emit("Where", {is_negative, number(-count), number(0)})});
}

ValueId ContribBody::Count(DataType type, int64_t count, const Sizes& dims) {
  if (type == DataType::kInt64) {
    std::vector<int64_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), int64_t{0});
    return Constant(Tensor::Int64s(dims, numbers));
  }
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), int32_t{0});
  return Constant(Tensor::Of<int32_t>(DataType::kInt32, dims, numbers));
}

// DequantizeLinear with scale 1; it has supported 4-bit integers for longer than Cast.
ValueId ContribBody::Widened(ValueId quantized, DataType type) {
  return Emit("DequantizeLinear", {quantized, Scalar(type, 1)});
}

ValueId ContribBody::Plus(ValueId a, ValueId b) { return b == kNone ? a : Emit("Add", {a, b}); }

}  // namespace anemone
