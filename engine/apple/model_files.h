// engine/apple/model_files.h: a network as the files that the framework compiles: net.plist and its
// weights, or a MIL text and its weights.
#ifndef ANEMONE_ENGINE_APPLE_MODEL_FILES_H_
#define ANEMONE_ENGINE_APPLE_MODEL_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mapped_file.h"
#include "engine/network.h"
#include "engine/port_names.h"
#include "engine/target.h"
#include "engine/verdict.h"

namespace anemone::apple {

struct ModelFiles {
  struct Weights {
    std::string name;                        // its key in the dictionary of weights
    std::string path;                        // in the model's folder
    std::shared_ptr<const MappedFile> file;  // null: the file is empty

    absl::string_view bytes() const { return file == nullptr ? "" : file->text(); }
  };

  bool is_mil = false;
  std::string text_name;  // net.plist or model.mil
  std::string text;       // differs from that of a model with other weights: it names their hash
  std::string weights_hash;
  std::vector<Weights> weights;
  PortNames ports;
  std::string key;  // of text and weights

  // A hash of the text without that of the weights: models with the same form differ only in their
  // weights.
  std::string FormKey() const;
  // Makes the text, and so the model's identifier and folder, different from those of equal models.
  void MakeUnique(int number);
};

// Writes the network for the route. On route netplist, units whose netplist form has been seen to
// compile are preferred: if one has another form, the network is written as MIL if it can be, and
// else with forms that only listings name. kUnimplemented: neither can hold the network; the
// message names the unit. If `judges`, also if the target refuses the form in which it would be
// written.
absl::StatusOr<ModelFiles> WriteModelFiles(const Network& network, const Target& target,
                                           Route route, bool judges = true);

}  // namespace anemone::apple

#endif  // ANEMONE_ENGINE_APPLE_MODEL_FILES_H_
