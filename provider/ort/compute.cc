#include "provider/ort/compute.h"

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/steady_now.h"
#include "importer/read/bindings.h"
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

// Unknown sizes fit any. A shape without sizes is a scalar or unknown (ReadType()), and fits too.
bool Fits(const onnx::TypeProto& declared, DataType type, absl::Span<const int64_t> dims) {
  if (declared.tensor_type().elem_type() != static_cast<int>(type)) return false;
  const auto& sizes = declared.tensor_type().shape().dim();
  return sizes.empty() || std::equal(sizes.begin(), sizes.end(), dims.begin(), dims.end(),
                                     [](const auto& size, int64_t dim) {
                                       return !size.has_dim_value() || size.dim_value() == dim;
                                     });
}

std::string TextOf(const onnx::TypeProto& type) {
  Shape shape;
  for (const auto& size : type.tensor_type().shape().dim()) {
    shape.push_back({.size = size.has_dim_value() ? size.dim_value() : -1});
  }
  return absl::StrCat(DataTypeName(static_cast<DataType>(type.tensor_type().elem_type())),
                      shape.empty() ? "" : " ", ShapeText(shape));
}

absl::Status CheckDeclared(const absl::flat_hash_map<std::string, onnx::TypeProto>& types,
                           absl::string_view what, const std::string& name, DataType type,
                           absl::Span<const int64_t> dims) {
  const auto declared = types.find(name);
  if (declared != types.end() && Fits(declared->second, type, dims)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " '", name, "': the segment has ", DataTypeName(type), " ", DimsToString(dims),
      ", but the model declares ", declared == types.end() ? "no type" : TextOf(declared->second),
      "; compile the model again"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<FusedProgram>> FusedProgram::Make(
    const OrtApi& api, std::shared_ptr<Device> device, const Target& target, Route route,
    const FusedNetwork& fused, const NodeNames& names,
    const absl::flat_hash_map<std::string, onnx::TypeProto>& types) {
  const PackagedSegment& segment = fused.segment;
  std::unique_ptr<FusedProgram> made(new FusedProgram(api, std::move(device), segment.name));
  ANEMONE_ASSIGN_OR_RETURN(made->program_, made->device_->Compile(segment.network, target, route));
  for (size_t i = 0; i < segment.inputs.size(); ++i) {
    const PackagedPort& port = segment.inputs[i];
    const int index = IndexOf(names.inputs, port.name);
    if (index < 0) return NoPort("input", port.name);
    ANEMONE_RETURN_IF_ERROR(CheckDeclared(types, "input", port.name, port.type, port.dims));
    made->inputs_.push_back({index, port, made->program_->inputs()[i].layout,
                             ReaderOf(segment.network, static_cast<int>(i))});
  }
  std::vector<bool> written(names.outputs.size());
  for (size_t i = 0; i < segment.outputs.size(); ++i) {
    const PackagedPort& port = segment.outputs[i];
    const int index = IndexOf(names.outputs, port.name);
    if (index < 0) return NoPort("output", port.name);
    ANEMONE_RETURN_IF_ERROR(CheckDeclared(types, "output", port.name, port.type, port.dims));
    written[index] = true;
    made->outputs_.push_back({index, port, made->program_->outputs()[i].layout,
                              MakerOf(segment.network, static_cast<int>(i))});
  }
  for (size_t i = 0; i < names.outputs.size(); ++i) {
    if (written[i]) continue;
    const std::string& name = names.outputs[i];
    const auto constant = fused.constants.find(name);
    if (constant == fused.constants.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the segment has no output '", name,
                       "', but the fused node has one; compile the model again"));
    }
    const Tensor& tensor = constant->second;
    ANEMONE_RETURN_IF_ERROR(CheckDeclared(types, "output", name, tensor.type(), tensor.dims()));
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
                       ", got ", DataTypeName(tensor.type()), " ", DimsToString(tensor.dims()),
                       "; the model declares a wrong type or shape; remove the declaration"));
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
