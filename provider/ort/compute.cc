#include "provider/ort/compute.h"

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/steady_now.h"
#include "provider/crossing.h"
#include "provider/ort_status.h"

namespace anemone {
namespace {

int IndexOf(const std::vector<std::string>& names, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? -1 : static_cast<int>(it - names.begin());
}

absl::Status NoPort(absl::string_view what, const std::string& name) {
  return absl::InvalidArgumentError(
      absl::StrCat("the fused node has no ", what, " '", name,
                   "', but its segment has one; compile the model again"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FusedProgram>> FusedProgram::Make(
    const OrtApi& api, std::shared_ptr<Device> device, const Target& target, Route route,
    const FusedNetwork& fused, const std::vector<std::string>& input_names,
    const std::vector<std::string>& output_names) {
  const PackagedSegment& segment = fused.segment;
  std::unique_ptr<FusedProgram> made(new FusedProgram(api, std::move(device), segment.name));
  ANEMONE_ASSIGN_OR_RETURN(made->program_, made->device_->Compile(segment.network, target, route));
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    const int index = IndexOf(input_names, segment.inputs[i].name);
    if (index < 0) return NoPort("input", segment.inputs[i].name);
    made->inputs_.push_back({index, segment.inputs[i], made->program_->inputs()[i].layout,
                             ReaderOf(segment.network, static_cast<int>(i))});
  }
  std::vector<bool> written(output_names.size());
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    const int index = IndexOf(output_names, segment.outputs[i].name);
    if (index < 0) return NoPort("output", segment.outputs[i].name);
    written[index] = true;
    made->outputs_.push_back({index, segment.outputs[i], made->program_->outputs()[i].layout,
                              MakerOf(segment.network, static_cast<int>(i))});
  }
  for (size_t i = 0; i < output_names.size(); ++i) {
    if (written[i]) continue;
    const auto constant = fused.constants.find(output_names[i]);
    if (constant == fused.constants.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the segment has no output '", output_names[i],
                       "', but the fused node has one; compile the model again"));
    }
    made->constants_.push_back({static_cast<int>(i), constant->second});
  }
  return made;
}

absl::StatusOr<std::unique_ptr<FusedProgram::Surfaces>> FusedProgram::TakeSurfaces() {
  if (auto idle = idle_.Take()) return *std::move(idle);
  auto surfaces = std::make_unique<Surfaces>();
  for (const std::vector<Port>* ports : {&inputs_, &outputs_}) {
    for (const Port& port : *ports) {
      ANEMONE_ASSIGN_OR_RETURN(Surface surface, Surface::Allocate(port.layout.bytes()));
      surfaces->push_back(std::move(surface));
    }
  }
  return surfaces;
}

absl::Status FusedProgram::ReadInputs(OrtKernelContext* context, const Surfaces& surfaces,
                                      RangeWatch& watch) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Port& port = inputs_[i];
    const OrtValue* value = nullptr;
    ANEMONE_RETURN_IF_ERROR(
        FromOrt(api_, api_.KernelContext_GetInput(context, port.index, &value)));
    ANEMONE_ASSIGN_OR_RETURN(const Tensor tensor, TensorOf(api_, value));
    if (tensor.type() != port.tensor.type || tensor.dims() != port.tensor.dims) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", port.tensor.name, "': planned for ",
                       DataTypeName(port.tensor.type), " ", DimsToString(port.tensor.dims),
                       ", got ", DataTypeName(tensor.type()), " ", DimsToString(tensor.dims())));
    }
    math::Tally tally;
    ToSurface(tensor, port.layout, surfaces[i].data(), watch.ForInput(tally));
    watch.Input(tally, tensor.elements(), port.tensor.name, port.unit);
  }
  return absl::OkStatus();
}

absl::Status FusedProgram::RunProgram(const Surfaces& surfaces, Trace* trace) const {
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (size_t i = 0; i < inputs_.size(); ++i) inputs.push_back(surfaces[i].data());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    outputs.push_back(surfaces[inputs_.size() + i].data());
  }
  const std::function<void(absl::string_view, absl::string_view, absl::Duration)> on_unit =
      [trace](absl::string_view unit, absl::string_view type, absl::Duration took) {
        trace->Add("unit", absl::StrCat(type, " ", unit), SteadyNow() - took, took);
      };
  return device_->Run(
      *program_,
      {.inputs = inputs, .outputs = outputs, .on_unit = trace == nullptr ? nullptr : &on_unit});
}

absl::StatusOr<std::byte*> FusedProgram::OutputMemory(OrtKernelContext* context, int index,
                                                      const std::vector<int64_t>& dims) const {
  OrtValue* value = nullptr;
  void* data = nullptr;
  ANEMONE_RETURN_IF_ERROR(FromOrt(
      api_, api_.KernelContext_GetOutput(context, index, dims.data(), dims.size(), &value)));
  if (value == nullptr) return nullptr;  // the output is not used
  ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.GetTensorMutableData(value, &data)));
  return static_cast<std::byte*>(data);
}

absl::Status FusedProgram::WriteOutputs(OrtKernelContext* context, const Surfaces& surfaces,
                                        RangeWatch& watch) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Port& port = outputs_[i];
    ANEMONE_ASSIGN_OR_RETURN(std::byte * to, OutputMemory(context, port.index, port.tensor.dims));
    if (to == nullptr) continue;
    math::Tally tally;
    FromSurface(surfaces[inputs_.size() + i].data(), port.layout, port.tensor.type,
                port.tensor.dims, to, watch.ForOutput(tally));
    ANEMONE_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(port.tensor.dims));
    watch.Output(tally, elements, port.tensor.name, port.unit);
  }
  for (const Constant& constant : constants_) {
    ANEMONE_ASSIGN_OR_RETURN(std::byte * to,
                             OutputMemory(context, constant.index, constant.tensor.dims()));
    const absl::Span<const std::byte> bytes = constant.tensor.bytes();
    if (to != nullptr && !bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  }
  return absl::OkStatus();
}

absl::Status FusedProgram::Run(OrtKernelContext* context, RangeWatch& watch, Trace* trace) {
  const absl::Time start = SteadyNow();
  ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<Surfaces> surfaces, TakeSurfaces());
  ANEMONE_RETURN_IF_ERROR(ReadInputs(context, *surfaces, watch));
  ANEMONE_RETURN_IF_ERROR(RunProgram(*surfaces, trace));
  ANEMONE_RETURN_IF_ERROR(WriteOutputs(context, *surfaces, watch));
  if (trace != nullptr) trace->Add("segment", name_, start, SteadyNow() - start);
  idle_.GiveBack(std::move(surfaces));
  return absl::OkStatus();
}

}  // namespace anemone
