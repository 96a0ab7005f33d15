// tools/compare/contestants.h: one interface for the runtimes that are measured (Anemone, ONNX
// Runtime's CPU provider, and others in bench/), and functions that measure time.
#ifndef ANEMONE_TOOLS_COMPARE_CONTESTANTS_H_
#define ANEMONE_TOOLS_COMPARE_CONTESTANTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "anemone/tensor.h"
#include "fallback/reference_model.h"
#include "tools/command/options.h"
#include "tools/compare/inputs.h"

namespace anemone {

class Contestant {
 public:
  virtual ~Contestant() = default;
  // `inputs` are used by every Run() until SetInputs() sets others of the same types and shapes.
  virtual absl::Status Load(const std::string& path, const Arrays& inputs) = 0;
  virtual absl::Status SetInputs(const Arrays& inputs) = 0;
  virtual absl::Status Run() = 0;
  // The outputs of the last Run(), by name.
  virtual absl::StatusOr<Arrays> Outputs() = 0;
};

class AnemoneContestant final : public Contestant {
 public:
  explicit AnemoneContestant(Settings settings) : settings_(std::move(settings)) {}
  absl::Status Load(const std::string& path, const Arrays& inputs) override;
  absl::Status SetInputs(const Arrays& inputs) override;
  absl::Status Run() override;
  absl::StatusOr<Arrays> Outputs() override { return outputs_; }
  const Session& session() const { return *session_; }

 private:
  Settings settings_;
  std::unique_ptr<Session> session_;
  Arrays inputs_, outputs_;
};

// Runs the original file. Its threads do not spin, because they would take the core from the next
// contestant.
class OrtContestant final : public Contestant {
 public:
  // `memory_limit`: as OrtRuntimeOptions has it.
  explicit OrtContestant(int threads, int64_t memory_limit = 0)
      : threads_(threads), memory_limit_(memory_limit) {}
  absl::Status Load(const std::string& path, const Arrays& inputs) override;
  absl::Status SetInputs(const Arrays& inputs) override;
  absl::Status Run() override;
  absl::StatusOr<Arrays> Outputs() override;

 private:
  const int threads_;
  const int64_t memory_limit_;
  std::shared_ptr<const OrtRuntime> runtime_;
  std::unique_ptr<ReferenceModel> model_;
  std::map<std::string, CpuValue> inputs_;
  std::vector<CpuValue> outputs_;
};

// The inputs for the model in `path`, as the command line specifies them. Only the model's skeleton
// is read and no thread is started, so that a process forked afterwards is small.
absl::StatusOr<Arrays> InputsOf(const std::string& path, const Options& options);

double MillisecondsOf(const std::function<absl::Status()>& step, absl::Status& status);

// `share` 0 is the fastest time, 0.5 the median. `times` must not be empty.
double Percentile(std::vector<double> times, double share);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_CONTESTANTS_H_
