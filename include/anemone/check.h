// anemone/check.h: reports for every node of a model where it would run on a target, and why.
// Nothing is compiled or run, and only the weights that constant folding needs are read.
//
//   auto report = anemone::Check("net.onnx", {.target = "m1,m4"});
//   if (!report.ok()) return Fail(report.status());
//   std::cout << report->Text();              // a table of the targets
//   report->EngineMacsShare(0);               // 0.987: share of MACs on the engine of m1
//
// An unknown operator is not an error: its node runs on the CPU, and the shapes after it are
// unknown.
#ifndef ANEMONE_CHECK_H_
#define ANEMONE_CHECK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/settings.h"

namespace anemone {

// How many of the rejected nodes were written as models of their own.
struct SavedRejected {
  int written = 0, unwritten = 0;
};

class CheckReport {
 public:
  CheckReport(CheckReport&&) noexcept;
  CheckReport& operator=(CheckReport&&) noexcept;
  ~CheckReport();

  // The number of plans: one for each target, or with buckets one for each bucket of each target.
  size_t targets() const;
  // The share of all MACs. Nullopt if the model has no MACs, or if their number is not known
  // because a size is not: then WhyShareUnknown() is not empty.
  std::optional<double> EngineMacsShare(size_t target) const;
  // "cannot tell the share of MACs on the engine: 11 nodes have sizes that are unknown until run
  // time; give --dim batch=1"; "" if the share is known or the model has no MACs.
  std::string WhyShareUnknown(size_t target) const;
  // The report, in lines of at most `width` columns. Of several targets: a table. With
  // `every_node`: all details of each target, and a line for each node.
  std::string Text(bool every_node = false, bool colour = false, int width = 80) const;
  // One item of "models" in `anemone check --json` (docs/schemas/check.json).
  std::string Json() const;
  // The page of `anemone report`: one HTML file that needs no other file.
  std::string Html() const;
  // Writes each node that a target rejects as a small ONNX model into `folder`, which must not
  // exist or must be empty. rejected.json in it lists the models with the reasons
  // (docs/schemas/rejected.json), and the nodes that cannot be written.
  absl::StatusOr<SavedRejected> SaveRejected(const std::string& folder) const;

 private:
  friend absl::StatusOr<CheckReport> Check(const std::string&, const Settings&);
  friend absl::StatusOr<CheckReport> CheckBytes(absl::string_view, const Settings&);
  struct State;
  explicit CheckReport(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Errors: those of Session::Load except for unbound dimensions, which are allowed.
absl::StatusOr<CheckReport> Check(const std::string& path, const Settings& settings = {});
// The same from memory, which is borrowed until it returns; external data is refused.
absl::StatusOr<CheckReport> CheckBytes(absl::string_view model, const Settings& settings = {});

}  // namespace anemone

#endif  // ANEMONE_CHECK_H_
