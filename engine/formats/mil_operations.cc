#include "engine/formats/mil_operations.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

constexpr int kIos18 = 3;

using VersionIndex = std::map<std::string, std::vector<const MilVersion*>, std::less<>>;

// The versions of each operation, the oldest first.
const VersionIndex& Versions() {
  static const VersionIndex& index = *[] {
    auto* made = new VersionIndex;
    for (const MilVersion& version : MilVersions()) (*made)[version.op].push_back(&version);
    return made;
  }();
  return index;
}

bool Takes(const MilVersion& version, const MilStatement& statement) {
  auto takes = [&](const std::string& name) {
    return std::find(version.arguments.begin(), version.arguments.end(), name) !=
           version.arguments.end();
  };
  return std::all_of(statement.arguments.begin(), statement.arguments.end(),
                     [&](const MilArgument& argument) { return takes(argument.name); }) &&
         std::all_of(statement.attributes.begin(), statement.attributes.end(),
                     [&](const auto& attribute) {
                       return attribute.first == "name" || takes(attribute.first);
                     });
}

// The first opset that has values of the type (coremltools, types of the operations' versions): the
// integers of 8 and 16 bits came with iOS 17, those below with iOS 18. `constexpr_` operations
// read bytes from iOS 16 on.
int OpsetOfType(absl::string_view dtype, bool is_constant) {
  if (dtype == "int4" || dtype == "uint4" || dtype == "uint1") return kIos18;
  if (is_constant && (dtype == "uint8" || dtype == "int8")) return 1;
  const bool is_short =
      dtype == "uint8" || dtype == "int8" || dtype == "uint16" || dtype == "int16";
  return is_short ? 2 : 0;
}

absl::StatusOr<int> OpsetOf(const MilStatement& statement) {
  const auto found = Versions().find(statement.op);
  if (found == Versions().end()) {
    return absl::UnimplementedError(
        absl::StrCat("Core ML does not have the operation '", statement.op, "'"));
  }
  const bool is_constant = statement.op == "const";
  // Before iOS 18, the tensors of these are attributes (mil_weights.h).
  const bool is_new = absl::StartsWith(statement.op, "constexpr_") && !statement.arguments.empty();
  for (const MilVersion* version : found->second) {
    if (!is_constant && !Takes(*version, statement)) continue;
    int opset = is_new ? std::max(version->opset, kIos18) : version->opset;
    for (const MilOutput& output : statement.outputs) {
      opset = std::max(opset, OpsetOfType(output.type.dtype, is_constant));
    }
    return opset;
  }
  return absl::UnimplementedError(absl::StrCat(
      "Core ML's operation '", statement.op, "' does not have all of the arguments ",
      absl::StrJoin(statement.arguments, ", ", [](std::string* out, const MilArgument& argument) {
        absl::StrAppend(out, argument.name);
      })));
}

}  // namespace

absl::StatusOr<int> FindMilOpset(absl::string_view name) {
  const std::string wanted = absl::AsciiStrToLower(name);
  std::vector<std::string> known;
  for (size_t i = 0; i < MilOpsets().size(); ++i) {
    for (const std::string& of : MilOpsets()[i].names) {
      if (of == wanted) return static_cast<int>(i);
      known.push_back(of);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("minimum OS '", name, "': want ", absl::StrJoin(known, ", ")));
}

absl::StatusOr<int> OldestOpset(absl::Span<const MilStatement> statements) {
  int oldest = 0;
  for (const MilStatement& statement : statements) {
    ANEMONE_ASSIGN_OR_RETURN(const int opset, OpsetOf(statement));
    oldest = std::max(oldest, opset);
    for (const MilBlock& block : statement.blocks) {
      ANEMONE_ASSIGN_OR_RETURN(const int of_block, OldestOpset(block.statements));
      oldest = std::max(oldest, of_block);
    }
  }
  return oldest;
}

}  // namespace anemone
