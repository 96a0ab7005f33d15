#include "engine/authored_unit.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rule_table.h"  // generated

namespace anemone {

Operand AddAuthoredUnit(NetworkBuilder& c, const UnitKind& kind, const Json& keys,
                        std::vector<Operand> bottoms, std::vector<Tensor> weights,
                        std::string name) {
  if (!c.ok()) return {};
  const std::vector<Bottom> in = c.BottomsOf(bottoms);
  Verdict verdict = CheckBottoms(kind, in, c.target(), c.route());
  if (!verdict.accepted) return c.Refuse(std::move(verdict));
  if (kind.MissingKey(keys) != nullptr) return c.Refuse(rule::kInvalidParamSyntax);
  absl::StatusOr<std::shared_ptr<const void>> params = kind.Read(keys, in, weights);
  if (!params.ok()) {
    return c.Fail(
        absl::InvalidArgumentError(absl::StrCat(kind.type, ": ", params.status().message())));
  }
  verdict = kind.Validate(params->get(), in, c.target(), c.route());
  if (!verdict.accepted) return c.Refuse(std::move(verdict));
  if (const absl::StatusOr<Dims> dims = kind.judge.shape(params->get(), in); !dims.ok()) {
    return c.Refuse(OwnRefusal(Layer::kCoverage, "unit-shape", std::string(dims.status().message()),
                               "give bottoms whose dims fit each other and the keys"));
  }
  return c.AddUnit(kind, *std::move(params), std::move(bottoms), std::move(weights),
                   std::move(name));
}

}  // namespace anemone
