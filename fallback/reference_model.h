// fallback/reference_model.h: a whole model that ONNX Runtime reads and runs by itself. Our results
// and times are compared with it.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto reference, ReferenceModel::Open(runtime, "net.onnx", {}));
//   // In the order of outputs().
//   ANEMONE_ASSIGN_OR_RETURN(auto results, reference->Run({{"x", value}}));
//
// ONNX Runtime opens the file, so external data, functions and opsets are read by code other than
// ours. A model that it refuses (an opset or IR version too new for it) is an error with its
// message.
#ifndef ANEMONE_FALLBACK_REFERENCE_MODEL_H_
#define ANEMONE_FALLBACK_REFERENCE_MODEL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fallback/cpu_session.h"

namespace anemone {

class ReferenceModel {
 public:
  static absl::StatusOr<std::unique_ptr<ReferenceModel>> Open(
      std::shared_ptr<const OrtRuntime> runtime, const std::string& path,
      const CpuSessionOptions& options);

  const std::vector<CpuPort>& inputs() const { return session_->inputs(); }
  const std::vector<CpuPort>& outputs() const { return session_->outputs(); }

  // Takes every input by name; one with a default may be left out. The values set the sizes of free
  // dimensions. Thread-safe. Errors: kInvalidArgument (a missing or unknown input, or a wrong type
  // or shape), or ONNX Runtime's.
  absl::StatusOr<std::vector<CpuValue>> Run(const std::map<std::string, CpuValue>& inputs) const;

 private:
  ReferenceModel(std::string path, std::unique_ptr<CpuSession> session)
      : path_(std::move(path)), session_(std::move(session)) {}

  const std::string path_;
  const std::unique_ptr<CpuSession> session_;
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_REFERENCE_MODEL_H_
