#include "engine/network_builder.h"

#include "base/status_macros.h"

namespace anemone {

Operand NetworkBuilder::AddInput(std::string name, const Dims& dims, Format format) {
  network_.inputs.push_back({std::move(name), dims, format});
  return {Operand::Source::kInput, static_cast<int>(network_.inputs.size()) - 1};
}

Operand NetworkBuilder::AddConstant(Tensor tensor, const Dims& dims) {
  network_.constants.push_back({std::move(tensor), dims});
  return {Operand::Source::kConstant, static_cast<int>(network_.constants.size()) - 1};
}

absl::StatusOr<Operand> NetworkBuilder::AddUnit(const UnitKind& kind,
                                                std::shared_ptr<const void> params,
                                                std::vector<Operand> bottoms,
                                                std::vector<Tensor> weights, std::string name) {
  Unit unit{.name = std::move(name),
            .kind = &kind,
            .params = std::move(params),
            .bottoms = std::move(bottoms),
            .weights = std::move(weights)};
  ANEMONE_ASSIGN_OR_RETURN(unit.dims,
                           kind.judge.shape(unit.params.get(), network_.BottomsOf(unit)));
  network_.units.push_back(std::move(unit));
  return Operand{Operand::Source::kUnit, static_cast<int>(network_.units.size()) - 1};
}

void NetworkBuilder::AddOutput(std::string name, const Operand& from) {
  network_.outputs.push_back({std::move(name), from});
}

absl::Status NetworkBuilder::Refuse(Verdict verdict) {
  refusal_ = std::move(verdict);
  return absl::FailedPreconditionError("refused");
}

}  // namespace anemone
