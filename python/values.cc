#include "python/values.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
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

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A view of `bytes`, which it keeps alive.
Tensor Borrowed(DataType type, std::vector<int64_t> dims, const Bytes& bytes) {
  const auto count = ElementCount(dims);
  if (!count.ok()) Raise(count.status());
  if (ByteSize(type, dims) != static_cast<int64_t>(bytes.size())) {
    Raise(absl::InvalidArgumentError(absl::StrCat(DataTypeName(type), " ", DimsToString(dims),
                                                  ": got ", bytes.size(), " bytes")));
  }
  const std::shared_ptr<const Bytes> owner(new Bytes(bytes), [](const Bytes* held) {
    const nb::gil_scoped_acquire lock;
    delete held;
  });
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return Tensor::View(type, std::move(dims), {data, bytes.size()}, owner);
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
  const auto [name, dims, elements] =
      nb::cast<std::tuple<std::string, std::vector<int64_t>, nb::object>>(array);
  const DataType type = TypeNamed(name);
  if (type != DataType::kString) return Borrowed(type, dims, nb::cast<Bytes>(elements));
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
  if (nb::len(value) == 2)
    return OnnxValue::Map(TensorFromPython(value[0]), TensorFromPython(value[1]));
  return TensorFromPython(value);
}

nb::object ArrayOf(Tensor tensor) {
  const nb::str type(DataTypeName(tensor.type()).data(), DataTypeName(tensor.type()).size());
  const nb::tuple dims = nb::tuple(nb::cast(tensor.dims()));
  if (tensor.type() == DataType::kString) {
    nb::list elements;
    for (const std::string& text : tensor.strings()) {
      elements.append(nb::bytes(text.data(), text.size()));
    }
    return nb::make_tuple(type, dims, elements);
  }
  if (tensor.is_fill() || tensor.compressed() != nullptr || !IsOnlyOwner(tensor)) {
    tensor = tensor.Copy();
  }
  auto* held = new Tensor(std::move(tensor));
  const nb::capsule owner(held, [](void* t) noexcept { delete static_cast<Tensor*>(t); });
  // No other object uses the bytes, so the caller may write to the array.
  auto* data = const_cast<std::byte*>(held->bytes().data());
  return nb::make_tuple(type, dims,
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
