// provider/programs/list_parts.h: shared by the readers of provider/programs, one for each format.
#ifndef ANEMONE_PROVIDER_PROGRAMS_LIST_PARTS_H_
#define ANEMONE_PROVIDER_PROGRAMS_LIST_PARTS_H_

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "provider/programs/program_list.h"

namespace anemone {

inline constexpr size_t kLongestProgram = size_t{1} << 28;  // bytes, without the weights

// A constant with at most this many elements is shown; of a longer one, its hash.
inline constexpr int kShownElements = 16;

// "#" and 16 digits: equal texts mean equal bytes.
std::string HashText(absl::Span<const std::byte> bytes);
std::string HashText(absl::string_view bytes);

// A statement of MIL, as text and as Core ML's Protobuf message have it. Texts of values are those
// of ListedOperation::facts.
struct MilItem {
  struct Argument {
    std::string name;
    std::vector<std::string> values;
  };

  std::string op;
  std::vector<std::pair<std::string, std::string>> outputs;  // name, type
  std::vector<Argument> arguments;                           // in the order of their names
  std::vector<std::pair<std::string, std::string>> attributes;
};

// Builds the list of a MIL program. Constants become facts of the operations that read them, so
// their names do not matter.
class MilLister {
 public:
  explicit MilLister(ProgramList& list) : list_(list) {}

  // Begins a function: its values have names of their own. `scope` is put before the names of its
  // items, for example "main/".
  void Begin(std::string scope);
  // A port of the function (`what` is "input" or "output"), or of a block in it ("block input").
  void AddInput(const std::string& what, const std::string& name, std::string type);
  // kInvalidArgument: it reads a value that is not defined before.
  absl::Status AddOutput(const std::string& what, const std::string& name);
  absl::Status Add(MilItem item);

 private:
  struct Value {
    int item = -1;  // -1: a constant
    int output = 0;
    std::string constant;
  };

  ListedOperation& Append(const std::string& name, std::string type, bool is_operation);
  absl::Status AddRead(const std::string& argument, const std::string& value, ListedOperation& to);

  ProgramList& list_;
  std::string scope_;
  std::map<std::string, Value> values_;
  std::map<std::string, int> names_;  // of items, and how often each was given
};

// The readers. Errors are without the path.
absl::Status ListMil(const std::string& path, ProgramList& list);
absl::Status ListNetplist(const std::string& path, ProgramList& list);
absl::Status ListCoreMl(const std::string& path, ProgramList& list);
absl::Status ListPackage(const std::string& path, ProgramList& list);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PROGRAMS_LIST_PARTS_H_
