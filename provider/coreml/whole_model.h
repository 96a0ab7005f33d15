// provider/coreml/whole_model.h: a planned model as one MIL program. Engine segments are written
// by the MIL forms of their units, so that what the engine accepts stays together; the other nodes
// by the table of provider/coreml/node_writer.h.
#ifndef ANEMONE_PROVIDER_COREML_WHOLE_MODEL_H_
#define ANEMONE_PROVIDER_COREML_WHOLE_MODEL_H_

#include <map>
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

// Writes the program, and the weights to `blobs`. Its inputs are those of the model, in order; its
// outputs too, without those that become states. kUnimplemented, naming the node: MIL cannot say
// it.
absl::StatusOr<MilProgram> WriteWholeModel(const Model& model, const Plan& plan,
                                           const PortWishes& wishes, const MilBlobSink& blobs);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_WHOLE_MODEL_H_
