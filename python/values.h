// python/values.h: what passes between Python and C++. An array is a NumPy array if NumPy has the
// type. Otherwise it is (type, dims, elements); the elements are a NumPy array of bytes, or a list
// of bytes objects for strings. A sequence is a list of values, a map is a pair of arrays (keys,
// values), and None is an optional without a value.
#ifndef ANEMONE_PYTHON_VALUES_H_
#define ANEMONE_PYTHON_VALUES_H_

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/onnx_value.h"
#include "anemone/tensor.h"
#include "python/interrupt.h"

namespace anemone {

namespace nb = nanobind;

// Raises the Python exception for the status, which is an error; first that of a signal's handler.
[[noreturn]] void Raise(const absl::Status& status);

// Runs `work` without the GIL, and returns its result. Ctrl-C ends it early.
template <class F>
auto Unlocked(F&& work) {
  auto result = [&] {
    const Interrupt interrupt;
    const nb::gil_scoped_release release;
    return work();
  }();
  if (!result.ok()) Raise(result.status());
  return *std::move(result);
}

// The same for work without a result.
template <class F>
void Done(F&& work) {
  Unlocked([&]() -> absl::StatusOr<bool> {
    const absl::Status status = work();
    if (!status.ok()) return status;
    return true;
  });
}

// Raises ValueError if ONNX has no such type.
DataType TypeNamed(const std::string& name);

// Bytes in names and paths that are not UTF-8 are replaced, as in JSON.
nb::str StrOf(const std::string& text);

// Names that a caller gives back. Bytes that are not UTF-8 are surrogates, as in Python's paths.
nb::str StrOfName(const std::string& name);
std::string NameFromPython(nb::handle name);

// Arrays of numbers must be contiguous, and are views that keep the Python array alive.
Tensor TensorFromPython(nb::handle array);
OnnxValue FromPython(nb::handle value);

nb::object ArrayOf(Tensor tensor);
nb::object ToPython(OnnxValue value);

}  // namespace anemone

#endif  // ANEMONE_PYTHON_VALUES_H_
