// golden: runs single operations on the software engine in exact mode. Each line of stdin is
//
//   {"target": "h13", "route": "mil", "options": {"mac-tile": "none"},
//    "call": {"op": ..., "inputs": [...], "attrs": {...}},   // as `anemone confirm --probe` has it
//    "values": [[15360, ...], ...]}                          // fp16 bits, by input
//
// and each line of stdout {"bits": [...]} or {"refused": "..."}.
#include <cstdint>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "anemone/status_macros.h"
#include "engine/device.h"
#include "engine/json_keys.h"
#include "kernels/mil.h"
#include "provider/crossing.h"

namespace anemone {
namespace {

Tensor HalfTensor(const std::vector<int64_t>& shape, const std::vector<uint16_t>& bits) {
  Tensor tensor = Tensor::Zeros(DataType::kFloat16, shape);
  std::memcpy(tensor.mutable_data<uint16_t>(), bits.data(), bits.size() * sizeof(uint16_t));
  return tensor;
}

absl::Status SetOption(const std::string& id, const std::string& option, math::Numerics& n) {
  for (const math::NumericsRule& rule : math::NumericsRules()) {
    if (id != rule.id) continue;
    for (size_t i = 0; i < rule.options.size(); ++i) {
      if (option != rule.options[i]) continue;
      rule.set(n, static_cast<uint8_t>(i));
      return absl::OkStatus();
    }
  }
  return absl::NotFoundError(absl::StrCat("no option ", id, " ", option));
}

absl::StatusOr<Json> Answer(const Json& line) {
  MilCall call;
  ANEMONE_RETURN_IF_ERROR(ReadMilCall(line.at("call"), call));
  const Json& values = line.at("values");
  for (size_t i = 0; i < call.arguments.size(); ++i) {
    if (!call.arguments[i].constant) continue;
    call.arguments[i].value = HalfTensor(call.arguments[i].shape, values.at(i));
  }
  ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(line.at("target").get<std::string>()));
  const Route route = line.at("route") == "mil" ? Route::kMil : Route::kNetplist;
  ANEMONE_ASSIGN_OR_RETURN(OperationVerdict answer,
                           JudgeOperation(call, *target, route, /*rewrites=*/true));
  if (!answer.verdict.accepted) return Json{{"refused", answer.verdict.message}};
  SoftwareOptions options{.exact = true, .numerics = math::NumericsOf(target->family())};
  for (const auto& [id, option] : line.at("options").items()) {
    ANEMONE_RETURN_IF_ERROR(SetOption(id, option, *options.numerics));
  }
  auto device = MakeSoftwareDevice(options);
  ANEMONE_ASSIGN_OR_RETURN(auto program, device->Compile(answer.network, *target, route));
  std::vector<std::vector<std::byte>> memory;
  std::vector<const std::byte*> inputs;
  for (const ProgramPort& port : program->inputs()) {
    std::vector<std::byte>& bytes = memory.emplace_back(port.layout.bytes());
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      if (call.arguments[i].name != port.name) continue;
      ToSurface(HalfTensor(call.arguments[i].shape, values.at(i)), port.layout, bytes.data());
    }
    inputs.push_back(bytes.data());  // which stay where they are when `memory` grows
  }
  const SurfaceLayout& to = program->outputs()[0].layout;
  std::vector<std::byte> bytes(to.bytes());
  std::byte* output = bytes.data();
  ANEMONE_RETURN_IF_ERROR(device->Run(*program, {inputs, {&output, 1}}));
  const Tensor y = FromSurface(output, to, DataType::kFloat16, {to.dims.elements()});
  Json bits = Json::array();
  for (int64_t i = 0; i < y.elements(); ++i) bits.push_back(y.at<uint16_t>(i));
  return Json{{"bits", bits}};
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
