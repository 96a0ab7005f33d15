// engine/network_builder.h: writes a small Network unit by unit, for whoever knows what units a
// form needs: the lowerings of ONNX nodes, MIL operations.
//
//   ASSIGN_OR_RETURN(Operand y, c.Add(SoftmaxUnit(), SoftmaxParams{axis}, {x}));
//
// It never judges: the units' validators say what the target thinks of them. Refuse() is for forms
// that the engine refuses before there is a unit to ask.
#ifndef ANEMONE_ENGINE_NETWORK_BUILDER_H_
#define ANEMONE_ENGINE_NETWORK_BUILDER_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/network.h"
#include "engine/unit_kind.h"
#include "engine/verdict.h"

namespace anemone {

class NetworkBuilder {
 public:
  NetworkBuilder(const Target& target, Route route) : target_(target), route_(route) {}
  NetworkBuilder(const NetworkBuilder&) = delete;
  NetworkBuilder& operator=(const NetworkBuilder&) = delete;

  const Target& target() const { return target_; }
  Route route() const { return route_; }
  const Network& network() const { return network_; }
  const Dims& DimsOf(const Operand& operand) const { return network_.DimsOf(operand); }

  Operand AddInput(std::string name, const Dims& dims, Format format = Format::kFloat16);
  // A constant operand; elements in N, D, C, H, W order of `dims`.
  Operand AddConstant(Tensor tensor, const Dims& dims);
  // Appends a unit; its dims come from the kind's shape rule.
  template <class P>
  absl::StatusOr<Operand> Add(const UnitKindOf<P>& kind, P params, std::vector<Operand> bottoms,
                              std::vector<Tensor> weights = {}) {
    return AddUnit(kind, std::make_shared<const P>(std::move(params)), std::move(bottoms),
                   std::move(weights));
  }
  absl::StatusOr<Operand> AddUnit(const UnitKind& kind, std::shared_ptr<const void> params,
                                  std::vector<Operand> bottoms, std::vector<Tensor> weights,
                                  std::string name = "");
  void AddOutput(std::string name, const Operand& from);

  // For `return`: the engine refuses this form in the rule's words, before there is a unit to ask.
  template <class... Args>
  absl::Status Refuse(const Rule& rule, const Args&... args) {
    return Refuse(Judge(target_, route_).Reject(rule, args...));
  }
  absl::Status Refuse(Verdict verdict);
  // For `return`: the form is not lowered by us; the engine was not asked.
  absl::Status NotLowered(const std::string& what) const { return absl::UnimplementedError(what); }

  const std::optional<Verdict>& refusal() const { return refusal_; }
  Network TakeNetwork() { return std::move(network_); }
  // Operands given out before are no longer good.
  void CleanUp() { anemone::CleanUp(network_); }

 private:
  const Target& target_;
  Route route_;
  Network network_;
  std::optional<Verdict> refusal_;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_NETWORK_BUILDER_H_
