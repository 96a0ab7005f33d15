// provider/weights/derived_parts.h: weights from which import or lowerings compute constants, such
// as those of normalizations. For new values only the nodes that read them are imported and lowered
// again, as a part of the model. Its units take the place of those of the plan that have their
// names, parameters and sizes.
#ifndef ANEMONE_PROVIDER_WEIGHTS_DERIVED_PARTS_H_
#define ANEMONE_PROVIDER_WEIGHTS_DERIVED_PARTS_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/device.h"
#include "importer/importer.h"
#include "importer/new_weights.h"
#include "partitioner/plan.h"
#include "provider/load_setup.h"
#include "provider/weights/weight_places.h"

namespace anemone {

// Imports the model, or a part of it, with the new weights.
struct PartImporter {
  std::function<absl::StatusOr<Model>(const ModelPart*)> import;  // null: all
  PlanOptions planning;
};
// Of the model as it is imported with these options. Parts are those of `as_read`; if it is null,
// the model is read into it. Borrows `setup` and `as_read`.
PartImporter PartImporterOf(const LoadSetup& setup, const ImportOptions& importing,
                            std::shared_ptr<const Model>& as_read);

// What is known of the weights that `plain` does not have. Each part is proven: by itself it gives
// the constants of the plan, which still has its networks' tensors. `as_read` is that of
// ImportOptions.
DerivedWeights FindDerivedWeights(const Graph& as_read, const Model& model, const Plan& plan,
                                  const WeightPlaces& plain, const PartImporter& importer);

// Whether the plan has the units of each part, and no other units read their constants.
bool HasUnitsOf(const Plan& plan, const std::vector<DerivedPart>& parts);

// What follows from new values of weights that are not plain.
struct DerivedConstants {
  std::map<int, NewConstants> of_units;  // by segment of the plan
  std::set<std::string> tables;          // weights of which CPU segments read rows
};
// `changed` has plain weights too. Nullopt: a plain weight does not fit in its place, another is
// neither in a part nor a table, the parts cannot be planned, a unit differs in more than the
// elements of constants, or other nodes may be refused. Runs in the arena of the caller.
std::optional<DerivedConstants> DeriveConstants(const NewWeights& changed,
                                                const WeightPlaces& places,
                                                const PartImporter& importer, const Plan& plan);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHTS_DERIVED_PARTS_H_
