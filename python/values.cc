#include "python/values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"

namespace anemone {
namespace {

// The Python exception for each status code. Other codes are a RuntimeError.
struct ExceptionRow {
  absl::StatusCode code;
  PyObject** type;
};
const ExceptionRow kExceptions[] = {
    {absl::StatusCode::kInvalidArgument, &PyExc_ValueError},
    {absl::StatusCode::kDataLoss, &PyExc_ValueError},
    {absl::StatusCode::kNotFound, &PyExc_FileNotFoundError},
    {absl::StatusCode::kPermissionDenied, &PyExc_PermissionError},
    {absl::StatusCode::kResourceExhausted, &PyExc_MemoryError},
    {absl::StatusCode::kUnimplemented, &PyExc_NotImplementedError},
    {absl::StatusCode::kDeadlineExceeded, &PyExc_TimeoutError},
    {absl::StatusCode::kCancelled, &PyExc_KeyboardInterrupt},
};

// The types that NumPy has too. `formats`: their letters in Python's buffers, where C's `long` has
// 8 bytes.
struct NumPyRow {
  DataType type;
  const char* formats;
  nb::dlpack::dtype dtype;
};
constexpr auto kHalf =
    nb::dlpack::dtype{static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
const NumPyRow kNumPyTypes[] = {
    {DataType::kFloat, "f", nb::dtype<float>()},
    {DataType::kInt64, "lq", nb::dtype<int64_t>()},
    {DataType::kBool, "?", nb::dtype<bool>()},
    {DataType::kFloat16, "e", kHalf},
    {DataType::kDouble, "d", nb::dtype<double>()},
    {DataType::kInt32, "i", nb::dtype<int32_t>()},
    {DataType::kUInt8, "B", nb::dtype<uint8_t>()},
    {DataType::kInt8, "b", nb::dtype<int8_t>()},
    {DataType::kUInt16, "H", nb::dtype<uint16_t>()},
    {DataType::kInt16, "h", nb::dtype<int16_t>()},
    {DataType::kUInt64, "LQ", nb::dtype<uint64_t>()},
    {DataType::kUInt32, "I", nb::dtype<uint32_t>()},
};

DataType TypeOfFormat(absl::string_view format) {
  for (const NumPyRow& row : kNumPyTypes) {
    if (format.size() == 1 && absl::StrContains(row.formats, format)) return row.type;
  }
  Raise(absl::InvalidArgumentError(absl::StrCat("ONNX has no type of format '", format, "'")));
}

// Keeps the array alive until no tensor is left.
std::shared_ptr<const Py_buffer> BufferOf(nb::handle array) {
  auto view = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(array.ptr(), view.get(), PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
    throw nb::python_error();
  }
  return {view.release(), [](Py_buffer* held) {
            const nb::gil_scoped_acquire lock;
            PyBuffer_Release(held);
            delete held;
          }};
}

Tensor Borrowed(DataType type, std::vector<int64_t> dims,
                const std::shared_ptr<const Py_buffer>& buffer) {
  const auto count = ElementCount(dims);
  if (!count.ok()) Raise(count.status());
  if (ByteSize(type, dims) != buffer->len) {
    Raise(absl::InvalidArgumentError(absl::StrCat(DataTypeName(type), " ", DimsToString(dims),
                                                  ": got ", buffer->len, " bytes")));
  }
  const auto* data = static_cast<const std::byte*>(buffer->buf);
  return Tensor::View(type, std::move(dims), {data, static_cast<size_t>(buffer->len)}, buffer);
}

// True if no other object uses the bytes: neither the model (they may be its constant) nor another
// array.
bool IsOnlyOwner(Tensor& tensor) {
  const int own =
      tensor.mutable_data<std::byte>() == nullptr ? 1 : 2;  // the tensor itself has two references
  return tensor.owner().use_count() == own;
}

}  // namespace

void Raise(const absl::Status& status) {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  PyObject* type = PyExc_RuntimeError;
  for (const ExceptionRow& row : kExceptions) {
    if (row.code == status.code()) type = *row.type;
  }
  PyErr_SetString(type, Printable(status.message()).c_str());
  throw nb::python_error();
}

DataType TypeNamed(const std::string& name) {
  for (int32_t i = 1; i <= kLastDataType; ++i) {
    const auto type = static_cast<DataType>(i);
    if (DataTypeName(type) == name) return type;
  }
  Raise(absl::InvalidArgumentError(absl::StrCat("ONNX has no type '", name, "'")));
}

nb::str StrOf(const std::string& text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

nb::str StrOfName(const std::string& name) {
  PyObject* made =
      PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "surrogateescape");
  if (made == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(made);
}

std::string NameFromPython(nb::handle name) {
  PyObject* made = PyUnicode_AsEncodedString(name.ptr(), "utf-8", "surrogateescape");
  if (made == nullptr) throw nb::python_error();
  const auto bytes = nb::steal<nb::bytes>(made);
  return {bytes.c_str(), bytes.size()};
}

Tensor TensorFromPython(nb::handle array) {
  if (!nb::isinstance<nb::tuple>(array)) {
    const auto buffer = BufferOf(array);
    return Borrowed(TypeOfFormat(buffer->format), {buffer->shape, buffer->shape + buffer->ndim},
                    buffer);
  }
  const auto [name, dims, elements] =
      nb::cast<std::tuple<std::string, std::vector<int64_t>, nb::object>>(array);
  const DataType type = TypeNamed(name);
  if (type != DataType::kString) return Borrowed(type, dims, BufferOf(elements));
  std::vector<std::string> strings;
  for (const nb::handle element : elements) {
    const auto bytes = nb::cast<nb::bytes>(element);
    strings.emplace_back(bytes.c_str(), bytes.size());
  }
  return Tensor::Strings(dims, std::move(strings));
}

OnnxValue FromPython(nb::handle value) {
  if (value.is_none()) return OnnxValue();
  if (nb::isinstance<nb::list>(value)) {
    std::vector<OnnxValue> elements;
    for (const nb::handle element : value) elements.push_back(FromPython(element));
    return OnnxValue::Sequence(std::move(elements));
  }
  if (nb::isinstance<nb::tuple>(value) && nb::len(value) == 2) {
    return OnnxValue::Map(TensorFromPython(value[0]), TensorFromPython(value[1]));
  }
  return TensorFromPython(value);
}

nb::object ArrayOf(Tensor tensor) {
  if (tensor.type() == DataType::kString) {
    nb::list elements;
    for (const std::string& text : tensor.strings()) {
      elements.append(nb::bytes(text.data(), text.size()));
    }
    return nb::make_tuple("string", nb::tuple(nb::cast(tensor.dims())), elements);
  }
  if (tensor.is_fill() || tensor.compressed() != nullptr || !IsOnlyOwner(tensor)) {
    tensor = tensor.Copy();
  }
  auto* held = new Tensor(std::move(tensor));
  const nb::capsule owner(held, [](void* t) noexcept { delete static_cast<Tensor*>(t); });
  // No other object uses the bytes, so the caller may write to the array.
  auto* data = const_cast<std::byte*>(held->bytes().data());
  for (const NumPyRow& row : kNumPyTypes) {
    if (row.type != held->type()) continue;
    const std::vector<size_t> sizes(held->dims().begin(), held->dims().end());
    return nb::cast(
        nb::ndarray<nb::numpy>(data, sizes.size(), sizes.data(), owner, nullptr, row.dtype));
  }
  const nb::str type(DataTypeName(held->type()).data(), DataTypeName(held->type()).size());
  return nb::make_tuple(type, nb::tuple(nb::cast(held->dims())),
                        nb::ndarray<nb::numpy, uint8_t>(data, {held->bytes().size()}, owner));
}

nb::object ToPython(OnnxValue value) {
  nb::list parts;
  for (OnnxValue& element : value.elements) parts.append(ToPython(std::move(element)));
  switch (value.kind) {
    case OnnxValue::Kind::kTensor:
      return ArrayOf(std::move(value.tensor));
    case OnnxValue::Kind::kSequence:
      return parts;
    case OnnxValue::Kind::kMap:
      return nb::tuple(parts);
    default:
      return nb::none();
  }
}

}  // namespace anemone
