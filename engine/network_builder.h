// engine/network_builder.h: builds a Network unit by unit. The lowerings of ONNX nodes and of MIL
// operations use it.
//
//   Operand y = c.Add(Kind(), SoftmaxParams{axis}, {x});
//
// The builder remembers its first error, which status() returns. After an error, calls add nothing
// and return a placeholder operand, all of whose dims are 1. So a lowering reads like a formula and
// checks for errors only where it reads attributes and shapes.
//
// The builder does not check whether the target accepts a unit; the unit's validator does. Refuse()
// is for forms that the engine refuses before there is a unit to check.
#ifndef ANEMONE_ENGINE_NETWORK_BUILDER_H_
#define ANEMONE_ENGINE_NETWORK_BUILDER_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/network.h"
#include "engine/unit_kind.h"
#include "engine/verdict.h"

namespace anemone {

// The return value of a function that fails a NetworkBuilder. It converts to a Status and to an
// Operand.
class BuildFailure {
 public:
  explicit BuildFailure(absl::Status status) : status_(std::move(status)) {}
  operator absl::Status() const { return status_; }  // NOLINT(google-explicit-constructor)
  operator Operand() const { return {}; }            // NOLINT(google-explicit-constructor)

 private:
  absl::Status status_;
};

// ANEMONE_RETURN_IF_ERROR and ANEMONE_ASSIGN_OR_RETURN for a function that returns an Operand. The
// error becomes that of the builder.
#define ANEMONE_FAIL_IF_ERROR(builder, expr)                          \
  do {                                                                \
    if (absl::Status anemone_status_ = (expr); !anemone_status_.ok()) \
      return (builder).Fail(std::move(anemone_status_));              \
  } while (false)

#define ANEMONE_ASSIGN_OR_FAIL(builder, lhs, expr) \
  ANEMONE_ASSIGN_OR_FAIL_(builder, ANEMONE_STATUS_JOIN_(anemone_statusor_, __LINE__), lhs, expr)

#define ANEMONE_ASSIGN_OR_FAIL_(builder, result, lhs, expr)            \
  auto result = (expr);                                                \
  if (!result.ok()) return (builder).Fail(std::move(result).status()); \
  lhs = std::move(result).value()

class NetworkBuilder {
 public:
  NetworkBuilder(const Target& target, Route route) : target_(target), route_(route) {}
  NetworkBuilder(const NetworkBuilder&) = delete;
  NetworkBuilder& operator=(const NetworkBuilder&) = delete;

  const Target& target() const { return target_; }
  Route route() const { return route_; }
  const Network& network() const { return network_; }
  // The first error so far.
  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

  // All dims are 1 if the builder has failed.
  Dims DimsOf(const Operand& operand) const;
  // All dims are 1 and there is no constant if the builder has failed.
  Bottom BottomOf(const Operand& operand) const;
  std::vector<Bottom> BottomsOf(absl::Span<const Operand> operands) const;

  Operand AddInput(std::string name, const Dims& dims, Format format = Format::kFloat16);
  // Adds a constant operand. The elements are in N, D, C, H, W order.
  Operand AddConstant(Tensor tensor, const Dims& dims);
  // Appends a unit. The kind's shape function computes its dims.
  template <class P>
  Operand Add(const UnitKindOf<P>& kind, P params, std::vector<Operand> bottoms,
              std::vector<Tensor> weights = {}) {
    return AddUnit(kind, std::make_shared<const P>(std::move(params)), std::move(bottoms),
                   std::move(weights));
  }
  Operand AddUnit(const UnitKind& kind, std::shared_ptr<const void> params,
                  std::vector<Operand> bottoms, std::vector<Tensor> weights, std::string name = "");
  void AddOutput(std::string name, const Operand& from);

  // Fails because the engine refuses this form by `rule`, whose printf pattern takes `args`. Use:
  // `return c.Refuse(rule::kX);`.
  template <class... Args>
  BuildFailure Refuse(const Rule& rule, const Args&... args) {
    return Refuse(Judge(target_, route_).Reject(rule, args...));
  }
  BuildFailure Refuse(Verdict verdict);
  // Refuses by `rule`, unless the target reaches the rule's family.
  template <class... Args>
  absl::Status Requires(const Rule& rule, const Args&... args) {
    if (Judge(target_, route_).Reaches(rule)) return absl::OkStatus();
    return Refuse(rule, args...);
  }
  // Refuses because Anemone has no lowering for this form (coverage, form-not-lowered); the engine
  // was not asked.
  BuildFailure NotLowered(absl::string_view what);
  // The same for a form in which an operand that must be a constant is computed at run time.
  BuildFailure NotConstant(absl::string_view what);
  // Fails with this error, unless the builder has failed before.
  BuildFailure Fail(absl::Status status);

  // Set if Refuse() or NotLowered() made the first error. An error that has no refusal is a failure
  // of the model or of Anemone, not an answer about the target.
  const std::optional<Verdict>& refusal() const { return refusal_; }
  Network TakeNetwork() { return std::move(network_); }
  // Cleans up the network (network.h). Operands returned before are no longer valid.
  void CleanUp() { anemone::CleanUp(network_); }

 private:
  const Target& target_;
  Route route_;
  Network network_;
  std::optional<Verdict> refusal_;
  absl::Status status_;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_NETWORK_BUILDER_H_
