// provider/convert/convert.h: a model as files of the engine's own formats: a folder for each
// engine segment, an ONNX model for each CPU segment, and manifest.json, which says how they
// connect (docs/formats/conversion.md).
//
//   ASSIGN_OR_RETURN(Json manifest, Convert("net.onnx", "out", {{.target = "m1"}, "mil"}));
#ifndef ANEMONE_PROVIDER_CONVERT_CONVERT_H_
#define ANEMONE_PROVIDER_CONVERT_CONVERT_H_

#include <string>

#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "engine/field.h"
#include "provider/package/engine_format.h"

namespace anemone {

struct ConvertOptions {
  Settings settings;            // its route is that of the format
  std::string to = "netplist";  // or "mil"
  NetplistOptions netplist;
};

// Writes into `folder`, which must not be there or be empty: all of it, or nothing. The manifest is
// returned too. A segment that cannot be written has "written": false and its reasons; it is no
// error. Errors: those of importing and planning; kInvalidArgument (no such format, an option of
// another); kAlreadyExists (the folder has files);
// kPermissionDenied (it cannot be written).
absl::StatusOr<Json> Convert(const std::string& model, const std::string& folder,
                             const ConvertOptions& options);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CONVERT_CONVERT_H_
