#include "fallback/cpu_session.h"

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "fallback/limited_allocator.h"
#include "fallback/ort_types.h"
#include "fallback/pages_given_back.h"
#include "importer/read/model_files.h"

namespace anemone {
namespace {

// True if a domain is not one that ONNX Runtime knows.
bool HasCustomDomain(const onnx::ModelProto& model) {
  return std::any_of(model.opset_import().begin(), model.opset_import().end(),
                     [](const onnx::OperatorSetIdProto& opset) {
                       const std::string& domain = opset.domain();
                       return !domain.empty() && !absl::StartsWith(domain, "ai.onnx") &&
                              !absl::StartsWith(domain, "com.microsoft");
                     });
}

absl::StatusOr<OrtPtr<OrtSessionOptions>> Prepare(const OrtRuntime& runtime,
                                                  const CpuSessionOptions& options,
                                                  bool custom_operators) {
  constexpr absl::string_view kWhere = "session options";
  const OrtApi& api = runtime.api();
  ANEMONE_ASSIGN_OR_RETURN(OrtPtr<OrtSessionOptions> prepared,
                           runtime.NewSessionOptions(custom_operators));
  OrtSessionOptions* const raw = prepared.get();
  ANEMONE_RETURN_IF_ERROR(
      runtime.ToStatus(api.SetSessionGraphOptimizationLevel(
                           raw, static_cast<GraphOptimizationLevel>(options.optimization)),
                       kWhere));
  if (!options.memory_pattern) {
    ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.DisableMemPattern(raw), kWhere));
  }
  if (!options.arena) {
    ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.DisableCpuMemArena(raw), kWhere));
  }
  if (!options.prepack) {
    ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(
        api.AddSessionConfigEntry(raw, "session.disable_prepacking", "1"), kWhere));
  }
  return prepared;
}

// For alarms: calls a function of ONNX Runtime whose error cannot be reported.
void Ignore(const OrtApi& api, OrtStatus* status) {
  if (status != nullptr) api.ReleaseStatus(status);
}

// A call of ONNX Runtime that may take memory. If the limit was reached, the error says so.
template <class Call>
absl::Status CallInMemory(const OrtRuntime& runtime, const std::string& where, const Call& call) {
  (void)TakeLimitText();
  absl::Status ended = runtime.ToStatus(call(), where);
  const std::string limit = TakeLimitText();
  if (ended.ok() || limit.empty()) return ended;
  return absl::ResourceExhaustedError(limit);
}

// Creates a session. It is given up when the time of this thread's work is over.
template <class Create>
absl::Status CreateInTime(const OrtRuntime& runtime, const std::string& where,
                          OrtSessionOptions* options, const Create& create) {
  const auto place = [&] { return where; };
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kCompile, place));
  const OrtApi& api = runtime.api();
  const Deadline::Alarm alarm(Deadline::Current(), [&api, options] {
    Ignore(api, api.SessionOptionsSetLoadCancellationFlag(options, true));
  });
  const MemoryLimit memory(runtime.memory_limit(), "opening a session of ONNX Runtime");
  const WorkPlace at(place);
  absl::Status created = CallInMemory(runtime, where, create);
  if (!created.ok()) ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kCompile, place));
  return created;
}

// External data is looked for only where there is none.
absl::Status OpenNoFiles(const OrtRuntime& runtime, absl::string_view where,
                         OrtSessionOptions* options) {
  constexpr char kEmptyFileFolder[] = "/dev";
  return runtime.ToStatus(
      runtime.api().AddSessionConfigEntry(
          options, "session.model_external_initializers_file_folder_path", kEmptyFileFolder),
      where);
}

// Passes large constants to ONNX Runtime without a copy.
//
// AddInitializer() replaces a constant of the model after the graph is optimized; nothing is
// copied. Two measures make this safe:
// - Each such constant becomes an output of the model that no caller requests, so that no optimizer
//   changes it under its name. (Without this, a transpose was moved into the model's constant, and
//   our replacement was used untransposed.)
// - The model says that its bytes are in an empty file, so that an optimizer that must read them
//   fails and does not read other bytes. AddExternalInitializers() then makes them readable, at the
//   cost of a copy while the session is created.
class Weights {
 public:
  // Moves the constants out of `model`. With `replaces`, marks their places as described above;
  // else ONNX Runtime only reads them, as it would read them from a file.
  static absl::StatusOr<Weights> Take(const std::shared_ptr<const OrtRuntime>& runtime,
                                      OnnxModel& model, bool replaces) {
    Weights weights;
    weights.replaces_ = replaces;
    onnx::GraphProto& graph = *model.proto.mutable_graph();
    std::map<absl::string_view, onnx::TensorProto*> initializers;
    for (auto& tensor : *graph.mutable_initializer()) initializers.emplace(tensor.name(), &tensor);
    std::set<std::string> outputs;
    for (const auto& output : graph.output()) outputs.insert(output.name());
    for (ExternalConstant& constant : model.external) {
      onnx::TensorProto& initializer = *initializers.at(constant.name);
      initializer.clear_external_data();
      initializer.clear_data_location();
      if (!CpuValue::Takes(*runtime, constant.tensor.type())) {
        initializer.set_raw_data(constant.tensor.bytes().data(), constant.tensor.bytes().size());
        continue;
      }
      ANEMONE_ASSIGN_OR_RETURN(CpuValue value, CpuValue::FromTensor(runtime, constant.tensor));
      PlaceInEmptyFile(initializer);
      if (replaces && outputs.insert(constant.name).second) {
        *graph.add_output() = OutputOf(initializer);
      }
      weights.values_.push_back(std::move(value));
      weights.names_.push_back(std::move(constant.name));
    }
    return weights;
  }

  // `readable`: let optimizers read the constants too.
  absl::Status AddTo(const OrtRuntime& runtime, absl::string_view where, bool readable,
                     OrtSessionOptions* options) const {
    if (values_.empty()) return absl::OkStatus();
    const OrtApi& api = runtime.api();
    ANEMONE_RETURN_IF_ERROR(OpenNoFiles(runtime, where, options));
    std::vector<const char*> names;
    std::vector<const OrtValue*> values;
    for (size_t i = 0; i < values_.size(); ++i) {
      names.push_back(names_[i].c_str());
      values.push_back(values_[i].get());
      if (!replaces_) continue;
      ANEMONE_RETURN_IF_ERROR(
          runtime.ToStatus(api.AddInitializer(options, names[i], values[i]), where));
    }
    if (!readable) return absl::OkStatus();
    return runtime.ToStatus(
        api.AddExternalInitializers(options, names.data(), values.data(), names.size()), where);
  }

  // Must outlive the session.
  std::vector<CpuValue> values() const { return values_; }

 private:
  static constexpr char kEmptyFile[] = "null";  // in the folder of OpenNoFiles()

  static void PlaceInEmptyFile(onnx::TensorProto& initializer) {
    initializer.set_data_location(onnx::TensorProto::EXTERNAL);
    onnx::StringStringEntryProto* const location = initializer.add_external_data();
    location->set_key("location");
    location->set_value(kEmptyFile);
  }

  static onnx::ValueInfoProto OutputOf(const onnx::TensorProto& initializer) {
    onnx::ValueInfoProto output;
    output.set_name(initializer.name());
    output.mutable_type()->mutable_tensor_type()->set_elem_type(initializer.data_type());
    return output;
  }

  bool replaces_ = true;
  std::vector<std::string> names_;
  std::vector<CpuValue> values_;
};

absl::StatusOr<std::string> BytesOf(const OnnxModel& model, absl::string_view where) {
  std::string bytes;
  if (model.proto.SerializeToString(&bytes)) return bytes;
  return absl::ResourceExhaustedError(absl::StrCat(
      where,
      ": want a model below 2 GiB without its large constants; store more of it as weights"));
}

CpuValue::Kind KindOf(ONNXType type) {
  switch (type) {
    case ONNX_TYPE_TENSOR:
      return CpuValue::Kind::kTensor;
    case ONNX_TYPE_SEQUENCE:
      return CpuValue::Kind::kSequence;
    case ONNX_TYPE_MAP:
      return CpuValue::Kind::kMap;
    default:
      return CpuValue::Kind::kOther;
  }
}

absl::Status ReadTensorPort(const OrtRuntime& runtime, absl::string_view where,
                            const OrtTypeInfo* type, CpuPort& port) {
  const OrtApi& api = runtime.api();
  const OrtTensorTypeAndShapeInfo* info = nullptr;  // belongs to `type`
  ONNXTensorElementDataType number = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.CastTypeInfoToTensorInfo(type, &info), where));
  ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.GetTensorElementType(info, &number), where));
  ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.GetDimensionsCount(info, &rank), where));
  std::vector<int64_t> sizes(rank);
  std::vector<const char*> symbols(rank);
  ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.GetDimensions(info, sizes.data(), rank), where));
  ANEMONE_RETURN_IF_ERROR(
      runtime.ToStatus(api.GetSymbolicDimensions(info, symbols.data(), rank), where));
  port.type = TypeNumbered(number);
  for (size_t i = 0; i < rank; ++i) port.shape.push_back({sizes[i], symbols[i]});
  return absl::OkStatus();
}

// The functions by which ONNX Runtime lists one kind of port.
struct PortReader {
  decltype(OrtApi::SessionGetInputCount) count;
  decltype(OrtApi::SessionGetInputName) name;
  decltype(OrtApi::SessionGetInputTypeInfo) type;
  bool has_default;
};

absl::Status AppendPorts(const OrtRuntime& runtime, absl::string_view where,
                         const OrtSession* session, const PortReader& reader,
                         std::vector<CpuPort>& ports) {
  const OrtApi& api = runtime.api();
  OrtAllocator* allocator = nullptr;
  size_t count = 0;
  ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.GetAllocatorWithDefaultOptions(&allocator), where));
  ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(reader.count(session, &count), where));
  for (size_t i = 0; i < count; ++i) {
    CpuPort& port = ports.emplace_back();
    port.has_default = reader.has_default;
    char* name = nullptr;
    ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(reader.name(session, i, allocator, &name), where));
    port.name = name;
    ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.AllocatorFree(allocator, name), where));
    OrtTypeInfo* raw = nullptr;
    ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(reader.type(session, i, &raw), where));
    const OrtPtr<OrtTypeInfo> type(raw, api.ReleaseTypeInfo);
    ONNXType kind = ONNX_TYPE_UNKNOWN;
    ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(api.GetOnnxTypeFromTypeInfo(raw, &kind), where));
    port.kind = KindOf(kind);
    if (kind != ONNX_TYPE_TENSOR) continue;
    ANEMONE_RETURN_IF_ERROR(ReadTensorPort(runtime, where, raw, port));
  }
  return absl::OkStatus();
}

}  // namespace

CpuSession::CpuSession(std::shared_ptr<const OrtRuntime> runtime, std::string where)
    : runtime_(std::move(runtime)),
      where_(std::move(where)),
      session_(nullptr, runtime_->api().ReleaseSession) {}

absl::StatusOr<std::unique_ptr<CpuSession>> CpuSession::FromModel(
    std::shared_ptr<const OrtRuntime> runtime, std::string where, OnnxModel model,
    const CpuSessionOptions& options) {
  std::unique_ptr<CpuSession> session(new CpuSession(std::move(runtime), std::move(where)));
  const int outputs = model.proto.graph().output_size();
  ANEMONE_ASSIGN_OR_RETURN(const Weights weights,
                           Weights::Take(session->runtime_, model, /*replaces=*/true));
  session->weights_ = weights.values();
  ANEMONE_ASSIGN_OR_RETURN(const std::string bytes, BytesOf(model, session->where_));
  const OrtRuntime& ort = *session->runtime_;
  const bool is_custom = HasCustomDomain(model.proto);
  const auto open = [&](bool readable) -> absl::Status {
    ANEMONE_ASSIGN_OR_RETURN(const OrtPtr<OrtSessionOptions> prepared,
                             Prepare(ort, options, is_custom));
    ANEMONE_RETURN_IF_ERROR(weights.AddTo(ort, session->where_, readable, prepared.get()));
    OrtSession* raw = nullptr;
    ANEMONE_RETURN_IF_ERROR(CreateInTime(ort, session->where_, prepared.get(), [&] {
      return ort.api().CreateSessionFromArray(ort.env(), bytes.data(), bytes.size(), prepared.get(),
                                              &raw);
    }));
    session->session_.reset(raw);
    return absl::OkStatus();
  };
  absl::Status status = open(false);
  if (!status.ok() && !IsOutOfTime(status) && !absl::IsResourceExhausted(status) &&
      !session->weights_.empty()) {
    status = open(true);
  }
  ANEMONE_RETURN_IF_ERROR(status);
  ANEMONE_RETURN_IF_ERROR(session->ReadPorts());
  session->outputs_.resize(outputs);
  return session;
}

absl::StatusOr<std::unique_ptr<CpuSession>> CpuSession::FromFile(
    std::shared_ptr<const OrtRuntime> runtime, const ModelFile& file,
    const CpuSessionOptions& options) {
  std::unique_ptr<CpuSession> session(
      new CpuSession(std::move(runtime), file.bytes == nullptr ? file.path : "model in memory"));
  // ONNX Runtime opens no file: it has other rules, and some of its versions none for sparse
  // tensors.
  absl::StatusOr<ModelForReader> read = ReadForReader(file.path, file.bytes);
  if (!read.ok()) {
    return file.bytes == nullptr ? read.status() : Annotated(read.status(), session->where_);
  }
  const OrtRuntime& ort = *session->runtime_;
  ANEMONE_ASSIGN_OR_RETURN(const OrtPtr<OrtSessionOptions> prepared,
                           Prepare(ort, options, file.custom_operators));
  for (const auto& [name, size] : file.dims) {
    ANEMONE_RETURN_IF_ERROR(
        ort.ToStatus(ort.api().AddFreeDimensionOverrideByName(prepared.get(), name.c_str(), size),
                     session->where_));
  }
  absl::string_view text = read->text;
  std::string bytes;
  std::vector<absl::Span<const std::byte>> mapped;
  if (read->model) {
    for (const ExternalConstant& constant : read->model->external) {
      mapped.push_back(constant.tensor.bytes());
    }
    ANEMONE_ASSIGN_OR_RETURN(const Weights weights,
                             Weights::Take(session->runtime_, *read->model, /*replaces=*/false));
    session->weights_ = weights.values();
    ANEMONE_ASSIGN_OR_RETURN(bytes, BytesOf(*read->model, session->where_));
    ANEMONE_RETURN_IF_ERROR(weights.AddTo(ort, session->where_, /*readable=*/true, prepared.get()));
    text = bytes;
  }
  if (session->weights_.empty()) {
    ANEMONE_RETURN_IF_ERROR(OpenNoFiles(ort, session->where_, prepared.get()));
  }
  OrtSession* raw = nullptr;
  {
    const PagesGivenBack pages(std::move(mapped));
    ANEMONE_RETURN_IF_ERROR(CreateInTime(ort, session->where_, prepared.get(), [&] {
      return ort.api().CreateSessionFromArray(ort.env(), text.data(), text.size(), prepared.get(),
                                              &raw);
    }));
  }
  session->session_.reset(raw);
  ANEMONE_RETURN_IF_ERROR(session->ReadPorts());
  return session;
}

absl::Status CpuSession::ReadPorts() {
  const OrtApi& api = runtime_->api();
  const PortReader inputs{api.SessionGetInputCount, api.SessionGetInputName,
                          api.SessionGetInputTypeInfo, false};
  const PortReader defaults{api.SessionGetOverridableInitializerCount,
                            api.SessionGetOverridableInitializerName,
                            api.SessionGetOverridableInitializerTypeInfo, true};
  const PortReader outputs{api.SessionGetOutputCount, api.SessionGetOutputName,
                           api.SessionGetOutputTypeInfo, false};
  ANEMONE_RETURN_IF_ERROR(AppendPorts(*runtime_, where_, session_.get(), inputs, inputs_));
  ANEMONE_RETURN_IF_ERROR(AppendPorts(*runtime_, where_, session_.get(), defaults, inputs_));
  ANEMONE_RETURN_IF_ERROR(AppendPorts(*runtime_, where_, session_.get(), outputs, outputs_));
  for (const CpuPort& output : outputs_) {
    const auto has_its_name = [&](const CpuPort& port) { return port.name == output.name; };
    const auto found = std::find_if(inputs_.begin(), inputs_.end(), has_its_name);
    passed_through_.push_back(found == inputs_.end() ? -1 : found - inputs_.begin());
  }
  return absl::OkStatus();
}

// ONNX Runtime ends between two nodes when the time of this thread's work is over.
template <class Call>
absl::Status CpuSession::RunInTime(const Call& call) const {
  const auto place = [&] { return where_; };
  const MemoryLimit memory(runtime_->memory_limit(), "a run");
  const WorkPlace at(place);
  Deadline* const deadline = Deadline::Current();
  if (deadline == nullptr) return CallInMemory(*runtime_, where_, [&] { return call(nullptr); });
  ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kRun, place));
  const OrtApi& api = runtime_->api();
  OrtRunOptions* raw = nullptr;
  ANEMONE_RETURN_IF_ERROR(runtime_->ToStatus(api.CreateRunOptions(&raw), where_));
  const OrtPtr<OrtRunOptions> options(raw, api.ReleaseRunOptions);
  const Deadline::Alarm alarm(deadline,
                              [&api, raw] { Ignore(api, api.RunOptionsSetTerminate(raw)); });
  absl::Status ended = CallInMemory(*runtime_, where_, [&] { return call(raw); });
  if (!ended.ok()) ANEMONE_RETURN_IF_ERROR(CheckTime(Phase::kRun, place));
  return ended;
}

absl::StatusOr<std::vector<CpuValue>> CpuSession::Run(absl::Span<const CpuValue> inputs,
                                                      absl::Span<const CpuOutput> outputs) const {
  if (inputs.size() != inputs_.size() || outputs.size() != outputs_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, ": want ", inputs_.size(), " inputs and ", outputs_.size(),
                     " outputs, found ", inputs.size(), " and ", outputs.size()));
  }
  std::vector<const char*> in_names;
  std::vector<const OrtValue*> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].get() == nullptr && inputs_[i].has_default) continue;
    // ONNX Runtime crashes on an optional without a value.
    if (inputs[i].kind() == CpuValue::Kind::kNothing) {
      return absl::InvalidArgumentError(
          absl::StrCat(where_, ", input '", inputs_[i].name, "': want a value, found none"));
    }
    in_names.push_back(inputs_[i].name.c_str());
    in.push_back(inputs[i].get());
  }
  std::vector<CpuValue> results(outputs.size());
  std::vector<const char*> out_names;
  std::vector<OrtValue*> out(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    out_names.push_back(outputs_[i].name.c_str());
    if (outputs[i].memory.empty() || passed_through_[i] >= 0) continue;
    ANEMONE_ASSIGN_OR_RETURN(results[i], CpuValue::OverMemory(runtime_, outputs[i].type,
                                                              outputs[i].dims, outputs[i].memory));
    out[i] = results[i].get();
  }
  ANEMONE_RETURN_IF_ERROR(RunInTime([&](const OrtRunOptions* options) {
    return runtime_->api().Run(session_.get(), options, in_names.data(), in.data(), in.size(),
                               out_names.data(), out.size(), out.data());
  }));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (results[i].get() != nullptr) continue;
    results[i] = CpuValue::Adopt(runtime_, out[i]);
    if (passed_through_[i] < 0 || inputs[passed_through_[i]].get() == nullptr) continue;
    results[i] = inputs[passed_through_[i]];
    if (outputs[i].memory.empty()) continue;
    ANEMONE_RETURN_IF_ERROR(CopyOut(outputs_[i].name, outputs[i], results[i]));
  }
  return results;
}

absl::Status CpuSession::CopyOut(const std::string& name, const CpuOutput& output,
                                 CpuValue& result) const {
  ANEMONE_ASSIGN_OR_RETURN(const Tensor tensor, result.ToTensor());
  ANEMONE_ASSIGN_OR_RETURN(result,
                           CpuValue::OverMemory(runtime_, output.type, output.dims, output.memory));
  if (tensor.type() != output.type || tensor.dims() != output.dims) {
    return absl::InvalidArgumentError(
        absl::StrCat(where_, ", output '", name, "': want memory for ", DataTypeName(tensor.type()),
                     " ", DimsToString(tensor.dims()), ", found ", DataTypeName(output.type), " ",
                     DimsToString(output.dims)));
  }
  std::memcpy(output.memory.data(), tensor.bytes().data(), tensor.bytes().size());
  return absl::OkStatus();
}

}  // namespace anemone
