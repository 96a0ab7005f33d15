// provider/coreml/metadata.h: what a package says of its model: author, version, license,
// descriptions. From the model's own metadata_props and doc_strings, or from the user.
//
//   ANEMONE_ASSIGN_OR_RETURN(ModelText text, ModelText::Of("net.onnx", {"author=us"}, {"x=RGB"}));
//   text.author;       // "us"
//   text.ports["x"];   // "RGB"
#ifndef ANEMONE_PROVIDER_COREML_METADATA_H_
#define ANEMONE_PROVIDER_COREML_METADATA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace anemone {

struct ModelText {
  std::string author, version, license, description;  // "" if nothing is known
  std::map<std::string, std::string> other;           // user-defined metadata, by key
  std::map<std::string, std::string> ports;           // by input or output

  // The text of the model in the file `path`, with the user's entries "KEY=TEXT" and "PORT=TEXT" in
  // place of its own. Text that is not UTF-8 gets replacement characters. UsageError: an entry has
  // another form, or a port that the model does not have. Errors of reading the file.
  static absl::StatusOr<ModelText> Of(const std::string& path,
                                      const std::vector<std::string>& metadata,
                                      const std::vector<std::string>& descriptions);
};

// With replacement characters for what is not UTF-8: a package holds no other text.
std::string Utf8Text(const std::string& text);

// UsageError: an entry has another form, is given twice, or has a key of Anemone's.
absl::Status CheckMetadata(const std::vector<std::string>& metadata,
                           const std::vector<std::string>& descriptions);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_METADATA_H_
