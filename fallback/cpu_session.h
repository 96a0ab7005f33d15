// fallback/cpu_session.h: one ONNX Runtime session on the CPU, with inputs and outputs by position.
// CpuSegment, ReferenceModel and the evaluator use it.
//
// Run() is thread-safe.
#ifndef ANEMONE_FALLBACK_CPU_SESSION_H_
#define ANEMONE_FALLBACK_CPU_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "fallback/cpu_value.h"
#include "fallback/ort_runtime.h"
#include "importer/graph.h"
#include "importer/write/to_onnx.h"

struct OrtSession;

namespace anemone {

// How ONNX Runtime prepares and runs a session. The values are those of GraphOptimizationLevel.
enum class OrtOptimization { kNone = 0, kBasic = 1, kExtended = 2, kAll = 99 };

struct CpuSessionOptions {
  OrtOptimization optimization = OrtOptimization::kAll;
  // Keep one memory block, planned from the first run's shapes. Off saves memory if shapes change.
  bool memory_pattern = true;
  // Keep freed memory for the next run. Off returns it to the system, which costs time.
  bool arena = true;
  // Keep a second copy of the weights, in the layout that the CPU's kernels read. Off halves the
  // memory of a segment with large weights, but slows its convolutions and matrix products.
  bool prepack = true;
};

// An input or output of a session.
struct CpuPort {
  std::string name;
  CpuValue::Kind kind = CpuValue::Kind::kOther;
  DataType type = DataType::kUndefined;  // of a tensor
  Shape shape;               // of a tensor; ONNX Runtime 1.23 reports an unknown rank as rank 0
  bool has_default = false;  // an initializer that an input may override
};

// Where Run() writes an output: to the caller's memory, which must be aligned for `type` and have
// exactly the size of `dims`, or, if `memory` is empty, to memory that Run() allocates.
struct CpuOutput {
  absl::Span<std::byte> memory;
  DataType type = DataType::kUndefined;
  std::vector<int64_t> dims;
};

// A model that ONNX Runtime reads by itself: the file at `path`, or `bytes` if not null.
struct ModelFile {
  std::string path;
  std::shared_ptr<const std::string> bytes;
  std::map<std::string, int64_t> dims;  // sizes of symbolic dimensions
  bool custom_operators = true;         // may have operators of the runtime's user
};

class CpuSession {
 public:
  // `where` begins every message. The bytes of the model's external constants are kept alive and
  // read in place unless they are misaligned. Prepacking and some optimizations make copies.
  static absl::StatusOr<std::unique_ptr<CpuSession>> FromModel(
      std::shared_ptr<const OrtRuntime> runtime, std::string where, OnnxModel model,
      const CpuSessionOptions& options);
  static absl::StatusOr<std::unique_ptr<CpuSession>> FromFile(
      std::shared_ptr<const OrtRuntime> runtime, const ModelFile& file,
      const CpuSessionOptions& options);

  CpuSession(const CpuSession&) = delete;
  CpuSession& operator=(const CpuSession&) = delete;

  // Inputs with a default come last.
  const std::vector<CpuPort>& inputs() const { return inputs_; }
  const std::vector<CpuPort>& outputs() const { return outputs_; }

  // Takes one value for each input (CpuValue() keeps the default) and one CpuOutput for each
  // output. Returns the results in the order of outputs(). `inputs` and the outputs' memory are
  // borrowed until Run() returns; the results borrow the memory too. An output that is also an
  // input is returned as the same CpuValue. Errors: kInvalidArgument (a missing input, a wrong type
  // or shape), or ONNX Runtime's.
  absl::StatusOr<std::vector<CpuValue>> Run(absl::Span<const CpuValue> inputs,
                                            absl::Span<const CpuOutput> outputs) const;

 private:
  CpuSession(std::shared_ptr<const OrtRuntime> runtime, std::string where);
  absl::Status ReadPorts();
  template <class Call>
  absl::Status RunInTime(const Call& call) const;
  absl::Status CopyOut(const std::string& name, const CpuOutput& output, CpuValue& result) const;

  const std::shared_ptr<const OrtRuntime> runtime_;
  const std::string where_;
  std::vector<CpuValue> weights_;  // before session_, which borrows their bytes
  OrtPtr<OrtSession> session_;
  std::vector<CpuPort> inputs_;
  std::vector<CpuPort> outputs_;
  // By output: the input with the same name, or -1. For such an output ONNX Runtime would not write
  // to the given memory, and would return a value that does not keep the input's bytes alive.
  std::vector<int64_t> passed_through_;
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_CPU_SESSION_H_
