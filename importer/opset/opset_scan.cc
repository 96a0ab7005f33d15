// Lift of Scan-8, which had a batch axis as the first axis of every input and output.
#include <memory>
#include <utility>

#include "importer/edit.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {
namespace {

ValueId NamedValue(LiftContext& c, Graph& graph, absl::string_view hint) {
  return AddValue(graph, c.names().Fresh(hint));
}

// The body of the Scan over the batch: a Scan of one batch element.
std::shared_ptr<Graph> MakeStep(LiftContext& c, Node scan) {
  auto step = std::make_shared<Graph>();
  step->name = "batch";
  for (size_t i = 1; i < c.node().inputs.size(); ++i) {
    step->inputs.push_back(NamedValue(c, *step, "batch/in"));
  }
  scan.inputs = step->inputs;
  for (ValueId& output : scan.outputs) {
    output = NamedValue(c, *step, "batch/out");
    step->outputs.push_back(output);
  }
  for (ValueId& captured : scan.captures) {
    captured = AddValue(*step, c.value(captured).name);
    step->captures.push_back(captured);
  }
  step->nodes.push_back(std::move(scan));
  SetProducers(*step);
  return step;
}

}  // namespace

// Becomes a Scan over the batch, without a state, whose body is a Scan over the sequence. Like
// Scan-8, it processes each sequence separately. With sequences of unequal lengths, the node keeps
// its version.
absl::Status LiftScan(LiftContext& c) {
  if (c.input(0) != kNone) return absl::OkStatus();
  Node scan = c.node();
  scan.version = kWorkingOpset;
  if (const auto directions = IntsOf(scan, "directions"); directions.has_value()) {
    SetAttribute(scan, "scan_input_directions", *directions);
    RemoveAttribute(scan, "directions");
  }
  Node batch = c.node();
  batch.inputs.erase(batch.inputs.begin());
  batch.attributes.clear();
  SetAttribute(batch, "num_scan_inputs", static_cast<int64_t>(batch.inputs.size()));
  SetAttribute(batch, "body", Attribute::GraphPtr(MakeStep(c, std::move(scan))));
  return c.EmitLifted(std::move(batch));
}

}  // namespace anemone
