// provider/programs/program_list.h: a program in one of the engine's formats as a list of its
// operations, so that two programs can be compared (program_diff.h).
//
//   ANEMONE_ASSIGN_OR_RETURN(const ProgramList list, ListProgram("net.mil", ProgramKind::kMil));
//   std::cout << list.items[2].type;             // "conv"
//   std::cout << list.items[2].facts[0].second;  // "fp16 [1, 8, 6, 6]"
//
// Ports, and what is true of the whole program, are items of the list too.
#ifndef ANEMONE_PROVIDER_PROGRAMS_PROGRAM_LIST_H_
#define ANEMONE_PROVIDER_PROGRAMS_PROGRAM_LIST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace anemone {

enum class ProgramKind : uint8_t { kMil, kNetplist, kCoreMl, kPackage };
absl::string_view ProgramKindName(ProgramKind kind);  // "mil", "netplist", "mlpackage", "package"
absl::string_view ProgramKindText(ProgramKind kind);  // "MIL program", "netplist", ...

// An item of a list.
struct ListedOperation {
  // Reads the output with this number of an earlier item.
  struct Read {
    std::string argument;
    int item = 0, output = 0;
  };

  std::string name;  // unique in the list
  std::string type;  // "conv"; "input", "output" of a port; "program"
  // What defines it, besides what it reads: "output" (type and shape), attributes, constants. A
  // constant that is not small is told by type, shape and hash: "fp16 [8, 3, 3, 3] #9a51c03b...".
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<Read> reads;
  bool is_operation = true;  // false: of a port, or of the whole program
};

struct ProgramList {
  std::string path;
  ProgramKind kind = ProgramKind::kMil;
  std::string target;  // "" if the format does not name one
  std::vector<ListedOperation> items;

  int64_t operations() const;
};

// What is at `path`, as far as its name and its first bytes tell; nullopt: not a program. A MIL
// program is a file *.mil or a folder with model.mil, a netplist a file *.plist or a folder with
// net.plist, a Core ML package a folder with Manifest.json.
std::optional<ProgramKind> KindOfProgram(const std::string& path);

// Reads the program at `path`, with all its weights. Errors: kInvalidArgument (not such a program),
// kUnimplemented (a form that is not read), those of MappedFile::Open, of ReadNetplist and of
// OpenPackage. Each message names the file.
absl::StatusOr<ProgramList> ListProgram(const std::string& path, ProgramKind kind);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PROGRAMS_PROGRAM_LIST_H_
