#include "provider/ort_status.h"

#include <onnxruntime_c_api.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"

namespace anemone {

OrtStatus* ToOrt(const OrtApi& api, const absl::Status& status) {
  if (status.ok()) return nullptr;
  const OrtErrorCode code = absl::IsInvalidArgument(status)      ? ORT_INVALID_ARGUMENT
                            : absl::IsUnimplemented(status)      ? ORT_NOT_IMPLEMENTED
                            : absl::IsNotFound(status)           ? ORT_NO_SUCHFILE
                            : absl::IsDataLoss(status)           ? ORT_INVALID_PROTOBUF
                            : absl::IsFailedPrecondition(status) ? ORT_INVALID_GRAPH
                                                                 : ORT_FAIL;
  // The message may contain names from models, and the host prints it unchanged.
  return api.CreateStatus(code, Printable(status.message()).c_str());
}

absl::Status FromOrt(const OrtApi& api, OrtStatus* status) {
  if (status == nullptr) return absl::OkStatus();
  absl::Status result = absl::InternalError(api.GetErrorMessage(status));
  api.ReleaseStatus(status);
  return result;
}

absl::StatusOr<Tensor> TensorOf(const OrtApi& api, const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetTensorTypeAndShape(value, &raw)));
  const OrtOwned<OrtTensorTypeAndShapeInfo> info(raw, api.ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  size_t rank = 0;
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetTensorElementType(raw, &type)));
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetDimensionsCount(raw, &rank)));
  std::vector<int64_t> dims(rank);
  ANEMONE_RETURN_IF_ERROR(FromOrt(api, api.GetDimensions(raw, dims.data(), rank)));
  const DataType data_type = TypeNumbered(type);
  if (BitsOf(data_type) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("want a tensor of numbers, found ONNX Runtime's element type ", int{type}));
  }
  ANEMONE_RETURN_IF_ERROR(ElementCount(dims).status());
  const int64_t bytes = ByteSize(data_type, dims);
  void* data = nullptr;  // only read
  ANEMONE_RETURN_IF_ERROR(
      FromOrt(api, api.GetTensorMutableData(const_cast<OrtValue*>(value), &data)));
  return Tensor::View(data_type, std::move(dims),
                      {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)}, nullptr);
}

}  // namespace anemone
