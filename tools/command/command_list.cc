// Every command: its arguments and its help.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/near_names.h"
#include "kernels/lowering.h"
#include "kernels/mil.h"
#include "tools/command/commands.h"
#include "tools/command/flags.h"

namespace anemone {
namespace {

std::vector<std::string> ShellNames() { return {"bash", "zsh", "fish"}; }

std::vector<std::string> OperationAndUnitNames() {
  std::vector<std::string> names = UnitTypes();
  for (const KernelRows& rows : AllKernelRows()) {
    for (const MilOperation& row : rows.operations) names.emplace_back(row.op);
  }
  return names;
}

const Command kCommands[] = {
    {.name = "check",
     .bit = kCheck,
     .arguments = "MODEL...",
     .min_arguments = 1,
     .max_arguments = 1 << 20,
     .brief = "Say where every node of a model would run, and why.",
     .help = "Plans each model for each target and prints the share of nodes and MACs on the "
             "engine, the segments, and the top reasons for the rest. Nothing is run. A node that "
             "the engine refuses is an answer, not an error.",
     .example = "check net.onnx --target m1,m4",
     .run = CheckCommand},
    {.name = "run",
     .bit = kRun,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Run a model, and compare it with ONNX Runtime.",
     .help =
         "Plans, compiles and runs one model: engine segments on the software engine, the rest "
         "on ONNX Runtime's CPU provider. Inputs that are not given are random: floats uniform "
         "in 0..1, integers 0 or 1. The result is printed first, then the plan in one line (-v: "
         "all of it, with warnings) and times, which are of the software engine on this "
         "machine's CPU; -q prints the result alone. With --bucket, --dim NAME=N is the size of "
         "random inputs; "
         "the default is the smallest bucket.",
     .example = "run net.onnx --target m1 --compare",
     .run = RunCommand},
    {.name = "confirm",
     .bit = kConfirm,
     .arguments = "OPERATION",
     .min_arguments = 0,
     .max_arguments = 1,
     .brief = "Ask whether targets accept one operation.",
     .help =
         "Builds the graph of one operation, compiles it, and prints each target's verdict with "
         "the layer that refuses it and its message. OPERATION is a MIL operation (softmax, conv), "
         "asked on both routes unless --route is given, or a Type of the netplist (Softmax, Conv), "
         "on the netplist route. `anemone units` lists them with their keys. Rewrites are off; "
         "--rewrites turns them on.",
     .example = "confirm softmax --input 1x8x16x16",
     .run = ConfirmCommand,
     .choices = OperationAndUnitNames},
    {.name = "targets",
     .bit = kTargets,
     .arguments = "",
     .min_arguments = 0,
     .max_arguments = 0,
     .brief = "List the targets and what is known about each, with sources.",
     .help = "One line for each compile target; --json has every limit and capability, with its "
             "source.",
     .run = TargetsCommand},
    {.name = "units",
     .bit = kUnits,
     .arguments = "[TYPE...]",
     .min_arguments = 0,
     .max_arguments = 1 << 20,
     .brief = "List the engine's units: keys, operands, operations and rules.",
     .help = "Without a TYPE, all of them. --json has the MIL operations and ONNX operators that "
             "become "
             "each, and every rule.",
     .example = "units Softmax",
     .run = UnitsCommand,
     .choices = UnitTypes},
    {.name = "convert",
     .bit = kConvert,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Write a model in the engine's own formats, or as a Core ML package.",
     .help = "Plans the model and writes a folder for each engine segment (net.plist and weights), "
             "an ONNX model for each CPU segment, and manifest.json, which says how they connect. "
             "A segment that cannot be written is named with its reason, and the exit code is 1. "
             "With --to mlpackage, the whole model becomes one Core ML package instead.",
     .example = "convert net.onnx --target m1 -o net.ane",
     .run = ConvertCommand},
    {.name = "compile",
     .bit = kCompile,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Write a model that loads without planning, or one with compressed weights.",
     .help =
         "Writes a folder with the model and its plan for one target, which `run`, Session and "
         "`patch` take as a model. With --compress, compresses the constant weights of products "
         "and convolutions instead, runs the result here and the original on ONNX Runtime, and "
         "leaves weights out, those first that cost most accuracy for what they save, until "
         "--tolerance holds. That file is plain ONNX, which ONNX Runtime loads too: quantized "
         "integers, tables and sparse initializers. If the tolerance cannot be met nothing is "
         "written, and the exit code is 3.",
     .example = "compile net.onnx --target m1 -o net.compiled",
     .run = CompileCommand},
    {.name = "patch",
     .bit = kPatch,
     .arguments = "PACKAGE",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Put new weights into a compiled model.",
     .help = "PACKAGE is a folder that `compile` wrote. Weights that the program holds as they are "
             "in the model's file are replaced; from others the constants that were computed from "
             "them are computed again, and the plan must stay the same. A wrong name, type or "
             "shape is an error, and nothing is changed: docs/weights.md.",
     .example = "patch net.compiled --weights new.npz",
     .run = PatchCommand},
    {.name = "bench",
     .bit = kBench,
     .arguments = "MODEL...",
     .min_arguments = 1,
     .max_arguments = 1 << 20,
     .brief = "Measure a model against ONNX Runtime, as ratios.",
     .help = "Runs each model on Anemone and on ONNX Runtime's CPU provider alternately in one "
             "process, with ONNX Runtime's threads not spinning, and prints load, first run, "
             "latency percentiles and peak memory as ratios. Times are of the software engine on "
             "this machine's CPU, not of the Neural Engine. Each model has a process of its own.",
     .example = "bench net.onnx --target m1",
     .run = BenchCommand},
    {.name = "generate",
     .bit = kGenerate,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Continue tokens with a language model.",
     .help =
         "Runs a decoder with a cache of keys and values (past_key_values and present) on the "
         "prompt, and prints each token as it is chosen. The cache stays on the engine, and a "
         "token costs no new plan where that is proven to be right: docs/state.md. Prompts run in "
         "parts of 32 to 1,024 tokens.",
     .example = "generate decoder.onnx --tokens 1,15043,29892 --max-new 20",
     .run = GenerateCommand},
    {.name = "diff",
     .bit = kDiff,
     .arguments = "A [B]",
     .min_arguments = 1,
     .max_arguments = 2,
     .brief = "Compare the plans of two models, or of one model on two targets, or two programs.",
     .help =
         "A and B are models, or documents of `check --json` with one model. Prints which nodes "
         "moved between engine and CPU and why, which were added or removed, and what changed "
         "in segments, MACs and estimated time. Nodes of one model are matched by their ids, "
         "those of two models by name and operator, in order. With two targets, A is planned for "
         "the first and B for the second; B may be left out. A and B may also be two programs of "
         "one "
         "kind: MIL texts (*.mil, or a folder with model.mil), netplists (*.plist, or a folder "
         "with net.plist), Core ML packages, or packages of Anemone. Then it prints which "
         "operations were added, removed or changed, and which attribute, shape or weights "
         "changed; weights are compared by a hash of their bytes. The exit code is 0 if the two "
         "are equal and 3 if they differ.",
     .run = DiffCommand},
    {.name = "zoo",
     .bit = kZoo,
     .arguments = "SOURCE...",
     .min_arguments = 1,
     .max_arguments = 1 << 20,
     .brief = "Check many models, and write a table of the results.",
     .help =
         "A SOURCE is a model, a folder that is searched for *.onnx, or a manifest (a .json file "
         "in the form of models/manifest.json). Each model is checked in a process of its own: a "
         "crash, a "
         "hang or exhausted memory is a result. The folder gets results.jsonl, a line for each "
         "finished model, and index.html, a table with a page for each model and each reason. If "
         "the command is interrupted and started again, it goes on. The exit code is 1 if a model "
         "failed.",
     .run = ZooCommand},
    {.name = "report",
     .bit = kReport,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Write a page about a model: what to change, its graph, where time goes.",
     .help = "One HTML file that needs no other file and no network: a ranked list of what to "
             "change in the model with what each change would bring, the graph with its segments, "
             "where time and bytes go, the targets side by side, and warnings. Click a node to see "
             "its verdict on each target. Nothing is run.",
     .example = "report net.onnx --target m1,m4 -o net.html",
     .run = ReportCommand},
    {.name = "train",
     .bit = kTrain,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Train a model: forward, backward and update as one graph of the engine.",
     .help = "Makes a step of training from the model and a loss: its gradients are forward "
             "operations, and weights and moments are inputs and outputs. Runs it with batches of "
             "the data, in order, and wraps round. An operator without a gradient is an error "
             "that names the node. The same data and options give the same weights, bit for bit, "
             "also after --resume: docs/training.md.",
     .example = "train net.onnx --data digits.npz --loss cross-entropy:logits:labels -o new.onnx",
     .run = TrainCommand},
    {.name = "doctor",
     .bit = kDoctor,
     .arguments = "",
     .min_arguments = 0,
     .max_arguments = 0,
     .brief = "Check this machine: what is installed, and how to get what is missing.",
     .help = "ONNX Runtime and its version, whether it takes the plugin and shows its devices, the "
             "folder of compiled programs, memory. The exit code is 1 if something is missing.",
     .run = DoctorCommand},
    {.name = "completion",
     .bit = kCompletion,
     .arguments = "bash|zsh|fish",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Print the completion script of a shell.",
     .help = "bash: source <(anemone completion bash). zsh: source <(anemone completion zsh) after "
             "compinit. fish: anemone completion fish | source.",
     .run = CompletionCommand,
     .choices = ShellNames},
    {.name = "help",
     .bit = kHelp,
     .arguments = "[COMMAND]",
     .min_arguments = 0,
     .max_arguments = 1,
     .brief = "Explain the program, or one command.",
     .help = "The same as --help.",
     .run = HelpCommand,
     .choices = CommandNames},
    {.name = "docs",
     .bit = kDocs,
     .arguments = "markdown|man|custom-domain|options|python|registry",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Print this program's reference page.",
     .help = "The generated pages of docs/ and the keywords of the Python package are made by it.",
     .run = DocsCommand,
     .hidden = true},
};

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }

const Command* FindCommand(absl::string_view name) {
  const auto found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                  [&](const Command& command) { return name == command.name; });
  return found == std::end(kCommands) ? nullptr : found;
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    if (!command.hidden) names.emplace_back(command.name);
  }
  return names;
}

std::string NoSuchCommand(absl::string_view name) {
  const std::string question =
      name == "version" ? "give --version" : DidYouMean(name, CommandNames());
  return absl::StrCat("command '", name, "': unknown; ",
                      question.empty() ? "anemone help lists the commands" : question);
}

}  // namespace anemone
