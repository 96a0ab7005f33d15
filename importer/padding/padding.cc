#include "importer/padding/padding.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "importer/elements.h"
#include "importer/padding/padding_flow.h"
#include "importer/padding/padding_rules.h"

namespace anemone {
namespace {

absl::Status Unprovable(absl::string_view where, absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(where, ": ", what));
}

bool SameAttribute(const Attribute& a, const Attribute& b) {
  if (a.name != b.name || a.value.index() != b.value.index()) return false;
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return SameTensor(value, std::get<T>(b.value));
        } else if constexpr (std::is_same_v<T, Attribute::Other>) {
          return value.bytes == std::get<T>(b.value).bytes;
        } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
          return false;
        } else if constexpr (std::is_same_v<T, Attribute::GraphPtr> ||
                             std::is_same_v<T, std::vector<Attribute::GraphPtr>>) {
          return true;  // every rule refuses nodes with bodies
        } else {
          return value == std::get<T>(b.value);
        }
      },
      a.value);
}

bool SameForm(const Node& a, const Node& b) {
  return a.op_type == b.op_type && a.domain == b.domain && a.inputs.size() == b.inputs.size() &&
         a.outputs.size() == b.outputs.size() &&
         std::equal(a.attributes.begin(), a.attributes.end(), b.attributes.begin(),
                    b.attributes.end(), SameAttribute);
}

// True if every size is known and not 0.
bool IsCountable(const Value& value) {
  return value.is_static() && std::all_of(value.shape->begin(), value.shape->end(),
                                          [](const Dim& dim) { return dim.size > 0; });
}

class Prover {
 public:
  Prover(const Model& bucket, const Model& exact, absl::Span<const Gap> gaps)
      : model_(bucket),
        gaps_(gaps),
        bucket_(bucket.graph),
        exact_(exact.graph),
        twin_(bucket_.values.size(), kNone),
        flows_(bucket_.values.size()) {}

  absl::StatusOr<PaddingProof> Run() {
    if (bucket_.outputs.size() != exact_.outputs.size()) {
      return Unprovable("the model", "its number of outputs depends on the size");
    }
    ANEMONE_RETURN_IF_ERROR(TakeInputs());
    if (bucket_.nodes.size() != exact_.nodes.size()) {
      return Unprovable("the model", "its nodes depend on the size");
    }
    for (size_t i = 0; i < bucket_.nodes.size(); ++i) {
      const absl::Status status = Follow(bucket_.nodes[i], exact_.nodes[i]);
      if (!status.ok()) return Unprovable(NodeLabel(model_, bucket_.nodes[i]), status.message());
    }
    return Finish();
  }

 private:
  absl::Status TakeInputs();
  absl::Status Follow(const Node& bucket, const Node& exact);
  absl::Status Meet(ValueId bucket, ValueId exact);
  absl::Status Keep(ValueId bucket, ValueId exact, Flow flow);
  absl::StatusOr<Flow> FlowOf(ValueId bucket, ValueId exact);
  absl::Status RelyOn(const FlowStretch& masked);
  absl::Status RelyOnPositions(ValueId positions);
  absl::StatusOr<PaddingProof> Finish();

  const Model& model_;
  const absl::Span<const Gap> gaps_;
  const Graph& bucket_;
  const Graph& exact_;
  std::vector<ValueId> twin_;  // bucket value -> exact value
  std::vector<std::optional<Flow>> flows_;
  PaddingProof proof_;
};

// Starts with the inputs, which are padded with zeros.
absl::Status Prover::TakeInputs() {
  if (bucket_.inputs.size() != exact_.inputs.size()) {
    return Unprovable("the model", "its number of inputs depends on the size");
  }
  for (size_t i = 0; i < bucket_.inputs.size(); ++i) {
    const Value& bucket = bucket_.values[bucket_.inputs[i]];
    const Value& exact = exact_.values[exact_.inputs[i]];
    const std::string where = absl::StrCat("input '", bucket.name, "'");
    if (!IsCountable(bucket) || !IsCountable(exact) ||
        bucket.shape->size() != exact.shape->size()) {
      return Unprovable(where, "its shape is not known");
    }
    Flow flow;
    flow.inputs.insert(i);
    for (size_t a = 0; a < bucket.shape->size(); ++a) {
      const int64_t full = (*bucket.shape)[a].size;
      const int64_t used = (*exact.shape)[a].size;
      if (used > full) return Unprovable(where, "is larger than its bucket");
      Append(flow.axes.emplace_back(), {full, used, {.beside = {0, 0}, .everywhere = {0, 0}}});
    }
    if (flow.padded() && bucket_.defaults.contains(bucket_.inputs[i])) {
      return Unprovable(where, "has a default value, which would have to be padded");
    }
    ANEMONE_RETURN_IF_ERROR(Keep(bucket_.inputs[i], exact_.inputs[i], std::move(flow)));
  }
  return absl::OkStatus();
}

// Checks that two values are the same in both graphs.
absl::Status Prover::Meet(ValueId bucket, ValueId exact) {
  bool same = bucket == exact;
  if (bucket != kNone && exact != kNone) {
    const bool constant = bucket_.values[bucket].constant.has_value();
    same = constant == exact_.values[exact].constant.has_value() &&
           (constant || twin_[bucket] == exact);
  }
  return same ? absl::OkStatus() : absl::FailedPreconditionError("differs between the two sizes");
}

absl::StatusOr<Flow> Prover::FlowOf(ValueId bucket, ValueId exact) {
  const Value& value = bucket_.values[bucket];
  if (value.constant && twin_[bucket] != exact) {
    absl::StatusOr<Flow> flow =
        FlowOfConstant(*value.constant, *exact_.values[exact].constant, gaps_);
    if (!flow.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("its constant '", value.name, "' ", flow.status().message()));
    }
    twin_[bucket] = exact;
    flows_[bucket] = *std::move(flow);
  }
  return *flows_[bucket];
}

absl::Status Prover::Follow(const Node& bucket, const Node& exact) {
  if (!SameForm(bucket, exact)) {
    return absl::FailedPreconditionError("differs between the two sizes");
  }
  for (size_t i = 0; i < bucket.inputs.size(); ++i) {
    ANEMONE_RETURN_IF_ERROR(Meet(bucket.inputs[i], exact.inputs[i]));
    const bool known =
        bucket.inputs[i] == kNone || (IsCountable(bucket_.values[bucket.inputs[i]]) &&
                                      IsCountable(exact_.values[exact.inputs[i]]));
    // An empty constant is an omitted argument (of Resize).
    if (!known && !bucket_.values[bucket.inputs[i]].constant) {
      return absl::FailedPreconditionError(
          "has an input that is empty or whose size is known only at run time");
    }
  }
  for (size_t i = 0; i < bucket.outputs.size(); ++i) {
    if ((bucket.outputs[i] == kNone) != (exact.outputs[i] == kNone)) {
      return absl::FailedPreconditionError("differs between the two sizes");
    }
    if (bucket.outputs[i] == kNone) continue;
    if (!IsCountable(bucket_.values[bucket.outputs[i]]) ||
        !IsCountable(exact_.values[exact.outputs[i]])) {
      return absl::FailedPreconditionError(
          "has an output that is empty or whose size is known only at run time");
    }
  }
  const PaddingStep step = {bucket_,
                            exact_,
                            bucket,
                            exact,
                            [&](size_t i) -> absl::StatusOr<Flow> {
                              if (i >= bucket.inputs.size() || bucket.inputs[i] == kNone) {
                                return absl::FailedPreconditionError("an input is missing");
                              }
                              return FlowOf(bucket.inputs[i], exact.inputs[i]);
                            },
                            [&](const FlowStretch& masked) { return RelyOn(masked); },
                            [&](ValueId positions) { return RelyOnPositions(positions); }};
  ANEMONE_ASSIGN_OR_RETURN(std::vector<Flow> made, CarryPaddingWith(step, gaps_));
  made.resize(std::max(made.size(), bucket.outputs.size()));
  for (size_t i = 0; i < bucket.outputs.size(); ++i) {
    if (bucket.outputs[i] == kNone) continue;
    ANEMONE_RETURN_IF_ERROR(Keep(bucket.outputs[i], exact.outputs[i], std::move(made[i])));
  }
  return absl::OkStatus();
}

// Stores the flow of a value, after comparing it with the inferred sizes.
absl::Status Prover::Keep(ValueId bucket, ValueId exact, Flow flow) {
  const std::vector<int64_t> full = bucket_.values[bucket].dims();
  const std::vector<int64_t> used = exact_.values[exact].dims();
  bool fits = flow.axes.size() == full.size() && full.size() == used.size();
  for (size_t a = 0; fits && a < full.size(); ++a) {
    int64_t used_here = 1;
    for (const FlowStretch& s : flow.axes[a]) used_here *= s.used;
    fits = FullOf(flow.axes[a]) == full[a] && used_here == used[a];
  }
  if (!fits)
    return absl::FailedPreconditionError("has an output shape that padding cannot explain");
  twin_[bucket] = exact;
  flows_[bucket] = std::move(flow);
  return absl::OkStatus();
}

absl::Status Prover::RelyOn(const FlowStretch& masked) {
  const Padding& padding = masked.padding;
  for (size_t input : padding.masks) {
    if (input == kSizedConstant) continue;
    const Flow& flow = *flows_[bucket_.inputs[input]];
    // With several masks, or one mask used along two axes, a row may be completely masked although
    // each mask keeps an element.
    const bool all = padding.masks.size() > 1 || padding.mask_axes > flow.changing_axes();
    bool has_axis = false;
    for (size_t a = 0; a < flow.axes.size(); ++a) {
      const FlowAxis& axis = flow.axes[a];
      const bool same = std::any_of(axis.begin(), axis.end(),
                                    [&](const FlowStretch& s) { return s.SameAs(masked); });
      if (same) proof_.masks.push_back({input, static_cast<int>(a), all});
      has_axis |= same;
    }
    if (!has_axis) {
      return absl::FailedPreconditionError(absl::StrCat("its mask also depends on input '",
                                                        bucket_.values[bucket_.inputs[input]].name,
                                                        "', which may mask whole rows"));
    }
  }
  return absl::OkStatus();
}

absl::Status Prover::RelyOnPositions(ValueId positions) {
  const auto input =
      std::find(bucket_.inputs.begin(), bucket_.inputs.end(), BehindMoves(bucket_, positions));
  if (input == bucket_.inputs.end()) {
    return absl::FailedPreconditionError("it selects computed positions of the padded axis");
  }
  proof_.masks.push_back(
      {.input = static_cast<size_t>(input - bucket_.inputs.begin()), .not_negative = true});
  return absl::OkStatus();
}

absl::StatusOr<PaddingProof> Prover::Finish() {
  for (size_t i = 0; i < bucket_.outputs.size(); ++i) {
    const ValueId bucket = bucket_.outputs[i];
    const ValueId exact = exact_.outputs[i];
    const std::string where = absl::StrCat("output '", bucket_.values[bucket].name, "'");
    const absl::Status same = Meet(bucket, exact);
    if (!same.ok()) return Unprovable(where, same.message());
    const absl::StatusOr<Flow> flow = FlowOf(bucket, exact);
    if (!flow.ok()) return Unprovable(where, flow.status().message());
    PaddedLayout layout;
    for (const FlowAxis& axis : flow->axes) {
      layout.emplace_back();
      for (const FlowStretch& s : axis) layout.back().push_back({s.full, s.used});
    }
    proof_.outputs.push_back(std::move(layout));
  }
  std::sort(proof_.masks.begin(), proof_.masks.end());
  const auto repeated = std::unique(proof_.masks.begin(), proof_.masks.end(),
                                    [](const auto& a, const auto& b) { return !(a < b); });
  proof_.masks.erase(repeated, proof_.masks.end());
  return std::move(proof_);
}

}  // namespace

// Every error status of the prover and of the rules is a refusal.
PaddingVerdict ProvePadding(const Model& bucket, const Model& exact, absl::Span<const Gap> gaps) {
  absl::StatusOr<PaddingProof> proof = Prover(bucket, exact, gaps).Run();
  if (proof.ok()) return {*std::move(proof), ""};
  return {std::nullopt, std::string(proof.status().message())};
}

}  // namespace anemone
