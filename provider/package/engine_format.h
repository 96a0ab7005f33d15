// provider/package/engine_format.h: the formats in which an engine segment can be written.
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
  bool verified_only = false;  // no form that rests on a listing alone
  PropertyListForm form = PropertyListForm::kXml;
};

// Of one unit; of the whole network if it names none.
struct UnitNote {
  std::string unit, type, why;
};

struct Unwritable {
  std::vector<UnitNote> missing;     // what keeps the network from being written
  std::vector<UnitNote> unverified;  // in forms that nobody was seen to compile
};

struct EngineFormat {
  const char* name;
  Route route;  // on which it is planned
  // The network as it is written.
  absl::StatusOr<Network> (*prepare)(const Network&, const Target&);
  Unwritable (*judge)(const Network&, const Target&, const NetplistOptions&);
  // Into a folder that is there. kUnimplemented: the network as a whole has no such form.
  absl::StatusOr<PortNames> (*save)(const Network&, const NetplistOptions&,
                                    const std::string& folder);
  bool binds_by_name;  // ports bind in alphabetical order, not in the file's
};

// kInvalidArgument: no such format, or options that it has not.
absl::StatusOr<const EngineFormat*> FindEngineFormat(absl::string_view name,
                                                     const NetplistOptions& options);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_ENGINE_FORMAT_H_
