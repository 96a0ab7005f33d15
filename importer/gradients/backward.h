// importer/gradients/backward.h: the gradients of a graph, as more nodes of the graph.
//
//   ANEMONE_RETURN_IF_ERROR(WriteTrainedForms(model, names, weight_names, evaluate));
//   ANEMONE_ASSIGN_OR_RETURN(auto gradients, WriteGradients(model, names, {{loss, one}}, weights));
//   const ValueId dw = gradients.at(weights[0]);
#ifndef ANEMONE_IMPORTER_GRADIENTS_BACKWARD_H_
#define ANEMONE_IMPORTER_GRADIENTS_BACKWARD_H_

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "importer/edit.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

// Replaces nodes between `weights` and the outputs by forms with a gradient: an operator without a
// gradient by the function that ONNX defines for it, and nodes whose weights the engine takes as
// constants only by others (importer/gradients/trained_forms.cc). Renumbers values; inputs and
// outputs keep their names. Errors: kInvalidArgument for a node without known sizes, and those of
// inference.
absl::Status WriteTrainedForms(Model& model, NameScope& names,
                               const std::vector<std::string>& weights, const Evaluator& evaluate);

// The derivatives of a number by `weights`, where `seeds` are its derivatives by values of the
// graph. A weight on which the seeds do not depend has none. Errors: kInvalidArgument for a node
// without a gradient; it names the node and the reason.
absl::StatusOr<std::map<ValueId, ValueId>> WriteGradients(Model& model, NameScope& names,
                                                          const std::map<ValueId, ValueId>& seeds,
                                                          const std::vector<ValueId>& weights);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_GRADIENTS_BACKWARD_H_
