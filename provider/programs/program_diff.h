// provider/programs/program_diff.h: what differs between two programs of one format: operations
// that were added, removed or changed, with the attribute, shape or weights that changed.
//
//   ANEMONE_ASSIGN_OR_RETURN(const ProgramDiff diff, DiffPrograms("old.mil", "new.mil"));
//   if (!diff.equal()) std::cout << ProgramDiffText(diff, 80, /*every_item=*/false);
//
// Operations are matched by name and type; then by what they are; then by what they read; then by
// name alone. Names of operations and their order are no difference, names of ports are. Ports, and
// facts of the whole program such as its opset, are compared in the same way.
#ifndef ANEMONE_PROVIDER_PROGRAMS_PROGRAM_DIFF_H_
#define ANEMONE_PROVIDER_PROGRAMS_PROGRAM_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/json.h"
#include "provider/programs/program_list.h"

namespace anemone {

struct ProgramDiff {
  struct Side {
    std::string path, target;  // target: "" if the format does not name one
    int64_t operations = 0;
  };
  struct Item {
    std::string name, type;
  };
  struct Change {
    std::string key;       // "output", "weight", "pads"
    std::string from, to;  // "": it is not there
  };
  struct Changed {
    Item a, b;
    std::vector<Change> changes;
  };

  ProgramKind kind = ProgramKind::kMil;
  Side a, b;
  std::vector<Changed> changed;
  std::vector<Item> added, removed;  // only in b, only in a
  bool related = true;               // false: the programs have no operation in common
  bool equal() const { return changed.empty() && added.empty() && removed.empty(); }
};

// Errors: those of ListProgram; a UsageError if the files are not two programs of one format.
absl::StatusOr<ProgramDiff> DiffPrograms(const std::string& a, const std::string& b);

// The document of `anemone diff --json` (docs/schemas/diff.json).
Json ProgramDiffJson(const ProgramDiff& diff);
// At most ten items of each list, or every item.
std::string ProgramDiffText(const ProgramDiff& diff, int width, bool every_item);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PROGRAMS_PROGRAM_DIFF_H_
