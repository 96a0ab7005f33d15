// fallback/cpu_session.h: one ONNX Runtime session on the CPU, its ports in order. CpuSegment,
// ReferenceModel and the evaluator are made of it.
//
// Run() may be called from many threads at once.
#ifndef ANEMONE_FALLBACK_CPU_SESSION_H_
#define ANEMONE_FALLBACK_CPU_SESSION_H_

#include <cstdint>
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

// How ONNX Runtime prepares and runs a session. The numbers are those of its
// GraphOptimizationLevel.
enum class OrtOptimization { kNone = 0, kBasic = 1, kExtended = 2, kAll = 99 };

struct CpuSessionOptions {
  OrtOptimization optimization = OrtOptimization::kAll;
  // Keep one block planned from the first run's shapes. Off saves memory where shapes change.
  bool memory_pattern = true;
  // Keep freed memory for the next run. Off gives it back, at the price of time.
  bool arena = true;
  // Keep weights a second time, in the order that the CPU's kernels read them. Off halves the
  // memory of a segment with large weights, and slows its convolutions and matrix products.
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

// Where Run() puts an output: into the caller's memory, which must be aligned for `type` and
// exactly as long as `dims` say, or (memory empty) into memory of its own.
struct CpuOutput {
  absl::Span<std::byte> memory;
  DataType type = DataType::kUndefined;
  std::vector<int64_t> dims;
};

class CpuSession {
 public:
  // `where` opens every message. The bytes of the model's external constants are kept alive and
  // read where they are, unless misaligned; some optimizations and prepacking copy what they use.
  static absl::StatusOr<std::unique_ptr<CpuSession>> FromModel(
      std::shared_ptr<const OrtRuntime> runtime, std::string where, OnnxModel model,
      const CpuSessionOptions& options);
  static absl::StatusOr<std::unique_ptr<CpuSession>> FromFile(
      std::shared_ptr<const OrtRuntime> runtime, const std::string& path,
      const CpuSessionOptions& options);

  CpuSession(const CpuSession&) = delete;
  CpuSession& operator=(const CpuSession&) = delete;

  // Those with a default come last.
  const std::vector<CpuPort>& inputs() const { return inputs_; }
  const std::vector<CpuPort>& outputs() const { return outputs_; }

  // One value for each input (CpuValue() leaves a default as it is), one place for each output; the
  // results in the order of outputs(). `inputs` and the outputs' memory are borrowed until it
  // returns, the memory also by the results. An output that is an input is the same CpuValue.
  // Errors: kInvalidArgument (a missing input, a wrong type or shape), else what ONNX Runtime says.
  absl::StatusOr<std::vector<CpuValue>> Run(absl::Span<const CpuValue> inputs,
                                            absl::Span<const CpuOutput> outputs) const;

 private:
  CpuSession(std::shared_ptr<const OrtRuntime> runtime, std::string where);
  absl::Status ReadPorts();
  absl::Status CopyOut(const std::string& name, const CpuOutput& output, CpuValue& result) const;

  const std::shared_ptr<const OrtRuntime> runtime_;
  const std::string where_;
  std::vector<CpuValue> weights_;  // outlive the session, which borrows their bytes
  OrtPtr<OrtSession> session_;
  std::vector<CpuPort> inputs_;
  std::vector<CpuPort> outputs_;
  // By output: the input that it is, or -1. ONNX Runtime would leave memory given for it as it was,
  // and return a value that does not keep the input's bytes alive.
  std::vector<int64_t> passed_through_;
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_CPU_SESSION_H_
