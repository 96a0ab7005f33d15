// engine/formats/mil_operations.h: the opsets of Core ML, and from which of them each MIL operation
// exists.
//
//   ANEMONE_ASSIGN_OR_RETURN(int opset, OldestOpset(mil_program.statements));
//   std::cout << MilOpsets()[opset].names[0];  // "ios17"
//
// Facts: engine/tables/mil_operations.json, from the registry of coremltools. Opsets are numbers
// that index MilOpsets(), the oldest first.
#ifndef ANEMONE_ENGINE_FORMATS_MIL_OPERATIONS_H_
#define ANEMONE_ENGINE_FORMATS_MIL_OPERATIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/formats/mil_program.h"

namespace anemone {

struct MilOpset {
  std::vector<std::string> names;  // "ios15", "macos12"
  std::string function;            // the opset's name in a package: "CoreML5"
  int specification = 0;           // the version of the package's model
};
absl::Span<const MilOpset> MilOpsets();

// A version of an operation: its arguments from `opset` on.
struct MilVersion {
  std::string op;
  int opset = 0;
  std::vector<std::string> arguments;
};
absl::Span<const MilVersion> MilVersions();

// The number of the opset with this name, in any case. kInvalidArgument: there is none.
absl::StatusOr<int> FindMilOpset(absl::string_view name);

// The oldest opset that has all statements, with their arguments, types and blocks.
// kUnimplemented: Core ML does not have an operation, or not with an argument; the message says
// which.
absl::StatusOr<int> OldestOpset(absl::Span<const MilStatement> statements);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_OPERATIONS_H_
