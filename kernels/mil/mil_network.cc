#include "kernels/mil/mil_network.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_blobs.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_compressed.h"

namespace anemone {
namespace {

// Arguments that stay tensors although they are integers. Other integer constants become
// attributes.
bool IsIndices(const std::string& argument) { return argument == "indices"; }

class Reader {
 public:
  Reader(const MilBlobSource& blobs, NetworkBuilder& c) : blobs_(blobs), c_(c) {}

  absl::Status Read(const MilProgram& program) {
    for (const MilOutput& input : program.inputs) {
      Value value{.tensor = {.name = input.name, .dtype = input.type.dtype}};
      if (!input.type.shape) return Wrong("main", "want inputs that are tensors");
      value.tensor.shape = *input.type.shape;
      if (value.tensor.shape.size() > kMaxRank)
        return Wrong("main", "want inputs of rank 5 or less");
      const Format format = input.type.dtype == "uint8" ? Format::kUInt8 : Format::kFloat16;
      value.operand = c_.AddInput(input.name, value.tensor.dims(), format);
      values_.emplace(input.name, std::move(value));
    }
    for (size_t i = 0; i < program.statements.size(); ++i) {
      const MilStatement& statement = program.statements[i];
      absl::Status status = statement.op == "const"        ? ReadConst(statement)
                            : DeclaresWeight(statement.op) ? ReadWeight(statement)
                                                           : ReadCall(statement);
      if (status.ok()) continue;
      if (c_.refusal()) return status;
      return absl::Status(status.code(),
                          absl::StrCat("MIL statement ", i + 1, ": ", status.message()));
    }
    for (const std::string& name : program.outputs) {
      const Value& value = values_.at(name);
      if (!value.operand) return Wrong(name, "a constant cannot be an output");
      c_.AddOutput(name, *value.operand);
    }
    c_.CleanUp();
    return absl::OkStatus();
  }

 private:
  // The value of a name: a port, a result of units, or a constant.
  struct Value {
    MilTensor tensor;
    std::optional<Operand> operand;  // in c_
    std::optional<MilValue> constant;
  };

  static absl::Status Wrong(const std::string& where, const char* what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
  }

  absl::Status ReadConst(const MilStatement& statement) {
    const MilValue* value = statement.attribute("val");
    if (value == nullptr || statement.outputs.size() != 1) {
      return Wrong("const", "want the attribute 'val' and one output");
    }
    if (statement.outputs[0].type != value->type) {
      return Wrong(statement.outputs[0].name, "want the type of the attribute 'val'");
    }
    Value made{.constant = *value};
    made.tensor = {.name = statement.outputs[0].name, .dtype = value->type.dtype, .constant = true};
    if (value->type.shape) made.tensor.shape = *value->type.shape;
    if (value->blob) {
      ANEMONE_ASSIGN_OR_RETURN(made.tensor.value, Stored(*value, made.tensor.shape));
    } else if (value->type.dtype == "fp16") {
      ANEMONE_ASSIGN_OR_RETURN(made.tensor.value, Floats(*value, made.tensor.shape));
    }
    values_.emplace(statement.outputs[0].name, std::move(made));
    return absl::OkStatus();
  }

  // The tensor of a constant in the weights file. Elements of less than 8 bits are packed; those of
  // uint1 remain bytes.
  absl::StatusOr<Tensor> Stored(const MilValue& value, const std::vector<int64_t>& shape) {
    const std::optional<DataType> type = MilBlobType(value.type.dtype);
    if (!type) return Wrong("a constant in a file", "want fp16, uint16, or 1, 4 or 8 bits");
    const bool is_mask = value.type.dtype == "uint1";
    if (!is_mask && BitsOf(*type) >= 8) return blobs_(*value.blob, *type, shape);
    ANEMONE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(shape));
    const int64_t bytes = (elements * (is_mask ? 1 : BitsOf(*type)) + 7) / 8;
    ANEMONE_ASSIGN_OR_RETURN(Tensor packed, blobs_(*value.blob, DataType::kUInt8, {bytes}));
    if (is_mask || packed.is_fill()) return packed;
    const absl::Span<const std::byte> view = packed.bytes();
    return Tensor::View(*type, shape, view, std::make_shared<const Tensor>(std::move(packed)));
  }

  static absl::StatusOr<Tensor> Floats(const MilValue& value, const std::vector<int64_t>& shape) {
    std::vector<float> floats;
    auto add = [&](const Json& number) {
      if (number.is_number()) floats.push_back(number.get<float>());
    };
    if (value.data.is_array()) {
      for (const Json& number : value.data) add(number);
    } else {
      add(value.data);
    }
    ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(shape));
    if (count != static_cast<int64_t>(floats.size())) {
      return Wrong("const", "want one number for each element");
    }
    return Tensor::Floats(shape, floats);
  }

  // The integers of a constant in the text; nullopt if an element is not an integer or their number
  // does not match the shape.
  static std::optional<Tensor> Integers(const MilValue& value, const std::vector<int64_t>& shape) {
    std::vector<int64_t> integers;
    const Json list = value.data.is_array() ? value.data : Json::array({value.data});
    for (const Json& number : list) {
      if (number.is_number_integer()) integers.push_back(number.get<int64_t>());
    }
    const absl::StatusOr<int64_t> count = ElementCount(shape);
    if (!count.ok() || *count != static_cast<int64_t>(integers.size())) return std::nullopt;
    return Tensor::Int64s(shape, integers);
  }

  // Adds the argument to the call, as a tensor argument or as an attribute.
  void AddArgument(const std::string& name, const Value& value, bool is_operand, MilCall& call) {
    const bool is_tensor = !value.constant || is_operand ||
                           (value.constant->type.shape && value.tensor.value) || IsIndices(name);
    if (!is_tensor) {
      call.attributes[name] = value.constant->data;
      return;
    }
    MilTensor tensor = value.tensor;
    tensor.name = name;
    if (value.constant && !tensor.value) tensor.value = Integers(*value.constant, tensor.shape);
    call.arguments.push_back(std::move(tensor));
  }

  absl::StatusOr<MilPart> PartOf(const MilValue& value) {
    MilPart part{.dtype = value.type.dtype};
    if (value.type.shape) part.shape = *value.type.shape;
    if (value.blob) {
      ANEMONE_ASSIGN_OR_RETURN(part.tensor, Stored(value, part.shape));
    } else if (absl::StartsWith(part.dtype, "fp")) {
      ANEMONE_ASSIGN_OR_RETURN(part.tensor, Floats(value, part.shape));
    } else {
      std::optional<Tensor> integers = Integers(value, part.shape);
      if (!integers) return Wrong("a constant", "want one integer for each element");
      part.tensor = *std::move(integers);
    }
    return part;
  }

  // A compressed weight. Its constants are arguments or attributes.
  absl::Status ReadWeight(const MilStatement& statement) {
    std::map<std::string, MilPart> parts;
    for (const MilArgument& argument : statement.arguments) {
      if (argument.values.size() != 1) return Wrong(argument.name, "want one constant");
      const Value& value = values_.at(argument.values[0]);
      if (!value.constant) return Wrong(argument.name, "want a constant");
      ANEMONE_ASSIGN_OR_RETURN(parts[argument.name], PartOf(*value.constant));
    }
    for (const auto& [key, value] : statement.attributes) {
      if (key == "name") continue;
      ANEMONE_ASSIGN_OR_RETURN(parts[key], PartOf(value));
    }
    MilCall call{.op = statement.op};
    for (const std::string& name : {std::string(LikeOf(statement.op)), std::string("lut")}) {
      const auto part = parts.find(name);
      if (part != parts.end()) call.attributes[name] = {{"shape", part->second.shape}};
    }
    ANEMONE_ASSIGN_OR_RETURN(OperationVerdict answer,
                             JudgeOperation(call, c_.target(), Route::kMil, /*rewrites=*/true));
    if (!answer.verdict.accepted) return c_.Refuse(std::move(answer.verdict));
    ANEMONE_ASSIGN_OR_RETURN(Tensor weight, CompressedWeight(statement.op, parts));
    if (statement.outputs.size() != 1 || statement.outputs[0].type.shape != weight.dims()) {
      return Wrong(statement.op, "want one output, of the shape of the codes or the mask");
    }
    const std::string& name = statement.outputs[0].name;
    Value made;
    made.tensor = {.name = name, .shape = weight.dims(), .constant = true};
    made.tensor.value = std::move(weight);
    values_.emplace(name, std::move(made));
    return absl::OkStatus();
  }

  absl::Status ReadCall(const MilStatement& statement) {
    MilCall call{.op = statement.op};
    std::map<std::string, Operand> operands;  // by argument name in `call`
    for (const MilArgument& argument : statement.arguments) {
      // x and y, and the elements of a list such as the inputs of concat, are always tensors.
      const bool is_operand = argument.is_list || argument.name == "x" || argument.name == "y";
      for (size_t i = 0; i < argument.values.size(); ++i) {
        const Value& value = values_.at(argument.values[i]);
        const std::string name =
            argument.is_list ? absl::StrCat(argument.name, "_", i) : argument.name;
        AddArgument(name, value, is_operand, call);
        if (value.operand) operands[name] = *value.operand;
      }
    }
    ANEMONE_ASSIGN_OR_RETURN(OperationVerdict answer,
                             JudgeOperation(call, c_.target(), Route::kMil, /*rewrites=*/true));
    if (!answer.verdict.accepted) return c_.Refuse(std::move(answer.verdict));
    return Append(statement, operands, std::move(answer.network));
  }

  // Appends the units of one statement (`part`) to c_, reading its operands.
  absl::Status Append(const MilStatement& statement, const std::map<std::string, Operand>& operands,
                      Network part) {
    if (part.outputs.size() != statement.outputs.size()) {
      return Wrong(statement.op, "the statement declares a different number of outputs");
    }
    std::vector<Operand> inputs, constants, made;
    for (const InputPort& port : part.inputs) inputs.push_back(operands.at(port.name));
    for (Constant& constant : part.constants) {
      constants.push_back(c_.AddConstant(std::move(constant.tensor), constant.dims));
    }
    auto moved = [&](const Operand& operand) {
      const std::vector<Operand>* lists[] = {&inputs, &constants, &made};
      return (*lists[static_cast<size_t>(operand.source)])[operand.index];
    };
    for (Unit& unit : part.units) {
      for (Operand& operand : unit.bottoms) operand = moved(operand);
      made.emplace_back() = c_.AddUnit(*unit.kind, std::move(unit.params), std::move(unit.bottoms),
                                       std::move(unit.weights),
                                       absl::StrCat(statement.outputs[0].name, "#", made.size()));
    }
    for (size_t i = 0; i < part.outputs.size(); ++i) {
      const MilOutput& output = statement.outputs[i];
      Value value{.tensor = {.name = output.name}, .operand = moved(part.outputs[i].from)};
      if (!output.type.shape || c_.DimsOf(*value.operand) != PlaceShape(*output.type.shape)) {
        return Wrong(output.name, "its type differs from the type that the operation computes");
      }
      value.tensor.shape = *output.type.shape;
      values_.emplace(output.name, std::move(value));
    }
    return absl::OkStatus();
  }

  const MilBlobSource& blobs_;
  NetworkBuilder& c_;
  std::map<std::string, Value> values_;
};

}  // namespace

absl::Status ReadMilProgram(const MilProgram& program, const MilBlobSource& blobs,
                            NetworkBuilder& c) {
  return Reader(blobs, c).Read(program);
}

}  // namespace anemone
