#include "engine/network_builder.h"

#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

constexpr char kNotLowered[] = "form-not-lowered";

}  // namespace

Operand NetworkBuilder::AddInput(std::string name, const Dims& dims, Format format) {
  network_.inputs.push_back({std::move(name), dims, format});
  return {Operand::Source::kInput, static_cast<int>(network_.inputs.size()) - 1};
}

Operand NetworkBuilder::AddConstant(Tensor tensor, const Dims& dims) {
  network_.constants.push_back({std::move(tensor), dims});
  return {Operand::Source::kConstant, static_cast<int>(network_.constants.size()) - 1};
}

Dims NetworkBuilder::DimsOf(const Operand& operand) const {
  return ok() ? network_.DimsOf(operand) : MakeDims(1, 1, 1, 1);
}

Bottom NetworkBuilder::BottomOf(const Operand& operand) const {
  return ok() ? network_.BottomOf(operand) : Bottom{MakeDims(1, 1, 1, 1)};
}

std::vector<Bottom> NetworkBuilder::BottomsOf(absl::Span<const Operand> operands) const {
  std::vector<Bottom> bottoms;
  for (const Operand& operand : operands) bottoms.push_back(BottomOf(operand));
  return bottoms;
}

Operand NetworkBuilder::AddUnit(const UnitKind& kind, std::shared_ptr<const void> params,
                                std::vector<Operand> bottoms, std::vector<Tensor> weights,
                                std::string name) {
  if (!ok()) return {};
  Unit unit{.name = std::move(name),
            .kind = &kind,
            .params = std::move(params),
            .bottoms = std::move(bottoms),
            .weights = std::move(weights)};
  absl::StatusOr<Dims> dims = kind.judge.shape(unit.params.get(), network_.BottomsOf(unit));
  if (!dims.ok()) return Fail(std::move(dims).status());
  unit.dims = *dims;
  network_.units.push_back(std::move(unit));
  return Operand{Operand::Source::kUnit, static_cast<int>(network_.units.size()) - 1};
}

void NetworkBuilder::AddOutput(std::string name, const Operand& from) {
  network_.outputs.push_back({std::move(name), from});
}

BuildFailure NetworkBuilder::Refuse(Verdict verdict) {
  if (ok()) refusal_ = std::move(verdict);
  return Fail(absl::FailedPreconditionError("refused"));
}

BuildFailure NetworkBuilder::NotLowered(absl::string_view what) {
  return Refuse(OwnRefusal(Layer::kCoverage, kNotLowered, absl::StrCat("not lowered: ", what),
                           "use another form of the operator, or leave it to the CPU"));
}

BuildFailure NetworkBuilder::NotConstant(absl::string_view what) {
  return Refuse(OwnRefusal(Layer::kCoverage, kNotLowered, absl::StrCat("not lowered: ", what),
                           "make it a constant, or leave the node to the CPU; if it is an "
                           "initializer that the model also lists as an input, remove it from the "
                           "inputs"));
}

BuildFailure NetworkBuilder::Fail(absl::Status status) {
  if (ok()) status_ = std::move(status);
  return BuildFailure(status_);
}

}  // namespace anemone
