// provider/convert/convert.h: writes a model in Apple's formats: a folder for each engine segment,
// an ONNX model for each CPU segment, and manifest.json, which says how they are connected
// (docs/formats/conversion.md). Or writes the whole model as one Core ML package (docs/coreml.md).
//
//   ANEMONE_ASSIGN_OR_RETURN(Json manifest,
//                            Convert("net.onnx", "out", {{.target = "m1"}, "mil"}));
#ifndef ANEMONE_PROVIDER_CONVERT_CONVERT_H_
#define ANEMONE_PROVIDER_CONVERT_CONVERT_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "engine/field.h"
#include "importer/graph.h"
#include "partitioner/plan.h"
#include "provider/package/engine_format.h"

namespace anemone {

struct ConvertOptions {
  Settings settings;            // `route` is ignored: the format determines it
  std::string to = "netplist";  // or "mil", or "mlpackage" (provider/coreml/package.h)
  NetplistOptions netplist;
  std::string minimum_os;  // of a Core ML package: "ios16"; "": the oldest that can run it
  // Of a Core ML package (provider/coreml/port_options.h): "x:scale=0.5,bias=-1", "past=present".
  std::vector<std::string> image_inputs, states;
  // "author=us", other keys are user-defined; "x=an RGB image" (provider/coreml/metadata.h).
  std::vector<std::string> metadata, descriptions;
  bool segments = false;  // a package for each engine segment instead, and a manifest
  // Called before anything is written; an error ends the conversion. May be null.
  std::function<absl::Status(const Model&, const Plan&)> accept;
};

// kInvalidArgument: there is no such format, or it does not have one of the options.
absl::Status CheckConvertOptions(const ConvertOptions& options);

// Writes to `folder`, which must not exist or must be empty. Writes everything or, on error,
// nothing. Returns the manifest. A segment that cannot be written is not an error: its entry has
// "written": false and the reasons. Errors: those of importing and planning; kInvalidArgument (an
// unknown format, or an option of another format); kAlreadyExists (the folder has files);
// kPermissionDenied (the folder cannot be written).
absl::StatusOr<Json> Convert(const std::string& model, const std::string& folder,
                             const ConvertOptions& options);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_CONVERT_CONVERT_H_
