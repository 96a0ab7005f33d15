// provider/package/engine_format.h: the formats in which an engine segment can be written
// (netplist, MIL), and checks whether a network can be written in each.
#ifndef ANEMONE_PROVIDER_PACKAGE_ENGINE_FORMAT_H_
#define ANEMONE_PROVIDER_PACKAGE_ENGINE_FORMAT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/property_list.h"
#include "engine/network.h"
#include "engine/port_names.h"
#include "engine/target.h"

namespace anemone {

struct NetplistOptions {
  bool verified_only = false;  // use no form that is known only from decompiler listings
  PropertyListForm form = PropertyListForm::kXml;
};

// A note about one unit, or about the whole network if `unit` is empty.
struct UnitNote {
  std::string unit, type, why;
};

struct Unwritable {
  std::vector<UnitNote> missing;     // why the network cannot be written
  std::vector<UnitNote> unverified;  // units in forms that have not been seen to compile
};

struct EngineFormat {
  const char* name;
  Route route;  // the route for which the model is planned
  // Returns the network in the form in which it is written.
  absl::StatusOr<Network> (*prepare)(const Network&, const Target&);
  Unwritable (*judge)(const Network&, const Target&, const NetplistOptions&);
  // Writes to an existing folder. kUnimplemented: the network as a whole has no such form.
  absl::StatusOr<PortNames> (*save)(const Network&, const Target&, const NetplistOptions&,
                                    const std::string& folder);
  const char* suffix;  // of a segment's folder
  bool binds_by_name;  // ports bind in alphabetical order, not in the file's
};

// kInvalidArgument: there is no such format, or it does not have these options.
absl::StatusOr<const EngineFormat*> FindEngineFormat(absl::string_view name,
                                                     const NetplistOptions& options);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_ENGINE_FORMAT_H_
