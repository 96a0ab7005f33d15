// engine/formats/netplist_folder.h: saves and loads a netplist as a folder of files: net.plist,
// weights.0 (empty) and weights.1.
#ifndef ANEMONE_ENGINE_FORMATS_NETPLIST_FOLDER_H_
#define ANEMONE_ENGINE_FORMATS_NETPLIST_FOLDER_H_

#include <string>

#include "absl/status/status.h"
#include "engine/formats/netplist.h"
#include "engine/formats/property_list.h"

namespace anemone {

// Writes the files into `folder`, which must exist. Errors: kUnimplemented (WriteNetplist),
// kPermissionDenied (a file cannot be written).
absl::StatusOr<PortNames> SaveNetplist(const Network& network, FormStatus least,
                                       PropertyListForm form, const std::string& folder);

// Appends the netplist of a list file, whose weights are beside it, to `c`, unit by unit as they
// are in the file. The weights are views of the mapped files. Errors: those of ReadNetplist, of
// reading the list, and of MapFileBelow for the weights (base/real_file.h).
absl::Status ReadNetplistFile(const std::string& path,
                              const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c);
// The same of the net.plist in a folder, which is read by MapFileBelow too.
absl::Status ReadNetplistFolder(const std::string& folder,
                                const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c);

// Appends the netplist of a folder to `c`, and then calls c.CleanUp(), which folds biases again.
// Errors: those of ReadNetplistFile; each message begins with the folder.
absl::Status LoadNetplist(const std::string& folder,
                          const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETPLIST_FOLDER_H_
