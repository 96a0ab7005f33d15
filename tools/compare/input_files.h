// tools/compare/input_files.h: the --input files of a command line: the input that each is for, and
// the sizes that they give to free dimensions.
#ifndef ANEMONE_TOOLS_COMPARE_INPUT_FILES_H_
#define ANEMONE_TOOLS_COMPARE_INPUT_FILES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "tools/command/options.h"

namespace anemone {

struct InputNames {
  std::vector<std::string> inputs;
  std::vector<std::string> constants;  // Session::ConstantInputs()
};
InputNames NamesOf(const std::vector<PortInfo>& ports, const std::vector<std::string>& constants);

// "the model has no such input; it has 'image', 'mask'": nearest first, some of many. Or that it is
// a constant.
std::string NoSuchInput(const std::string& name, const InputNames& names);

// The file for each input, of `names`. "NAME=FILE" is split after the longest name that fits, since
// a name may contain '='. kInvalidArgument: no such input, or two files for one.
absl::StatusOr<std::map<std::string, std::string>> InputFiles(const Options& options,
                                                              const InputNames& names);

// Reads the headers of the --input files before the model is loaded, and binds the free dimensions
// of their inputs to the arrays' sizes, as --shape would. For a dimension with --bucket the size is
// that of random inputs. Errors: those of the files; kInvalidArgument: an array does not have the
// type or shape that the model declares, or --dim or --shape gives another size.
absl::Status BindToFiles(Options& options);

// `ports` are the inputs of a session with these options, `constants` its ConstantInputs().
// kInvalidArgument, with options that bind it: a dimension of an input without a file has no size,
// so that random values cannot be made.
absl::Status RequireSizes(const std::vector<PortInfo>& ports,
                          const std::vector<std::string>& constants, const Options& options);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMPARE_INPUT_FILES_H_
