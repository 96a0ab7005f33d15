// tools/compare/contestants.h: who is measured, behind one face: Anemone, ONNX Runtime's CPU
// provider, and what bench/ adds; and how time and memory are taken of each.
#ifndef ANEMONE_TOOLS_COMPARE_CONTESTANTS_H_
#define ANEMONE_TOOLS_COMPARE_CONTESTANTS_H_

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
  // `inputs` are those of every Run() until others are set, of the same types and shapes.
  virtual absl::Status Load(const std::string& path, const Arrays& inputs) = 0;
  virtual absl::Status SetInputs(const Arrays& inputs) = 0;
  virtual absl::Status Run() = 0;
  // Of the last Run(), by name.
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

// On the untouched file, with threads that do not spin: they would steal the core from whoever runs
// next.
class OrtContestant final : public Contestant {
 public:
  explicit OrtContestant(int threads) : threads_(threads) {}
  absl::Status Load(const std::string& path, const Arrays& inputs) override;
  absl::Status SetInputs(const Arrays& inputs) override;
  absl::Status Run() override;
  absl::StatusOr<Arrays> Outputs() override;

 private:
  int threads_;
  std::shared_ptr<const OrtRuntime> runtime_;
  std::unique_ptr<ReferenceModel> model_;
  std::map<std::string, CpuValue> inputs_;
  std::vector<CpuValue> outputs_;
};

// The inputs that the command line asks for, of the model in `path`. Only its skeleton is read, and
// no thread is started: what is forked afterwards starts small.
absl::StatusOr<Arrays> InputsOf(const std::string& path, const Options& options);

double MillisecondsOf(const std::function<absl::Status()>& step, absl::Status& status);

// `share` 0 is the fastest, 0.5 the median. There must be a time.
double Percentile(std::vector<double> times, double share);

// Peak resident memory in bytes of a child process that does `work`, or its error. Call it before
// this process has threads or much memory: the child inherits that.
absl::StatusOr<double> PeakMemoryOf(const std::function<absl::Status()>& work);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_CONTESTANTS_H_
