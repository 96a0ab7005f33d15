// engine/formats/mil_program.h: a MIL program (the text format of the conversion route) as structs,
// and functions that write, read and compare it. Which units become which operations is decided in
// kernels/. A program as MIL text:
//
//   program(1.3)
//   [buildInfo = dict<string, string>({{"coremlc-version", "3505.4.1"}})]
//   {
//       func main<ios18>(tensor<fp16, [1, 4]> x) {
//           tensor<fp16, [1, 4]> y = relu(x = x)[name = string("y")];
//       } -> (y);
//   }
//
// Facts: netplist.md ("The other text: MIL"), orion.json. Limits: one function; texts have no
// nested blocks (those of cond), which are for the programs of packages.
#ifndef ANEMONE_ENGINE_FORMATS_MIL_PROGRAM_H_
#define ANEMONE_ENGINE_FORMATS_MIL_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/field.h"

namespace anemone {

// "tensor<fp16, [1, 4]>", or a scalar: "bool", "int32", "string".
struct MilType {
  std::string dtype;
  std::optional<std::vector<int64_t>> shape;  // nullopt for a scalar
  bool operator==(const MilType&) const = default;
};

// The position of a constant in a weights file: the offset of its chunk's header (mil_blobs.h).
struct MilBlob {
  std::string path;
  int64_t offset = 0;
  bool operator==(const MilBlob&) const = default;
};

// A constant. `data` is a number, bool or string; for a tensor, it is the array of its elements.
struct MilValue {
  MilType type;
  Json data;
  std::optional<MilBlob> blob;  // instead of `data`
  bool operator==(const MilValue&) const = default;
};

// An argument: the name of one value, or a list of names as in concat's `values = (a, b)`.
struct MilArgument {
  std::string name;
  std::vector<std::string> values;
  bool is_list = false;
};

struct MilOutput {
  MilType type;
  std::string name;
};

struct MilBlock;

struct MilStatement {
  std::vector<MilOutput> outputs;
  std::string op;
  std::vector<MilArgument> arguments;
  std::vector<std::pair<std::string, MilValue>>
      attributes;                // written in brackets: name; for a const also val
  std::vector<MilBlock> blocks;  // of cond: for true and for false

  // The value of the attribute, or null if there is none.
  const MilValue* attribute(absl::string_view name) const;
};

// Statements that read the variables of those before them, also outside of the block.
struct MilBlock {
  std::vector<MilStatement> statements;
  std::vector<std::string> outputs;
};

struct MilProgram {
  std::string version = "1.3";
  std::vector<std::pair<std::string, std::string>> build_info;
  std::string function = "main", opset = "ios18";
  std::vector<MilOutput> inputs;
  std::vector<MilStatement> statements;
  std::vector<std::string> outputs;
};

// The text of a program without nested blocks.
std::string WriteMil(const MilProgram& program);

// Parses a program. kInvalidArgument, with line and column, if the text is not such a program, or
// if a name is undefined or defined twice.
absl::StatusOr<MilProgram> ReadMil(absl::string_view text);

// Compares two programs, statement by statement. Names of ports must be equal; names of other
// values and buildInfo are ignored. kFailedPrecondition if they differ; the message says where
// first.
absl::Status CompareMil(const MilProgram& a, const MilProgram& b);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_PROGRAM_H_
