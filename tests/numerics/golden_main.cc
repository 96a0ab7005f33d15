// golden: runs operations on the software engine in exact mode. Each line of stdin is
//
//   {"target": "h13", "route": "mil", "options": {"mac-tile": "none"},
//    "calls": [{"op": ..., "inputs": [...], "attrs": {...},   // as in `anemone confirm --probe`
//               "values": [[15360, ...], ...]}, ...]}         // fp16 bits, for each input
//
// An input of type fp32 or uint8 has values of that type. An input named "%0" is the output of the
// first call. Instead of "calls" there may be "onnx", a graph in ONNX's text form, with "values"
// for its inputs. Each line of stdout is {"bits": [...], "floats": [...]}: the output as fp16 bits,
// and as floats that the host reads (null if not finite); or {"refused": ...} or {"error": ...}.
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/device.h"
#include "engine/formats/json_keys.h"
#include "importer/importer.h"
#include "kernels/mil.h"
#include "math/move/convert.h"
#include "onnx/defs/parser.h"
#include "partitioner/plan.h"

namespace anemone {
namespace {

// The bytes of an array of elements.
struct Values {
  math::Element element = math::Element::kHalf;
  std::vector<std::byte> bytes;
};

template <class T>
Values ValuesOf(math::Element element, const Json& list) {
  const auto values = list.get<std::vector<T>>();
  Values made = {element, std::vector<std::byte>(values.size() * sizeof(T))};
  std::copy_n(reinterpret_cast<const std::byte*>(values.data()), made.bytes.size(),
              made.bytes.data());
  return made;
}

Values ReadValues(const std::string& type, const Json& list) {
  if (type == "fp32") return ValuesOf<float>(math::Element::kFloat, list);
  if (type == "uint8") return ValuesOf<uint8_t>(math::Element::kUInt8, list);
  return ValuesOf<uint16_t>(math::Element::kHalf, list);
}

// A network and the values of its input ports.
struct Work {
  Network network;
  std::map<std::string, Values> ports;
};

// Appends the units of `part`, whose input "%k" is the output of call k.
Operand Append(Network part, const std::vector<Operand>& outputs, Network& whole) {
  std::vector<Operand> inputs;
  for (InputPort& port : part.inputs) {
    int call;
    if (absl::SimpleAtoi(absl::StrCat(port.name).substr(1), &call) && port.name[0] == '%') {
      inputs.push_back(outputs[call]);
      continue;
    }
    inputs.push_back({Operand::Source::kInput, static_cast<int>(whole.inputs.size())});
    whole.inputs.push_back(std::move(port));
  }
  const int units = static_cast<int>(whole.units.size());
  const int constants = static_cast<int>(whole.constants.size());
  const auto moved = [&](Operand operand) {
    if (operand.source == Operand::Source::kInput) return inputs[operand.index];
    operand.index += operand.source == Operand::Source::kUnit ? units : constants;
    return operand;
  };
  for (Constant& constant : part.constants) whole.constants.push_back(std::move(constant));
  for (Unit& unit : part.units) {
    for (Operand& bottom : unit.bottoms) bottom = moved(bottom);
    unit.name = absl::StrCat("call", outputs.size(), "_", unit.name);
    whole.units.push_back(std::move(unit));
  }
  return moved(part.outputs[0].from);
}

absl::StatusOr<Work> WorkOfCalls(const Json& calls, const Target& target, Route route) {
  Work work;
  std::vector<Operand> outputs;
  for (const Json& from : calls) {
    MilCall call;
    ANEMONE_RETURN_IF_ERROR(ReadMilCall(from, call));
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      MilTensor& argument = call.arguments[i];
      if (absl::StartsWith(argument.name, "%")) continue;
      Values values = ReadValues(argument.dtype, from.at("values").at(i));
      if (argument.constant) {
        Tensor tensor = Tensor::Zeros(DataType::kFloat16, argument.shape);
        std::copy(values.bytes.begin(), values.bytes.end(), tensor.mutable_data<std::byte>());
        argument.value = std::move(tensor);
      } else {
        if (argument.dtype == "fp32") argument.dtype = "fp16";  // the port's type; values stay fp32
        work.ports[argument.name] = std::move(values);
      }
    }
    ANEMONE_ASSIGN_OR_RETURN(OperationVerdict answer,
                             JudgeOperation(call, target, route, /*rewrites=*/true));
    if (!answer.verdict.accepted) return absl::FailedPreconditionError(answer.verdict.message);
    outputs.push_back(Append(std::move(answer.network), outputs, work.network));
  }
  work.network.outputs.push_back({"y", outputs.back()});
  return work;
}

absl::StatusOr<Work> WorkOfOnnx(const Json& line, const Target& target, Route route) {
  onnx::ModelProto proto;
  const std::string text = absl::StrCat("<ir_version: 10, opset_import: [\"\" : 21]> test ",
                                        line.at("onnx").get<std::string>());
  if (auto status = onnx::OnnxParser(text.c_str()).Parse(proto); !status.IsOK()) {
    return absl::InvalidArgumentError(status.ErrorMessage());
  }
  ANEMONE_ASSIGN_OR_RETURN(Model model, ImportBytes(proto.SerializeAsString(), "", {}));
  ANEMONE_ASSIGN_OR_RETURN(Plan plan, MakePlan(model, {.target = &target, .route = route}));
  if (plan.segments.size() != 1 || plan.segments[0].placement != Placement::kEngine) {
    return absl::FailedPreconditionError("not one segment on the engine");
  }
  Work work = {std::move(plan.segments[0].network), {}};
  for (size_t i = 0; i < work.network.inputs.size(); ++i) {
    work.ports[work.network.inputs[i].name] = ReadValues("fp16", line.at("values").at(i));
  }
  return work;
}

absl::StatusOr<Json> Answer(const Json& line) {
  ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(line.at("target").get<std::string>()));
  const Route route = *ParseRoute(line.at("route").get<std::string>());
  absl::StatusOr<Work> work = line.contains("onnx") ? WorkOfOnnx(line, *target, route)
                                                    : WorkOfCalls(line.at("calls"), *target, route);
  if (absl::IsFailedPrecondition(work.status())) {
    return Json{{"refused", work.status().message()}};
  }
  ANEMONE_RETURN_IF_ERROR(work.status());
  std::string mode = "exact";
  for (const auto& [id, option] : line.at("options").items()) {
    absl::StrAppend(&mode, ",", id, "=", option.get<std::string>());
  }
  ANEMONE_ASSIGN_OR_RETURN(NumericsMode numerics, NumericsMode::Parse(mode));
  auto device = MakeSoftwareDevice({.numerics = std::move(numerics)});
  ANEMONE_ASSIGN_OR_RETURN(auto program, device->Compile(work->network, *target, route));
  std::vector<std::vector<std::byte>> memory;
  std::vector<const std::byte*> inputs;
  for (const ProgramPort& port : program->inputs()) {
    const SurfaceLayout& layout = port.layout;
    const Values& values = work->ports.at(port.name);
    std::vector<std::byte>& bytes = memory.emplace_back(layout.bytes());
    // ToSurface() is not used, because a NaN must reach the port.
    math::ConvertStrided(layout.dims.extent, values.bytes.data(),
                         math::DenseLayout(values.element, layout.dims.extent), bytes.data(),
                         MathLayout(layout));
    inputs.push_back(bytes.data());  // stays valid when `memory` grows
  }
  const SurfaceLayout& to = program->outputs()[0].layout;
  std::vector<std::byte> bytes(to.bytes());
  std::byte* output = bytes.data();
  ANEMONE_RETURN_IF_ERROR(device->Run(*program, {inputs, {&output, 1}}));
  std::vector<uint16_t> halves(to.dims.elements());
  std::vector<float> floats(halves.size());
  math::ConvertStrided(to.dims.extent, output, MathLayout(to), halves.data(),
                       math::DenseLayout(math::Element::kHalf, to.dims.extent));
  math::ConvertStrided(to.dims.extent, output, MathLayout(to), floats.data(),
                       math::DenseLayout(math::Element::kFloat, to.dims.extent));
  Json answer = {{"bits", halves}, {"floats", Json::array()}};
  for (float value : floats) {
    answer["floats"].push_back(std::isfinite(value) ? Json(value) : Json());
  }
  return answer;
}

}  // namespace
}  // namespace anemone

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    absl::StatusOr<anemone::Json> answer = anemone::Answer(anemone::Json::parse(line));
    std::cout << (answer.ok() ? answer->dump()
                              : anemone::Json{{"error", answer.status().ToString()}}.dump())
              << std::endl;
  }
}
