#include "provider/ports.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "importer/read/bindings.h"
#include "importer/write/to_onnx.h"
#include "onnx/onnx_pb.h"

namespace anemone {
namespace {

DataType NumberedType(int32_t number) {
  return number > 0 && number <= kLastDataType ? static_cast<DataType>(number)
                                               : DataType::kUndefined;
}

// The parts of an ONNX type that a PortInfo has.
struct TypeInfo {
  PortKind kind = PortKind::kOther;
  DataType element = DataType::kUndefined;
  std::string text = "unknown";
};

TypeInfo InfoOf(const onnx::TypeProto& type) {
  const auto around = [](PortKind kind, const char* name, const onnx::TypeProto& inner) {
    const TypeInfo info = InfoOf(inner);
    return TypeInfo{kind, info.element, absl::StrCat(name, "(", info.text, ")")};
  };
  if (type.has_sequence_type()) {
    return around(PortKind::kSequence, "sequence", type.sequence_type().elem_type());
  }
  if (type.has_optional_type()) {
    return around(PortKind::kOptional, "optional", type.optional_type().elem_type());
  }
  if (type.has_map_type()) {
    const DataType key = NumberedType(type.map_type().key_type());
    const TypeInfo value = InfoOf(type.map_type().value_type());
    return {PortKind::kMap, value.element,
            absl::StrCat("map(", DataTypeName(key), ", ", value.text, ")")};
  }
  if (!type.has_tensor_type()) return {};
  const DataType element = NumberedType(type.tensor_type().elem_type());
  return {PortKind::kTensor, element, std::string(DataTypeName(element))};
}

bool Fits(const onnx::TypeProto& type, const OnnxValue& value) {
  const auto is_of = [](const onnx::TypeProto& inner) {
    return [&inner](const OnnxValue& part) { return Fits(inner, part); };
  };
  switch (value.kind) {
    case OnnxValue::Kind::kNothing:
      return type.has_optional_type();
    case OnnxValue::Kind::kTensor:
      if (type.has_tensor_type()) {
        return value.tensor.type() == NumberedType(type.tensor_type().elem_type());
      }
      break;
    case OnnxValue::Kind::kSequence:
      if (type.has_sequence_type()) {
        return std::all_of(value.elements.begin(), value.elements.end(),
                           is_of(type.sequence_type().elem_type()));
      }
      break;
    case OnnxValue::Kind::kMap:
      if (type.has_map_type()) {
        return value.elements[0].tensor.type() == NumberedType(type.map_type().key_type()) &&
               value.elements[0].tensor.dims() == value.elements[1].tensor.dims() &&
               Fits(type.map_type().value_type(), value.elements[1]);
      }
      break;
  }
  return type.has_optional_type() && Fits(type.optional_type().elem_type(), value);
}

std::string TextOf(const OnnxValue& value) {
  constexpr size_t kShown = 3;
  const auto parts = [&] {
    std::vector<std::string> texts;
    for (const OnnxValue& part : value.elements) {
      texts.push_back(texts.size() < kShown ? TextOf(part) : "...");
      if (texts.size() > kShown) break;
    }
    return absl::StrJoin(texts, ", ");
  };
  switch (value.kind) {
    case OnnxValue::Kind::kTensor:
      return absl::StrCat(DataTypeName(value.tensor.type()), " ",
                          DimsToString(value.tensor.dims()));
    case OnnxValue::Kind::kSequence:
      return absl::StrCat("sequence(", parts(), ")");
    case OnnxValue::Kind::kMap:
      return absl::StrCat("map(", parts(), ")");
    default:
      return "nothing";
  }
}

bool HasShape(const PortInfo& port, const Tensor& tensor) {
  if (tensor.dims().size() != port.dims.size()) return false;
  for (size_t i = 0; i < port.dims.size(); ++i) {
    if (port.dims[i] >= 0 && port.dims[i] != tensor.dims()[i]) return false;
  }
  return true;
}

}  // namespace

const PortInfo* FindPort(absl::Span<const PortInfo> ports, absl::string_view name) {
  const auto found = std::find_if(ports.begin(), ports.end(),
                                  [&](const PortInfo& port) { return port.name == name; });
  return found == ports.end() ? nullptr : &*found;
}

PortInfo PortOf(const Graph& graph, ValueId value) {
  const Value& v = graph.values[value];
  TypeInfo info = InfoOf(TypeOf(v));
  PortInfo port{v.name, info.element, {}, graph.defaults.count(value) > 0, info.kind, info.text};
  if (v.shape) {
    for (const Dim& dim : *v.shape) port.dims.push_back(dim.known() ? dim.size : -1);
  }
  return port;
}

absl::Status CheckInput(const Graph& graph, ValueId input, const PortInfo& port,
                        const OnnxValue& given) {
  const bool is_tensor = port.kind == PortKind::kTensor;
  const std::optional<Shape>& declared = graph.values[input].shape;
  const bool fits = is_tensor ? given.kind == OnnxValue::Kind::kTensor &&
                                    given.tensor.type() == port.type &&
                                    (!declared || HasShape(port, given.tensor))
                              : Fits(TypeOf(graph.values[input]), given);
  if (fits) return absl::OkStatus();
  const std::string shape = !is_tensor || !declared ? ""
                            : declared->empty()     ? " scalar"
                                                    : absl::StrCat(" ", ShapeText(*declared));
  return absl::InvalidArgumentError(absl::StrCat(
      "input '", port.name, "': want ", port.type_text, shape, ", got ", TextOf(given),
      is_tensor ? "; give an array of that type and shape" : "; give a value of that type"));
}

absl::Status RequireTensors(absl::Span<const PortInfo> outputs) {
  for (const PortInfo& port : outputs) {
    if (port.kind == PortKind::kTensor || port.kind == PortKind::kOther) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("output '", port.name, "': ", port.type_text,
                     " is not a tensor; use RunValues(), or the Python package's Session"));
  }
  return absl::OkStatus();
}

}  // namespace anemone
