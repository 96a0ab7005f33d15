// engine/formats/mil_program.h: a program in MIL, the conversion route's text, as data: written,
// read back and compared. Which units become which operations is not known here (kernels/).
//
//   program(1.3)
//   [buildInfo = dict<string, string>({{"coremlc-version", "3505.4.1"}})]
//   {
//       func main<ios18>(tensor<fp16, [1, 4]> x) {
//           tensor<fp16, [1, 4]> y = relu(x = x)[name = string("y")];
//       } -> (y);
//   }
//
// Facts: netplist.md ("The other text: MIL"), orion.json. What it cannot hold: several functions
// that call each other, and nested blocks (cond, while_loop).
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
  std::optional<std::vector<int64_t>> shape;  // none: a scalar
  bool operator==(const MilType&) const = default;
};

// Where in a weights file a constant stands: the offset of its chunk's header (mil_blobs.h).
struct MilBlob {
  std::string path;
  int64_t offset = 0;
  bool operator==(const MilBlob&) const = default;
};

// A constant: `data` is a number, bool or string, for a tensor the array of its elements in order.
struct MilValue {
  MilType type;
  Json data;
  std::optional<MilBlob> blob;  // instead of `data`
  bool operator==(const MilValue&) const = default;
};

// Names of values: one, or several for an argument such as concat's `values = (a, b)`.
struct MilArgument {
  std::string name;
  std::vector<std::string> values;
  bool is_list = false;
};

struct MilOutput {
  MilType type;
  std::string name;
};

struct MilStatement {
  std::vector<MilOutput> outputs;
  std::string op;
  std::vector<MilArgument> arguments;
  std::vector<std::pair<std::string, MilValue>>
      attributes;  // in brackets: name, and val of a const

  // The attribute's value; null if there is none.
  const MilValue* attribute(absl::string_view name) const;
};

struct MilProgram {
  std::string version = "1.3";
  std::vector<std::pair<std::string, std::string>> build_info;
  std::string function = "main", opset = "ios18";
  std::vector<MilOutput> inputs;
  std::vector<MilStatement> statements;
  std::vector<std::string> outputs;
};

std::string WriteMil(const MilProgram& program);

// kInvalidArgument, with line and column: text that is no such program, an undefined or twice
// defined name, nesting deeper than 32.
absl::StatusOr<MilProgram> ReadMil(absl::string_view text);

// Whether the two compute the same in the same order: names of ports are compared, those between
// are not, nor is buildInfo. The error says where they first differ.
absl::Status CompareMil(const MilProgram& a, const MilProgram& b);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_PROGRAM_H_
