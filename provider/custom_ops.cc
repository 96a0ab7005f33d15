#include "provider/custom_ops.h"

#include <onnxruntime_c_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "anemone/tensor.h"
#include "base/annotated.h"
#include "base/guarded.h"
#include "base/status_macros.h"
#include "engine/surface.h"
#include "engine/target.h"
#include "kernels/custom_domain.h"
#include "math/core/extents.h"
#include "provider/crossing.h"
#include "provider/ort_status.h"

namespace anemone {
namespace {

// An attribute, read by one of the typed getters; nullopt if it is missing or has another type.
template <class T>
std::optional<T> Scalar(const OrtApi& api,
                        OrtStatus* (*get)(const OrtKernelInfo*, const char*, T*) noexcept,
                        const OrtKernelInfo* info, const char* name) {
  T value;
  if (!FromOrt(api, get(info, name, &value)).ok()) return std::nullopt;
  return value;
}

std::optional<std::string> Text(const OrtApi& api, const OrtKernelInfo* info, const char* name) {
  size_t size = 0;  // including the terminating zero
  if (!FromOrt(api, api.KernelInfoGetAttribute_string(info, name, nullptr, &size)).ok()) {
    return std::nullopt;
  }
  std::string text(size, '\0');
  if (!FromOrt(api, api.KernelInfoGetAttribute_string(info, name, text.data(), &size)).ok()) {
    return std::nullopt;
  }
  if (!text.empty()) text.pop_back();
  return text;
}

std::optional<std::vector<int64_t>> Integers(const OrtApi& api, const OrtKernelInfo* info,
                                             const char* name) {
  size_t size = 0;
  if (!FromOrt(api, api.KernelInfoGetAttributeArray_int64(info, name, nullptr, &size)).ok()) {
    return std::nullopt;
  }
  std::vector<int64_t> values(size);
  if (size > 0 &&
      !FromOrt(api, api.KernelInfoGetAttributeArray_int64(info, name, values.data(), &size)).ok()) {
    return std::nullopt;
  }
  return values;
}

// All attributes that correspond to a key of the unit. Their types are checked by KeysOf().
Node NodeOf(const OrtApi& api, const OrtKernelInfo* info, const CustomOp& op) {
  Node node;
  for (const KeyInfo& key : op.keys) {
    std::optional<Attribute::Variant> value;
    if (auto number = Scalar(api, api.KernelInfoGetAttribute_int64, info, key.key)) {
      value = *number;
    } else if (auto fraction = Scalar(api, api.KernelInfoGetAttribute_float, info, key.key)) {
      value = *fraction;
    } else if (auto text = Text(api, info, key.key)) {
      value = *std::move(text);
    } else if (auto numbers = Integers(api, info, key.key)) {
      value = *std::move(numbers);
    }
    if (value) node.attributes.push_back({key.key, *std::move(value)});
  }
  return node;
}

std::string LabelOf(const OrtApi& api, const OrtKernelInfo* info, const CustomOp& op) {
  size_t size = 0;
  std::string name;
  if (FromOrt(api, api.KernelInfo_GetNodeName(info, nullptr, &size)).ok() && size > 0) {
    name.resize(size);
    if (!FromOrt(api, api.KernelInfo_GetNodeName(info, name.data(), &size)).ok()) name.clear();
    if (!name.empty()) name.pop_back();
  }
  return absl::StrCat("node '", name, "' (", kCustomDomain, ".", op.layer->type, ")");
}

SurfaceLayout DenseLayoutOf(const Dims& dims) {
  return {.dims = dims, .strides = math::DenseStrides(dims.extent)};
}

// A tensor's elements in the dense fp16 layout that the software engine computes on.
absl::StatusOr<std::vector<math::Half>> HalvesOf(const Tensor& tensor) {
  if (tensor.dims().size() > kMaxRank) return absl::InvalidArgumentError("want rank 5 or less");
  if (tensor.elements() == 0) return absl::InvalidArgumentError("want extents of 1 or more");
  std::vector<math::Half> halves(tensor.elements());
  ToSurface(tensor, DenseLayoutOf(PlaceShape(tensor.dims())),
            reinterpret_cast<std::byte*>(halves.data()));
  return halves;
}

// Compute() relies on the validator's checks.
absl::Status CheckByAnyTarget(const UnitKind& kind, const void* params, Bottoms in) {
  Verdict verdict;
  for (const Target& target : AllTargets()) {
    verdict = kind.Validate(params, in, target, Route::kNetplist);
    if (verdict.accepted) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("no target accepts this unit: ",
                                                 verdict.message.empty() && verdict.rule != nullptr
                                                     ? verdict.rule->condition
                                                     : verdict.message));
}

// One node of a session.
class CustomKernel {
 public:
  static absl::StatusOr<std::unique_ptr<CustomKernel>> Make(const OrtApi& api,
                                                            const OrtKernelInfo* info,
                                                            const CustomOp& op) {
    std::unique_ptr<CustomKernel> kernel(new CustomKernel(api, op, LabelOf(api, info, op)));
    if (!op.kind->computes()) {
      return kernel->Named(
          absl::UnimplementedError("can be checked but not run: its arithmetic is not published"));
    }
    absl::StatusOr<Json> keys = KeysOf(op, NodeOf(api, info, op));
    if (!keys.ok()) return kernel->Named(keys.status());
    kernel->keys_ = *std::move(keys);
    size_t inputs = 0;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.KernelInfo_GetInputCount(info, &inputs)));
    for (size_t i = 0; i < inputs; ++i) {
      int constant = 0;
      const OrtValue* value = nullptr;
      // The call fails for an omitted input.
      const bool known =
          FromOrt(api, api.KernelInfoGetConstantInput_tensor(info, i, &constant, &value)).ok();
      kernel->is_constant_.push_back(known && constant != 0);
    }
    return kernel;
  }

  const OrtApi& api() const { return api_; }
  absl::Status Compute(OrtKernelContext* context) const { return Named(ComputeUnnamed(context)); }

 private:
  // The arguments of Compute(): tensors that outlive it, as bottoms and as weights.
  struct Inputs {
    std::vector<Tensor> tensors;
    std::vector<std::vector<math::Half>> halves;
    std::vector<Bottom> bottoms;
    std::vector<ConstView> views;
    std::vector<Tensor> weights;
  };

  CustomKernel(const OrtApi& api, const CustomOp& op, std::string label)
      : api_(api), op_(op), label_(std::move(label)) {}

  absl::Status Named(const absl::Status& status) const { return Annotated(status, label_); }

  absl::Status Read(OrtKernelContext* context, Inputs& in) const {
    in.tensors.reserve(is_constant_.size());  // bottoms point into it
    for (size_t i = 0; i < is_constant_.size(); ++i) {
      const OrtValue* value = nullptr;
      ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.KernelContext_GetInput(context, i, &value)));
      if (value == nullptr) continue;
      ANEMONE_ASSIGN_OR_RETURN(Tensor tensor, TensorOf(api_, value));
      if (i >= op_.bottoms) {
        in.weights.push_back(std::move(tensor));
        continue;
      }
      ANEMONE_ASSIGN_OR_RETURN(in.halves.emplace_back(), HalvesOf(tensor));
      const Dims dims = PlaceShape(tensor.dims());
      in.tensors.push_back(std::move(tensor));
      in.bottoms.push_back(
          {.dims = dims, .constant = is_constant_[i] ? &in.tensors.back() : nullptr});
      in.views.push_back({dims, in.halves.back().data()});
    }
    if (in.bottoms.size() >= op_.kind->bottoms.least) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("want ", op_.kind->bottoms.least, " inputs, got ", in.bottoms.size()));
  }

  absl::Status ComputeUnnamed(OrtKernelContext* context) const {
    const UnitKind& kind = *op_.kind;
    Inputs in;
    ANEMONE_RETURN_IF_ERROR(Read(context, in));
    ANEMONE_ASSIGN_OR_RETURN(auto params, kind.Read(keys_, in.bottoms, in.weights));
    ANEMONE_RETURN_IF_ERROR(CheckByAnyTarget(kind, params.get(), in.bottoms));
    ANEMONE_ASSIGN_OR_RETURN(const Dims dims, kind.judge.shape(params.get(), in.bottoms));
    ANEMONE_ASSIGN_OR_RETURN(const int64_t count, ElementCount(dims.extent));
    if (count == 0) return absl::InvalidArgumentError("an output without elements");
    ANEMONE_ASSIGN_OR_RETURN(Prepared prepared, kind.Prepare(params.get(), in.bottoms, in.weights));
    std::vector<math::Half> out(count);
    kind.Compute(params.get(), prepared.get(), in.views, {dims, out.data()});
    return Write(context, in.tensors[0], dims, out);
  }

  absl::Status Write(OrtKernelContext* context, const Tensor& first, const Dims& dims,
                     const std::vector<math::Half>& from) const {
    const std::vector<int64_t> shape = OnnxShapeOf(dims, static_cast<int>(first.dims().size()));
    OrtValue* value = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(
        api_, api_.KernelContext_GetOutput(context, 0, shape.data(), shape.size(), &value)));
    void* data = nullptr;
    ANEMONE_RETURN_IF_ERROR(FromOrt(api_, api_.GetTensorMutableData(value, &data)));
    FromSurface(reinterpret_cast<const std::byte*>(from.data()), DenseLayoutOf(dims), first.type(),
                shape, static_cast<std::byte*>(data));
    return absl::OkStatus();
  }

  const OrtApi& api_;
  const CustomOp& op_;
  const std::string label_;
  Json keys_;
  std::vector<bool> is_constant_;  // by input
};

// ONNX Runtime's description of an operator for one element type.
struct OrtOperator : OrtCustomOp {
  OrtOperator(const CustomOp& custom, ONNXTensorElementDataType element);
  const CustomOp& op;
  ONNXTensorElementDataType type;
};

const OrtOperator& Of(const OrtCustomOp* base) { return *static_cast<const OrtOperator*>(base); }

OrtStatus* MakeKernel(const OrtCustomOp* base, const OrtApi* api, const OrtKernelInfo* info,
                      void** kernel) noexcept {
  return ToOrt(*api, Guarded("make an operator", [&]() -> absl::Status {
    ANEMONE_ASSIGN_OR_RETURN(auto made, CustomKernel::Make(*api, info, Of(base).op));
    *kernel = made.release();
    return absl::OkStatus();
  }));
}

OrtStatus* RunKernel(void* kernel, OrtKernelContext* context) noexcept {
  const CustomKernel& made = *static_cast<const CustomKernel*>(kernel);
  return ToOrt(made.api(), Guarded("run an operator", [&] { return made.Compute(context); }));
}

OrtOperator::OrtOperator(const CustomOp& custom, ONNXTensorElementDataType element)
    : OrtCustomOp{}, op(custom), type(element) {
  version = kOrtApiVersion;
  GetName = [](const OrtCustomOp* base) { return Of(base).op.layer->type; };
  GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  GetInputType = [](const OrtCustomOp* base, size_t) { return Of(base).type; };
  GetInputTypeCount = [](const OrtCustomOp* base) { return Of(base).op.inputs.size(); };
  GetOutputType = [](const OrtCustomOp* base, size_t) { return Of(base).type; };
  GetOutputTypeCount = [](const OrtCustomOp*) { return size_t{1}; };
  GetInputCharacteristic = [](const OrtCustomOp* base, size_t i) {
    return Of(base).op.inputs[i].optional ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
  };
  GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
  GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  CreateKernelV2 = MakeKernel;
  KernelComputeV2 = RunKernel;
  KernelDestroy = [](void* kernel) { delete static_cast<CustomKernel*>(kernel); };
}

const std::vector<OrtOperator>& Operators() {
  static const std::vector<OrtOperator>& operators = *new std::vector<OrtOperator>([] {
    std::vector<OrtOperator> made;
    for (const CustomOp& op : CustomOps()) {
      made.emplace_back(op, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
      made.emplace_back(op, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16);
    }
    return made;
  }());
  return operators;
}

// One domain for each ONNX Runtime in the process; never released.
absl::StatusOr<OrtCustomOpDomain*> DomainFor(const OrtApi& api) {
  static std::mutex mutex;
  static auto& domains = *new std::map<const OrtApi*, OrtCustomOpDomain*>;
  const std::lock_guard<std::mutex> lock(mutex);
  OrtCustomOpDomain*& domain = domains[&api];
  if (domain != nullptr) return domain;
  OrtCustomOpDomain* made = nullptr;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.CreateCustomOpDomain(kCustomDomain, &made)));
  for (const OrtOperator& op : Operators()) {
    ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.CustomOpDomain_Add(made, &op)));
  }
  domain = made;
  return domain;
}

}  // namespace

OrtStatus* AddCustomOps(const OrtApi& api, OrtSessionOptions* options) {
  return ToOrt(api, Guarded("register the operators of ai.anemone", [&]() -> absl::Status {
                 ANEMONE_ASSIGN_OR_RETURN(OrtCustomOpDomain * domain, DomainFor(api));
                 return FromOrt(api, api.AddCustomOpDomain(options, domain));
               }));
}

}  // namespace anemone
