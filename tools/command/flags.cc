#include "tools/command/flags.h"

#include <limits>

#include "base/status_macros.h"
#include "base/threads.h"
#include "engine/target.h"
#include "tools/command/commands.h"
#include "tools/command/flag_values.h"
#include "tools/command/weight_encoder.h"

namespace anemone {
namespace {

std::vector<std::string> TargetNames() {
  std::vector<std::string> names = {"all"};
  for (const Target& t : AllTargets()) names.emplace_back(t.option_name());
  return names;
}
std::vector<std::string> RouteNames() { return {"netplist", "mil"}; }
std::vector<std::string> FormatNames() { return {"netplist", "mil"}; }
std::vector<std::string> PolicyNames() { return {"maximal", "cpu", "refuse:"}; }
std::vector<std::string> DeviceNames() { return {"auto", "software"}; }
std::vector<std::string> NumericsNames() { return {"fast", "exact"}; }

// A flag without a value.
template <auto Option, bool kValue>
absl::Status Set(Options& o, const std::string&) {
  o.*Option = kValue;
  return absl::OkStatus();
}
// A value as it is.
template <auto Option>
absl::Status Keep(Options& o, const std::string& value) {
  o.*Option = value;
  return absl::OkStatus();
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
     .run = CheckCommand},
    {.name = "run",
     .bit = kRun,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Run a model, and compare it with ONNX Runtime.",
     .help = "Plans, compiles and runs one model: engine segments on the software engine, the rest "
             "on ONNX Runtime's CPU provider. Inputs that are not given are random: floats uniform "
             "in 0..1, integers 0 or 1.",
     .run = RunCommand},
    {.name = "confirm",
     .bit = kConfirm,
     .arguments = "OPERATION",
     .min_arguments = 0,
     .max_arguments = 1,
     .brief = "Ask targets whether they take one operation.",
     .help =
         "Builds the graph of one operation, compiles it, and prints each target's verdict with "
         "the refusing layer and its words. OPERATION is a MIL operation (softmax, conv), on "
         "both routes, or a Type of the netplist (Softmax, Conv), on the netplist route; "
         "`anemone units` lists them with their keys. No rewrites unless asked for.",
     .run = ConfirmCommand},
    {.name = "targets",
     .bit = kTargets,
     .arguments = "",
     .min_arguments = 0,
     .max_arguments = 0,
     .brief = "List the targets and what is known of each, with sources.",
     .help = "One line for each of the 28 compile targets; --json has every limit and capability.",
     .run = TargetsCommand},
    {.name = "units",
     .bit = kUnits,
     .arguments = "[TYPE...]",
     .min_arguments = 0,
     .max_arguments = 1 << 20,
     .brief = "List the engine's units: keys, operands, operations and rules.",
     .help =
         "Without a TYPE all of them. --json has the MIL operations and ONNX operators that become "
         "each, and every rule.",
     .run = UnitsCommand},
    {.name = "convert",
     .bit = kConvert,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Write a model in the engine's own formats.",
     .help = "Plans the model and writes a folder for each engine segment (net.plist and weights), "
             "an ONNX model for each CPU segment, and manifest.json, which says how they connect. "
             "A segment that cannot be written is named with its reason, and the exit code is 1.",
     .run = ConvertCommand},
    {.name = "compile",
     .bit = kCompile,
     .arguments = "MODEL",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Write a model with compressed weights, as accurate as you ask.",
     .help =
         "Compresses the constant weights of products and convolutions, runs the result here and "
         "the original on ONNX Runtime, and leaves weights out, those first that cost most "
         "accuracy for what they save, until --tolerance holds. The file is plain ONNX, which "
         "ONNX Runtime loads too: quantized integers, tables and sparse initializers. If the "
         "tolerance cannot be met nothing is written, and the exit code is 3.",
     .run = CompileCommand},
    {.name = "bench",
     .bit = kBench,
     .arguments = "MODEL...",
     .min_arguments = 1,
     .max_arguments = 1 << 20,
     .brief = "Measure a model beside ONNX Runtime, in turn, as ratios.",
     .help = "Runs each model on Anemone and on ONNX Runtime's CPU provider alternately in one "
             "process, with ONNX Runtime's threads not spinning, and prints load, first run, "
             "latency percentiles and peak memory as ratios.",
     .run = BenchCommand},
    {.name = "doctor",
     .bit = kDoctor,
     .arguments = "",
     .min_arguments = 0,
     .max_arguments = 0,
     .brief = "Look at this machine: what is there, and the remedy for what is not.",
     .help = "ONNX Runtime and its version, whether it takes the plugin and shows its devices, the "
             "folder of compiled programs, memory. The exit code is 1 if something is missing.",
     .run = DoctorCommand},
    {.name = "completion",
     .bit = kCompletion,
     .arguments = "bash|zsh|fish",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Print the completion script of a shell.",
     .help = "For bash: source <(anemone completion bash).",
     .run = CompletionCommand},
    {.name = "docs",
     .bit = kDocs,
     .arguments = "markdown|man|custom-domain|registry",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Print this program's reference page.",
     .help =
         "docs/cli.md, the man page, docs/custom_domain.md and docs/operators.md are made by it.",
     .run = DocsCommand,
     .hidden = true},
};

const Flag kFlags[] = {
    {.name = "target",
     .value = "NAME[,NAME...]",
     .commands = kReadsModel | kConfirm,
     .fallback = "h13",
     .brief = "Judge and compile for these targets.",
     .help = "Target or product names in any case (h13, m1-pro, A15), or `all`. `run` and `bench` "
             "take one.",
     .choices = TargetNames,
     .store = StoreTargets},
    {.name = "dim",
     .value = "NAME=N",
     .commands = kReadsModel,
     .brief = "Bind a symbolic dimension.",
     .help = "May be given several times.",
     .store = StoreDim},
    {.name = "bucket",
     .value = "NAME=N[,N...]",
     .commands = kCheck | kRun | kBench,
     .brief = "Make a program for each of these sizes of a symbolic dimension.",
     .help = "Inputs of another size are padded to the next larger one and outputs cropped where "
             "that is proven right; else the model is made for the exact size: "
             "docs/dynamic_shapes.md. With it --dim NAME=N is the size of random inputs (else the "
             "smallest bucket). May be given several times.",
     .store = StoreBucket},
    {.name = "shape",
     .value = "INPUT=1x3x224x224",
     .commands = kReadsModel,
     .brief = "Bind the whole shape of an input.",
     .help =
         "For dimensions without a name, or with an awkward one. A scalar is `INPUT=scalar`; `?` "
         "leaves a dimension to --dim or --bucket.",
     .store = StoreShape},
    {.name = "route",
     .value = "ROUTE",
     .commands = kCheck | kRun | kBench | kCompile | kConfirm,
     .fallback = "netplist",
     .brief = "Which of the engine's two doors judges: netplist or mil.",
     .help = "Direct authoring (netplist) and conversion (mil) have different gates.",
     .choices = RouteNames,
     .store = [](Options& o,
                 const std::string& v) { return StoreChoice(v, RouteNames(), o.route); }},
    {.name = "no-rewrites",
     .value = nullptr,
     .commands = kReadsModel,
     .brief = "Do not let an operator become other units than its own.",
     .help = "",
     .store = Set<&Options::rewrites, false>},
    {.name = "rewrites",
     .value = nullptr,
     .commands = kConfirm,
     .brief = "Let an operation become other units than its own.",
     .help = "",
     .store = Set<&Options::confirm_rewrites, true>},
    {.name = "input",
     .value = "SHAPE[:DTYPE]",
     .commands = kConfirm,
     .brief = "An argument of the operation, in order.",
     .help =
         "1x8x16x16, or 1x3x8x8:uint8; fp16 unless said. `scalar` has no axes, `?` is a symbolic "
         "dimension.",
     .store = StoreArgument},
    {.name = "const",
     .value = "NAME=SHAPE[:DTYPE]",
     .commands = kConfirm,
     .brief = "A constant of the operation: weight=8x4x3x3.",
     .help = "",
     .store = StoreConstant},
    {.name = "attr",
     .value = "KEY=VALUE",
     .commands = kConfirm,
     .brief = "An attribute: axis=-1, strides=[2,2], mode=reflect.",
     .help = "VALUE is JSON, or a word.",
     .store = StoreAttribute},
    {.name = "probe",
     .value = "FILE.json",
     .commands = kConfirm,
     .brief = "Ask every case of a file.",
     .help =
         "A list of cases, or an object with one as `compile`; a case has id, op, inputs, attrs, "
         "and target and route unless the options are meant.",
     .store = Keep<&Options::probe>},
    {.name = "policy",
     .value = "NAME",
     .commands = kReadsModel,
     .fallback = "maximal",
     .brief = "What to keep off the engine: maximal, cpu, or refuse:UNIT[,UNIT...].",
     .help = "`maximal` keeps nothing off, `cpu` everything, `refuse:Pooling` that unit.",
     .choices = PolicyNames,
     .store = StorePolicy},
    {.name = "device",
     .value = "NAME",
     .commands = kRun | kBench | kCompile,
     .fallback = "auto",
     .brief = "Where engine segments run: auto or software.",
     .help = "",
     .choices = DeviceNames,
     .store = [](Options& o,
                 const std::string& v) { return StoreChoice(v, DeviceNames(), o.device); }},
    {.name = "numerics",
     .value = "MODE",
     .commands = kRun | kBench | kCompile,
     .fallback = "fast",
     .brief = "How the software engine computes: fast or exact.",
     .help = "fast: fp16 storage and rounding at unit boundaries, fp32 accumulation. exact: every "
             "rule of the target's arithmetic that is known, to the bit. exact,RULE=OPTION[,...] "
             "takes rules that the sources leave open another way, as exact,mac-tile=none does; "
             "an unknown RULE or OPTION lists those that there are.",
     .choices = NumericsNames,
     .store = StoreNumerics},
    {.name = "device-limits",
     .value = nullptr,
     .commands = kRun,
     .brief = "The software device fails where the silicon would at run time.",
     .help = "About 119 compiles in a process, a pause after a failed one, surfaces of one size "
             "and of 48 KiB or more (else evaluation fails with status 0x1d), and on the mil route "
             "ports in alphabetical order. The model is run as a program that knows of none of "
             "them: docs/device_limits.md.",
     .store = Set<&Options::device_limits, true>},
    {.name = "heed-limits",
     .value = nullptr,
     .commands = kRun,
     .brief = "Pad surfaces and bind ports by name, as the device's manners want.",
     .help = "With --device-limits: what is left to fail is up to the model.",
     .store = Set<&Options::heed_limits, true>},
    {.name = "threads",
     .value = "N",
     .commands = kRun | kBench | kCompile,
     .fallback = "all cores",
     .brief = "One budget of threads for engine and CPU segments.",
     .help = "",
     .store = [](Options& o,
                 const std::string& v) { return StoreInteger(v, 1, kMostThreads, o.threads); }},
    {.name = "require-engine-share",
     .value = "SHARE",
     .commands = kCheck,
     .brief = "Exit with 3 if less than this share of MACs is on the engine.",
     .help = "0.95 makes `check` a gate for CI. A model without MACs meets any share.",
     .store =
         [](Options& o, const std::string& v) {
           double share;
           ANEMONE_RETURN_IF_ERROR(StoreNumber(v, share));
           if (share < 0 || share > 1) return Bad("want a share from 0 to 1");
           o.require_engine_share = share;
           return absl::OkStatus();
         }},
    {.name = "input",
     .value = "NAME=FILE",
     .commands = kRun | kCompile,
     .brief = "Read an input from a .npy or .pb file.",
     .help = "A .pb file holds one onnx.TensorProto. May be given several times.",
     .store = StoreInput},
    {.name = "seed",
     .value = "N",
     .commands = kRun | kBench | kCompile,
     .fallback = "0",
     .brief = "Seed of random inputs.",
     .help = "",
     .store =
         [](Options& o, const std::string& v) {
           return StoreInteger(v, 0, std::numeric_limits<int64_t>::max(), o.seed);
         }},
    {.name = "range",
     .value = "NAME=LO:HI",
     .commands = kRun | kBench | kCompile,
     .brief = "Range of a random input.",
     .help = "Both ends belong to it. May be given several times.",
     .store = StoreRange},
    {.name = "to",
     .value = "FORMAT",
     .commands = kConvert,
     .fallback = "netplist",
     .brief = "The format to write: netplist or mil.",
     .help = "",
     .choices = FormatNames,
     .store = [](Options& o, const std::string& v) { return StoreChoice(v, FormatNames(), o.to); }},
    {.name = "output",
     .value = "DIR",
     .commands = kConvert,
     .brief = "The folder to write.",
     .help = "It must not be there, or be empty.",
     .store =
         [](Options& o, const std::string& v) {
           o.output = v;
           return absl::OkStatus();
         },
     .letter = "o"},
    {.name = "output",
     .value = "FILE.onnx",
     .commands = kCompile,
     .brief = "The model to write.",
     .help = "A file of that name is replaced at the end, if all went well.",
     .store =
         [](Options& o, const std::string& v) {
           o.output = v;
           return absl::OkStatus();
         },
     .letter = "o"},
    {.name = "compress",
     .value = "FORM",
     .commands = kCompile,
     .brief = "The form of the weights: int8, palette4, palette8, sparse or blockwise.",
     .help =
         "int8: a scale for each output channel. palette: a table of 16 or 256 numbers for each "
         "weight. sparse: what is 0 is not stored; nothing is made 0. blockwise: 4 bits, a scale "
         "for each block of 16 to 64.",
     .choices = CompressionNames,
     .store = [](Options& o,
                 const std::string& v) { return StoreChoice(v, CompressionNames(), o.compress); }},
    {.name = "verified-only",
     .value = nullptr,
     .commands = kConvert,
     .brief = "No netplist form that nobody was seen to compile.",
     .help = "",
     .store = Set<&Options::verified_only, true>},
    {.name = "binary",
     .value = nullptr,
     .commands = kConvert,
     .brief = "Write binary property lists.",
     .help = "Without it they are XML.",
     .store = Set<&Options::binary, true>},
    {.name = "output-dir",
     .value = "DIR",
     .commands = kRun,
     .brief = "Write every output as .npy into this folder.",
     .help = "The folder is made if it is not there.",
     .store = Keep<&Options::output_dir>},
    {.name = "compare",
     .value = nullptr,
     .commands = kRun,
     .brief = "Compare with ONNX Runtime on the untouched file.",
     .help = "",
     .store = Set<&Options::compare, true>},
    {.name = "tolerance",
     .value = "MEASURE=X",
     .commands = kRun | kCompile,
     .fallback = "cosine=0.999",
     .brief = "What a comparison demands: cosine=, max_abs= or max_rel=.",
     .help = "If an output does not meet it the exit code is 3. A constant reference output is "
             "judged by max_rel, at most 0.01 unless given. May be given several times.",
     .store = StoreTolerance},
    {.name = "hazards",
     .value = nullptr,
     .commands = kRun,
     .brief = "Tell where the model leaves the fp16 envelope for these inputs.",
     .help = "A line for each node whose values overflow, saturate a port, pass 4094 in a width "
             "slice, cancel, have no value or are flushed to zero, with magnitudes: "
             "docs/hazards.md. One more run finds them.",
     .store = Set<&Options::hazards, true>},
    {.name = "repeat",
     .value = "N",
     .commands = kRun | kBench | kCompile,
     .fallback = "1 (bench: 20)",
     .brief = "Run so many times after the first.",
     .help = "",
     .store = [](Options& o,
                 const std::string& v) { return StoreInteger(v, 1, 1000000, o.repeat); }},
    {.name = "profile",
     .value = "FILE",
     .commands = kRun,
     .brief = "Write a Chrome trace of one run.",
     .help = "Segments, crossings and units; open it in chrome://tracing or Perfetto.",
     .store = Keep<&Options::profile>},
    {.name = "plugin",
     .value = "FILE",
     .commands = kDoctor,
     .brief = "The plugin to look at.",
     .help = "Default: the one that came with this command.",
     .store = Keep<&Options::plugin>},
    {.name = "json",
     .value = nullptr,
     .commands = kPrintsTable,
     .brief = "Print one JSON document on stdout, and nothing else there.",
     .help = "",
     .store = Set<&Options::json, true>},
    {.name = "quiet",
     .value = nullptr,
     .commands = kReadsModel,
     .brief = "No progress and no notes.",
     .help = "",
     .store =
         [](Options& o, const std::string&) {
           o.quiet = true;
           return absl::OkStatus();
         },
     .letter = "q"},
    {.name = "verbose",
     .value = nullptr,
     .commands = kReadsModel & ~kCompile,
     .brief = "Print a line for every node.",
     .help = "",
     .store =
         [](Options& o, const std::string&) {
           o.verbose = true;
           return absl::OkStatus();
         },
     .letter = "v"},
};

constexpr const char* kPromisedCommands[] = {"zoo", "report", "diff", "generate", "train"};
constexpr const char* kPromisedFlags[] = {"save-rejected", "memory-limit"};

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }
absl::Span<const Flag> Flags() { return kFlags; }
absl::Span<const char* const> PromisedCommands() { return kPromisedCommands; }
absl::Span<const char* const> PromisedFlags() { return kPromisedFlags; }

}  // namespace anemone
