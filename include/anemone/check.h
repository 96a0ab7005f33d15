// anemone/check.h: says of every node of a model where it would run on a target, and why. Nothing
// is compiled or run, and no weight is read that need not be folded.
//
//   auto report = anemone::Check("net.onnx", {.target = "m1,m4"});
//   if (!report.ok()) return Fail(report.status());
//   std::cout << report->Text();              // a table per target
//   report->EngineMacsShare(0);               // 0.987: share of MACs on the engine of m1
//
// An operator that nobody knows is no error: it is a CPU node, and shapes behind it are unknown.
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

class CheckReport {
 public:
  CheckReport(CheckReport&&) noexcept;
  CheckReport& operator=(CheckReport&&) noexcept;
  ~CheckReport();

  // How many plans there are: one for each target; with buckets, for each bucket of each target.
  size_t targets() const;
  // Of all MACs; nullopt for a model without any.
  std::optional<double> EngineMacsShare(size_t target) const;
  // Every target's table; with `every_node`, a line for each node as well.
  std::string Text(bool every_node = false, bool colour = false) const;
  // One item of "models" in `anemone check --json` (docs/schemas/check.json).
  std::string Json() const;

 private:
  friend absl::StatusOr<CheckReport> Check(const std::string&, const Settings&);
  friend absl::StatusOr<CheckReport> CheckBytes(absl::string_view, const Settings&);
  struct State;
  explicit CheckReport(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Errors: those of Session::Load but for unbound dimensions, which are allowed.
absl::StatusOr<CheckReport> Check(const std::string& path, const Settings& settings = {});
// The same from memory, which is borrowed until it returns; external data is refused.
absl::StatusOr<CheckReport> CheckBytes(absl::string_view model, const Settings& settings = {});

}  // namespace anemone

#endif  // ANEMONE_CHECK_H_
