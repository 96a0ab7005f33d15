#include "bench/openvino.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"

namespace anemone {

// Declarations as in the C headers of the wheel (openvino/include/openvino/c). Handles are void*.
struct OpenVinoApi {
  struct Shape {
    int64_t rank;
    int64_t* dims;
  };
  struct Dimension {
    int64_t min, max;
  };
  struct PartialShape {
    Dimension rank;
    Dimension* dims;
  };

  const char* (*get_last_err_msg)();
  void (*free)(const char*);
  int (*core_create)(void** core);
  void (*core_free)(void* core);
  int (*core_read_model)(const void* core, const char* path, const char* weights, void** model);
  // Variable arguments are pairs of strings, key and value; `count` counts strings.
  int (*core_compile_model)(const void* core, const void* model, const char* device, size_t count,
                            void** compiled, ...);
  void (*model_free)(void* model);
  int (*model_reshape)(const void* model, const char** names, const PartialShape*, size_t count);
  int (*model_outputs_size)(const void* model, size_t* size);
  int (*model_const_output_by_index)(const void* model, size_t index, void** port);
  int (*port_get_any_name)(const void* port, char** name);
  void (*output_const_port_free)(void* port);
  void (*compiled_model_free)(void* compiled);
  int (*compiled_model_create_infer_request)(const void* compiled, void** request);
  void (*infer_request_free)(void* request);
  int (*infer_request_set_tensor)(void* request, const char* name, const void* tensor);
  int (*infer_request_get_output_tensor_by_index)(const void* request, size_t, void** tensor);
  int (*infer_request_infer)(void* request);
  int (*partial_shape_create_static)(int64_t rank, const int64_t* dims, PartialShape* shape);
  void (*partial_shape_free)(PartialShape* shape);
  int (*tensor_create_from_host_ptr)(int type, Shape shape, void* bytes, void** tensor);
  void (*tensor_free)(void* tensor);
  int (*tensor_get_element_type)(const void* tensor, int* type);
  int (*tensor_get_shape)(const void* tensor, Shape* shape);
  int (*tensor_data)(const void* tensor, void** data);
  int (*shape_free)(Shape* shape);
};

namespace {

using Api = OpenVinoApi;

struct ElementType {
  DataType type;
  int number;  // ov_element_type_e
};
constexpr ElementType kElementTypes[] = {
    {DataType::kBool, 1},   {DataType::kBFloat16, 2}, {DataType::kFloat16, 3},
    {DataType::kFloat, 4},  {DataType::kDouble, 5},   {DataType::kInt8, 7},
    {DataType::kInt16, 8},  {DataType::kInt32, 9},    {DataType::kInt64, 10},
    {DataType::kUInt8, 16}, {DataType::kUInt16, 17},  {DataType::kUInt32, 18},
    {DataType::kUInt64, 19}};

absl::StatusOr<int> NumberOf(DataType type) {
  for (const ElementType& e : kElementTypes) {
    if (e.type == type) return e.number;
  }
  return absl::UnimplementedError(
      absl::StrCat("OpenVINO: inputs of type ", DataTypeName(type), " are not supported"));
}

absl::StatusOr<DataType> TypeOf(int number) {
  for (const ElementType& e : kElementTypes) {
    if (e.number == number) return e.type;
  }
  return absl::UnimplementedError(
      absl::StrCat("OpenVINO: outputs of its type ", number, " are not supported"));
}

template <class F>
absl::Status FindFunction(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  if (function != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("OpenVINO: function ", name, " is missing; use ", ANEMONE_OPENVINO_PACKAGE));
}

absl::StatusOr<std::shared_ptr<const Api>> FindAll(void* library) {
  auto api = std::make_shared<Api>();
  absl::Status status;
#define ANEMONE_FIND(name) status.Update(FindFunction(library, "ov_" #name, api->name))
  ANEMONE_FIND(get_last_err_msg);
  ANEMONE_FIND(free);
  ANEMONE_FIND(core_create);
  ANEMONE_FIND(core_free);
  ANEMONE_FIND(core_read_model);
  ANEMONE_FIND(core_compile_model);
  ANEMONE_FIND(model_free);
  ANEMONE_FIND(model_reshape);
  ANEMONE_FIND(model_outputs_size);
  ANEMONE_FIND(model_const_output_by_index);
  ANEMONE_FIND(port_get_any_name);
  ANEMONE_FIND(output_const_port_free);
  ANEMONE_FIND(compiled_model_free);
  ANEMONE_FIND(compiled_model_create_infer_request);
  ANEMONE_FIND(infer_request_free);
  ANEMONE_FIND(infer_request_set_tensor);
  ANEMONE_FIND(infer_request_get_output_tensor_by_index);
  ANEMONE_FIND(infer_request_infer);
  ANEMONE_FIND(partial_shape_create_static);
  ANEMONE_FIND(partial_shape_free);
  ANEMONE_FIND(tensor_create_from_host_ptr);
  ANEMONE_FIND(tensor_free);
  ANEMONE_FIND(tensor_get_element_type);
  ANEMONE_FIND(tensor_get_shape);
  ANEMONE_FIND(tensor_data);
  ANEMONE_FIND(shape_free);
#undef ANEMONE_FIND
  ANEMONE_RETURN_IF_ERROR(status);
  return api;
}

// Finds libopenvino_c.so.2641 or similar; the number depends on the release.
std::string LibraryIn(const std::string& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, "libopenvino_c.so")) return entry.path().string();
  }
  return "";
}

}  // namespace

std::string OpenVino::DefaultFolder() {  // must agree with cache_folder() of models/manifest.py
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string base = variable("ANEMONE_CACHE_DIR");
  if (base.empty()) {
    std::string caches = variable("XDG_CACHE_HOME");
    base = absl::StrCat(caches.empty() ? variable("HOME") + "/.cache" : caches, "/anemone");
  }
  return absl::StrCat(base, "/", absl::StrReplaceAll(ANEMONE_OPENVINO_PACKAGE, {{"==", "-"}}));
}

absl::Status OpenVino::Find(const std::string& folder) {
  if (!LibraryIn(folder).empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("OpenVINO: not in '", folder,
                                          "'; run bench/peers.py --fetch, which downloads ",
                                          ANEMONE_OPENVINO_PACKAGE));
}

absl::StatusOr<std::unique_ptr<OpenVino>> OpenVino::Open(const std::string& folder, int threads) {
  ANEMONE_RETURN_IF_ERROR(Find(folder));
  void* library = dlopen(LibraryIn(folder).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return absl::FailedPreconditionError(absl::StrCat("OpenVINO: ", dlerror()));
  ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<const Api> api, FindAll(library));
  return std::unique_ptr<OpenVino>(new OpenVino(std::move(api), threads));
}

OpenVino::~OpenVino() {
  for (const auto& [name, tensor] : tensors_) api_->tensor_free(tensor);
  if (request_ != nullptr) api_->infer_request_free(request_);
  if (compiled_ != nullptr) api_->compiled_model_free(compiled_);
  if (model_ != nullptr) api_->model_free(model_);
  if (core_ != nullptr) api_->core_free(core_);
}

absl::Status OpenVino::ToStatus(int code, const char* where) const {
  if (code == 0) return absl::OkStatus();
  const char* message = api_->get_last_err_msg();
  return absl::InternalError(
      absl::StrCat("OpenVINO: ", where, ": error ", code, ": ", message == nullptr ? "" : message));
}

absl::Status OpenVino::Load(const std::string& path, const Arrays& inputs) {
  ANEMONE_RETURN_IF_ERROR(ToStatus(api_->core_create(&core_), "core"));
  ANEMONE_RETURN_IF_ERROR(
      ToStatus(api_->core_read_model(core_, path.c_str(), nullptr, &model_), "read"));
  ANEMONE_RETURN_IF_ERROR(Reshape(inputs));
  std::string threads = std::to_string(threads_);
  ANEMONE_RETURN_IF_ERROR(
      ToStatus(api_->core_compile_model(core_, model_, "CPU", 6, &compiled_,
                                        "INFERENCE_PRECISION_HINT", "f32", "PERFORMANCE_HINT",
                                        "LATENCY", "INFERENCE_NUM_THREADS", threads.c_str()),
               "compile"));
  ANEMONE_RETURN_IF_ERROR(
      ToStatus(api_->compiled_model_create_infer_request(compiled_, &request_), "request"));
  return SetInputs(inputs);
}

absl::Status OpenVino::Reshape(const Arrays& inputs) {
  std::vector<const char*> names;
  std::vector<Api::PartialShape> shapes;
  absl::Status status;
  for (const auto& [name, tensor] : inputs) {
    Api::PartialShape shape{};
    status.Update(
        ToStatus(api_->partial_shape_create_static(static_cast<int64_t>(tensor.dims().size()),
                                                   tensor.dims().data(), &shape),
                 "shape"));
    names.push_back(name.c_str());
    shapes.push_back(shape);
  }
  if (status.ok()) {
    status =
        ToStatus(api_->model_reshape(model_, names.data(), shapes.data(), names.size()), "reshape");
  }
  for (Api::PartialShape& shape : shapes) api_->partial_shape_free(&shape);
  return status;
}

absl::Status OpenVino::SetInputs(const Arrays& inputs) {
  inputs_ = inputs;
  for (const auto& [name, array] : inputs_) {
    ANEMONE_ASSIGN_OR_RETURN(int type, NumberOf(array.type()));
    std::vector<int64_t> dims = array.dims();
    Api::Shape shape{static_cast<int64_t>(dims.size()), dims.data()};
    void* tensor = nullptr;
    ANEMONE_RETURN_IF_ERROR(
        ToStatus(api_->tensor_create_from_host_ptr(
                     type, shape, const_cast<std::byte*>(array.bytes().data()), &tensor),
                 "tensor"));
    void*& kept = tensors_[name];
    if (kept != nullptr) api_->tensor_free(kept);
    kept = tensor;
    ANEMONE_RETURN_IF_ERROR(
        ToStatus(api_->infer_request_set_tensor(request_, name.c_str(), tensor), "input"));
  }
  return absl::OkStatus();
}

absl::Status OpenVino::Run() { return ToStatus(api_->infer_request_infer(request_), "infer"); }

absl::StatusOr<Arrays> OpenVino::Outputs() {
  Arrays arrays;
  size_t count = 0;
  ANEMONE_RETURN_IF_ERROR(ToStatus(api_->model_outputs_size(model_, &count), "outputs"));
  for (size_t i = 0; i < count; ++i) {
    void *port = nullptr, *tensor = nullptr, *data = nullptr;
    char* name = nullptr;
    int type = 0;
    Api::Shape shape{};
    ANEMONE_RETURN_IF_ERROR(
        ToStatus(api_->model_const_output_by_index(model_, i, &port), "output"));
    ANEMONE_RETURN_IF_ERROR(ToStatus(api_->port_get_any_name(port, &name), "output"));
    ANEMONE_RETURN_IF_ERROR(
        ToStatus(api_->infer_request_get_output_tensor_by_index(request_, i, &tensor), "output"));
    ANEMONE_RETURN_IF_ERROR(ToStatus(api_->tensor_get_element_type(tensor, &type), "output"));
    ANEMONE_RETURN_IF_ERROR(ToStatus(api_->tensor_get_shape(tensor, &shape), "output"));
    ANEMONE_RETURN_IF_ERROR(ToStatus(api_->tensor_data(tensor, &data), "output"));
    ANEMONE_ASSIGN_OR_RETURN(DataType element, TypeOf(type));
    Tensor array = Tensor::Zeros(element, {shape.dims, shape.dims + shape.rank});
    std::memcpy(array.mutable_data<std::byte>(), data, array.bytes().size());
    arrays[name] = std::move(array);
    api_->shape_free(&shape);
    api_->tensor_free(tensor);
    api_->free(name);
    api_->output_const_port_free(port);
  }
  return arrays;
}

}  // namespace anemone
