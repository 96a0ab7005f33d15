#include "provider/coreml/mil_proto.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

#include "MIL.pb.h"  // generated
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "math/core/half.h"

namespace anemone {
namespace {

namespace mil = CoreML::Specification::MILSpec;

struct TypeRow {
  const char* dtype;
  mil::DataType type;
};
constexpr TypeRow kTypes[] = {
    {"bool", mil::BOOL},     {"string", mil::STRING}, {"fp16", mil::FLOAT16},
    {"fp32", mil::FLOAT32},  {"int4", mil::INT4},     {"int8", mil::INT8},
    {"int16", mil::INT16},   {"int32", mil::INT32},   {"int64", mil::INT64},
    {"uint1", mil::UINT1},   {"uint4", mil::UINT4},   {"uint8", mil::UINT8},
    {"uint16", mil::UINT16}, {"uint32", mil::UINT32},
};

// Types that are read, but that no package of ours has.
constexpr TypeRow kForeignTypes[] = {{"fp64", mil::FLOAT64},
                                     {"uint2", mil::UINT2},
                                     {"uint3", mil::UINT3},
                                     {"uint6", mil::UINT6},
                                     {"uint64", mil::UINT64}};

absl::Status NoSuchType(const std::string& dtype) {
  return absl::InternalError(absl::StrCat("MIL type '", dtype, "' in a package"));
}

// A state is "state<fp16>".
absl::Status WriteType(const MilType& type, mil::ValueType& to) {
  absl::string_view inner = type.dtype;
  if (absl::ConsumePrefix(&inner, "state<") && absl::ConsumeSuffix(&inner, ">")) {
    return WriteType({std::string(inner), type.shape},
                     *to.mutable_statetype()->mutable_wrappedtype());
  }
  const auto* row = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const TypeRow& r) { return type.dtype == r.dtype; });
  if (row == std::end(kTypes)) return NoSuchType(type.dtype);
  mil::TensorType& tensor = *to.mutable_tensortype();
  tensor.set_datatype(row->type);
  if (!type.shape) return absl::OkStatus();
  tensor.set_rank(static_cast<int64_t>(type.shape->size()));
  for (int64_t extent : *type.shape) {
    mil::Dimension& dimension = *tensor.add_dimensions();
    if (extent < 0) {
      dimension.mutable_unknown()->set_variadic(false);
    } else {
      dimension.mutable_constant()->set_size(extent);
    }
  }
  return absl::OkStatus();
}

// Calls `put` with each element of a value: one, or those of an array.
template <class Put>
void ForEach(const Json& data, Put put) {
  if (!data.is_array()) return put(data);
  for (const Json& element : data) put(element);
}

std::string BytesOf(const MilValue& value) {
  std::string bytes;
  ForEach(value.data, [&](const Json& element) {
    if (value.type.dtype == "fp16") {
      const math::Half half = math::ToHalf(element.get<float>());
      bytes.append(reinterpret_cast<const char*>(&half), sizeof(half));
    } else {
      const auto number = static_cast<uint32_t>(element.get<int64_t>());
      bytes.append(reinterpret_cast<const char*>(&number),
                   value.type.dtype == "uint32" ? sizeof(number) : 1);
    }
  });
  return bytes;
}

absl::Status WriteNumbers(const MilValue& value, mil::TensorValue& to) {
  const std::string& dtype = value.type.dtype;
  if (dtype == "fp16" || dtype == "int8" || dtype == "uint8" || dtype == "uint32") {
    to.mutable_bytes()->set_values(BytesOf(value));
  } else if (dtype == "fp32") {
    auto& values = *to.mutable_floats()->mutable_values();
    ForEach(value.data, [&](const Json& element) { values.Add(element.get<float>()); });
  } else if (dtype == "int64") {
    auto& values = *to.mutable_longints()->mutable_values();
    ForEach(value.data, [&](const Json& element) { values.Add(element.get<int64_t>()); });
  } else if (dtype == "int32" || dtype == "int16" || dtype == "uint16") {
    auto& values = *to.mutable_ints()->mutable_values();
    ForEach(value.data, [&](const Json& element) { values.Add(element.get<int32_t>()); });
  } else if (dtype == "bool") {
    auto& values = *to.mutable_bools()->mutable_values();
    ForEach(value.data, [&](const Json& element) { values.Add(element.get<bool>()); });
  } else if (dtype == "string") {
    ForEach(value.data, [&](const Json& element) {
      to.mutable_strings()->add_values(element.get<std::string>());
    });
  } else {
    return NoSuchType(dtype);
  }
  return absl::OkStatus();
}

absl::Status WriteValue(const MilValue& value, mil::Value& to) {
  ANEMONE_RETURN_IF_ERROR(WriteType(value.type, *to.mutable_type()));
  if (!value.blob) return WriteNumbers(value, *to.mutable_immediatevalue()->mutable_tensor());
  to.mutable_blobfilevalue()->set_filename(value.blob->path);
  to.mutable_blobfilevalue()->set_offset(value.blob->offset);
  return absl::OkStatus();
}

absl::Status WriteNamed(const MilOutput& output, mil::NamedValueType& to) {
  to.set_name(output.name);
  return WriteType(output.type, *to.mutable_type());
}

absl::Status WriteBlock(absl::Span<const MilStatement> statements,
                        absl::Span<const std::string> outputs, mil::Block& to);

absl::Status WriteStatement(const MilStatement& statement, mil::Operation& to) {
  to.set_type(statement.op);
  for (const MilArgument& argument : statement.arguments) {
    mil::Argument& made = (*to.mutable_inputs())[argument.name];
    for (const std::string& value : argument.values) made.add_arguments()->set_name(value);
  }
  for (const MilOutput& output : statement.outputs) {
    ANEMONE_RETURN_IF_ERROR(WriteNamed(output, *to.add_outputs()));
  }
  for (const auto& [key, value] : statement.attributes) {
    ANEMONE_RETURN_IF_ERROR(WriteValue(value, (*to.mutable_attributes())[key]));
  }
  for (const MilBlock& block : statement.blocks) {
    ANEMONE_RETURN_IF_ERROR(WriteBlock(block.statements, block.outputs, *to.add_blocks()));
  }
  return absl::OkStatus();
}

absl::Status WriteBlock(absl::Span<const MilStatement> statements,
                        absl::Span<const std::string> outputs, mil::Block& to) {
  for (const MilStatement& statement : statements) {
    ANEMONE_RETURN_IF_ERROR(WriteStatement(statement, *to.add_operations()));
  }
  for (const std::string& output : outputs) to.add_outputs(output);
  return absl::OkStatus();
}

}  // namespace

const char* MilDtypeOf(int type) {
  for (const absl::Span<const TypeRow> rows :
       {absl::MakeConstSpan(kTypes), absl::MakeConstSpan(kForeignTypes)}) {
    for (const TypeRow& row : rows) {
      if (row.type == type) return row.dtype;
    }
  }
  return nullptr;
}

absl::Status WriteMilProto(const MilProgram& program, const MilOpset& opset, mil::Program& to) {
  to.set_version(1);
  mil::Function& function = (*to.mutable_functions())[program.function];
  function.set_opset(opset.function);
  for (const MilOutput& input : program.inputs) {
    ANEMONE_RETURN_IF_ERROR(WriteNamed(input, *function.add_inputs()));
  }
  return WriteBlock(program.statements, program.outputs,
                    (*function.mutable_block_specializations())[opset.function]);
}

}  // namespace anemone
