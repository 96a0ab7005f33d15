#include "importer/passes/pipeline.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/status_macros.h"
#include "importer/passes/passes.h"

namespace anemone {
namespace {

// The list of all passes. Cheap clean-up comes first, so that later passes see producers directly
// next to their readers.
constexpr Pass kSimplify[] = {
    {"drop-dead", DropDead},
    {"drop-empty", DropEmpty},
    {"drop-identity", DropIdentity},
    {"widen-integer-product", WidenIntegerProduct},
    {"merge-dequantize", MergeDequantize},
    {"move-dequantize", MoveDequantize},
    {"drop-requantize", DropRequantize},
    {"drop-quantized-clip", DropQuantizedClip},
    {"drop-nan-guard", DropNanGuard},
    {"fuse-casts", FuseCasts},
    {"fuse-transposes", FuseTransposes},
    {"fuse-reshapes", FuseReshapes},
    {"fuse-pads", FusePads},
    {"fold-batch-norm", FoldBatchNorm},
    {"fold-scale", FoldScale},
    {"fold-bias", FoldBias},
    {"fold-into-conv", FoldIntoConv},
};

class Driver {
 public:
  Driver(Model& model, absl::Span<const Pass> passes, int stop_after)
      : model_(model),
        passes_(passes),
        names_(model.graph),
        limited_(stop_after >= 0),
        left_(stop_after) {}

  absl::Status Run(Graph& graph, const std::string& where);

 private:
  bool Exhausted() const { return limited_ && left_ <= 0; }
  // The passes that rewrote something.
  absl::StatusOr<std::vector<absl::string_view>> RunRound(GraphEditor& editor);
  absl::StatusOr<bool> RunPass(const Pass& pass, GraphEditor& editor);

  Model& model_;
  absl::Span<const Pass> passes_;
  NameScope names_;
  bool limited_;
  int left_;
};

absl::Status Driver::Run(Graph& graph, const std::string& where) {
  for (Node& node : graph.nodes) {
    if (BodiesOf(node).empty()) continue;
    ANEMONE_RETURN_IF_ERROR(EditBodies(
        node, [&](absl::string_view attribute, Graph& body, std::vector<ValueId>& captured) {
          absl::Status status = Run(body, absl::StrCat(attribute, " of ", NodeLabel(model_, node)));
          DropUnusedCaptures(body, captured);
          return status;
        }));
  }
  GraphEditor editor(graph, names_);
  std::vector<absl::string_view> busy;
  for (int round = 0; round < kMostRounds && !Exhausted(); ++round) {
    ANEMONE_ASSIGN_OR_RETURN(busy, RunRound(editor));
    if (busy.empty()) break;
  }
  if (!busy.empty() && !Exhausted()) {
    model_.warnings.push_back({"pass-not-converged", where,
                               absl::StrCat("these passes still found something to rewrite after ",
                                            kMostRounds, " rounds: ", absl::StrJoin(busy, ", ")),
                               "the model is correct and can be run, but please report this"});
  }
  editor.Finish();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<absl::string_view>> Driver::RunRound(GraphEditor& editor) {
  std::vector<absl::string_view> busy;
  for (const Pass& pass : passes_) {
    ANEMONE_ASSIGN_OR_RETURN(const bool changed, RunPass(pass, editor));
    if (changed) busy.push_back(pass.name);
  }
  return busy;
}

absl::StatusOr<bool> Driver::RunPass(const Pass& pass, GraphEditor& editor) {
  bool changed = false;
  for (NodeId id = 0; id < editor.size() && !Exhausted(); ++id) {
    if (!editor.alive(id)) continue;
    ANEMONE_RETURN_IF_ERROR(
        CheckTime(Phase::kRead, [&] { return NodeLabel(model_, editor.node(id)); }));
    const WorkPlace place([&] { return NodeLabel(model_, editor.node(id)); });
    const absl::StatusOr<bool> rewrote = pass.run(editor, id);
    if (!rewrote.ok()) {
      return absl::Status(rewrote.status().code(),
                          absl::StrCat("pass ", pass.name, ", ", NodeLabel(model_, editor.node(id)),
                                       ": ", rewrote.status().message()));
    }
    changed |= *rewrote;
    left_ -= *rewrote;
  }
  return changed;
}

}  // namespace

absl::Status RunPasses(Model& model, int stop_after) {
  return RunPasses(model, kSimplify, stop_after);
}

absl::Status RunPasses(Model& model, absl::Span<const Pass> passes, int stop_after) {
  return Driver(model, passes, stop_after).Run(model.graph, "the main graph");
}

}  // namespace anemone
