// provider/compiled/patch.h: writes a compiled model with new weights.
//
//   ANEMONE_ASSIGN_OR_RETURN(Patched made, PatchModel("net.ane", weights, "new.ane"));
#ifndef ANEMONE_PROVIDER_COMPILED_PATCH_H_
#define ANEMONE_PROVIDER_COMPILED_PATCH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "importer/new_weights.h"
#include "provider/compiled/compile.h"

namespace anemone {

struct Patched {
  std::vector<std::string> changed;  // the names of the values that differ now
  bool planned_again = false;        // else as DeriveConstants() says (provider/weights)
  Compiled compiled;
};

// Writes a compiled model with new weights to the folder `output`. If that is `folder`, it is
// replaced in one step; else it must not exist, or be empty. On an error nothing is written.
// `given` has limits of the work; all else is as the model was compiled. Errors: those of
// Session::UpdateWeights() and CompiledModel::Open(); kUnimplemented: the model's file does not
// hold the elements of a weight as bytes.
absl::StatusOr<Patched> PatchModel(const std::string& folder, const NewWeights& weights,
                                   const std::string& output, const Settings& given = {});

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COMPILED_PATCH_H_
