// provider/coreml/whole_model.h: a planned model as one MIL program. Engine segments are written
// by the MIL forms of their units, so that what the engine accepts stays together; the other nodes
// by the table of provider/coreml/node_writer.h.
#ifndef ANEMONE_PROVIDER_COREML_WHOLE_MODEL_H_
#define ANEMONE_PROVIDER_COREML_WHOLE_MODEL_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_program.h"
#include "importer/graph.h"
#include "partitioner/plan.h"
#include "provider/coreml/port_options.h"

namespace anemone {

// A plan in which every unit on the engine has a MIL form. A node whose units have none is planned
// on the CPU, and listed in `no_form` with the reason.
struct MilPlan {
  Plan plan;
  std::map<NodeId, std::string> no_form;
  std::vector<std::string> notes;  // segments that the target refuses in their MIL form
};
absl::StatusOr<MilPlan> PlanForMil(const Model& model, PlanOptions options);

// The operators of nodes that the table of provider/coreml/node_writer.h does not have: of all
// nodes, or of those that `plan` leaves to the CPU; and of nodes in their bodies.
std::set<std::string> OperatorsWithoutRow(const Graph& graph, const Plan* plan);

struct WrittenModel {
  MilProgram program;
  std::vector<std::string> notes;  // what the user should know of its numbers
};

// Writes the program, and the weights to `blobs`. Its inputs are those of the model, in order; its
// outputs too, without those that become states. kUnimplemented, naming the node: MIL cannot say
// it.
absl::StatusOr<WrittenModel> WriteWholeModel(const Model& model, const Plan& plan,
                                             const PortWishes& wishes, const MilBlobSink& blobs);

// The ids of the file's nodes that are computed in fp16 if each is written by itself. The plan
// folds the others, or they need fp32.
std::set<std::string> HalfOrigins(const Model& model, const Plan& plan);

// The same for a model with free dimensions: each node by the table, in fp32 if it has no origin in
// `halves` (HalfOrigins() of a plan of the same file at some sizes). Sizes that depend on those of
// the inputs are computed in the program.
absl::StatusOr<WrittenModel> WriteFreeModel(const Model& model, const std::set<std::string>& halves,
                                            const PortWishes& wishes, const MilBlobSink& blobs);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_WHOLE_MODEL_H_
