// The flags of `anemone compile` and `anemone patch` that name their files.
#include "tools/command/flag_values.h"
#include "tools/command/flags.h"

namespace anemone {
namespace {

const Flag kPackageFlags[] = {
    {.name = "output",
     .value = "DIR",
     .commands = kPatch,
     .brief = "The folder to write.",
     .help = "It must not exist, or be empty. Default: PACKAGE itself, which is replaced in one "
             "step.",
     .store = KeepText<&Options::output>,
     .letter = "o"},
    {.name = "weights",
     .value = "FILE",
     .commands = kPatch,
     .brief = "The new weights: a .safetensors, .npz or .onnx file.",
     .help = "Names, types and shapes are those of the initializers in the model's file. Others "
             "keep their values.",
     .store = KeepText<&Options::weights>},
    {.name = "output",
     .value = "DIR",
     .commands = kCompile,
     .brief = "The folder to write; with --compress FILE.onnx, the model.",
     .help = "The folder must not exist, or be empty. An existing file is replaced at the end, if "
             "everything succeeded.",
     .store = KeepText<&Options::output>,
     .letter = "o"},
    {.name = "verbose",
     .value = nullptr,
     .commands = kPatch,
     .brief = "List the weights that changed.",
     .help = "",
     .store = Set<&Options::verbose, true>,
     .letter = "v"},
};

}  // namespace

absl::Span<const Flag> PackageFlags() { return kPackageFlags; }

}  // namespace anemone
