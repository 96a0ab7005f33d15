#include "tools/command/flags.h"

#include <type_traits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/byte_sizes.h"
#include "base/status_macros.h"
#include "tools/command/flag_values.h"
#include "tools/command/setting_flags.h"
#include "tools/command/train_flags.h"
#include "tools/command/weight_encoder.h"

namespace anemone {
namespace {

constexpr double kLongestTimeout = 1e9;  // seconds; the clock counts nanoseconds in 64 bits

std::vector<std::string> FormatNames() { return {"netplist", "mil", "mlpackage"}; }
std::vector<std::string> ExecutorNames() { return {"local", "ray"}; }
std::vector<std::string> MeasureNames() { return {"cosine=", "max_abs=", "max_rel="}; }
std::vector<std::string> VerdictNames() { return {"native", "rewritten", "rejected"}; }

// A whole number from `low` to `high`.
template <auto Option>
absl::Status StoreWhole(Options& o, const std::string& value, int64_t low, int64_t high) {
  int64_t number = 0;
  ANEMONE_RETURN_IF_ERROR(StoreInteger(value, low, high, number));
  o.*Option = static_cast<std::remove_reference_t<decltype(o.*Option)>>(number);
  return absl::OkStatus();
}
// One more value of a flag that can be given several times.
template <auto Option>
absl::Status Append(Options& o, const std::string& value) {
  (o.*Option).push_back(value);
  return absl::OkStatus();
}

const Flag kOwnFlags[] = {
    {.name = "rewrites",
     .value = nullptr,
     .commands = kConfirm,
     .brief = "Let an operation become other units than its own.",
     .help = "",
     .store = Set<&Options::confirm_rewrites, true>},
    {.name = "input",
     .value = "SHAPE[:DTYPE]",
     .commands = kConfirm,
     .brief = "An argument of the operation; give them in order.",
     .help = "1x8x16x16, or 1x3x8x8:uint8; the default is fp16. `scalar` has no axes, `?` is a "
             "free dimension.",
     .store = StoreArgument},
    {.name = "const",
     .value = "NAME=SHAPE[:DTYPE]",
     .commands = kConfirm,
     .brief = "A constant of the operation: weight=8x4x3x3.",
     .help = "",
     .store = StoreConstant},
    {.name = "expect",
     .value = "VERDICT",
     .commands = kConfirm,
     .brief = "Exit with 3 if a verdict differs: native, rewritten or rejected.",
     .help = "Makes `confirm` a gate for CI.",
     .choices = VerdictNames,
     .store = [](Options& o,
                 const std::string& v) { return StoreChoice(v, VerdictNames(), o.expected); }},
    {.name = "attr",
     .value = "KEY=VALUE",
     .commands = kConfirm,
     .brief = "An attribute: axis=-1, strides=[2,2], mode=reflect.",
     .help = "VALUE is JSON, or a word.",
     .store = StoreAttribute},
    {.name = "probe",
     .value = "FILE.json",
     .commands = kConfirm,
     .brief = "Check every case of a file.",
     .help =
         "A list of cases, or an object with one as `compile`; a case has id, op, inputs, attrs, "
         "and optionally target and route.",
     .store = KeepText<&Options::probe>},
    {.name = "require-engine-share",
     .value = "SHARE",
     .commands = kCheck | kConvert,
     .brief = "Exit with 3 if less than this share of MACs is on the engine.",
     .help = "0.95 makes `check` a gate for CI. A model without MACs meets any share. "
             "An unknown share meets none: bind the model's dimensions with --dim. `convert` "
             "then writes nothing.",
     .store =
         [](Options& o, const std::string& v) {
           double share = 0;
           if (!StoreNumber(v, share).ok() || share < 0 || share > 1) {
             return Bad(absl::StrCat("want a share from 0 to 1, such as 0.95; got '", v, "'"));
           }
           o.require_engine_share = share;
           return absl::OkStatus();
         }},
    {.name = "save-rejected",
     .value = "DIR",
     .commands = kCheck,
     .brief = "Write each node that a target rejects as a small ONNX model of its own.",
     .help =
         "The folder must not exist, or be empty. rejected.json lists the models with the rule "
         "and the message, and the nodes that cannot be written with the reason (a type that is "
         "not known, constants of more than 16 MiB). With several models, each has a folder in "
         "it.",
     .store = KeepText<&Options::save_rejected>},
    {.name = "input",
     .value = "NAME=FILE",
     .commands = kRun | kCompile,
     .brief = "Read an input from a .npy or .pb file.",
     .help = "A .pb file holds one onnx.TensorProto. Free dimensions of the input get the array's "
             "sizes. Can be given several times.",
     .store = StoreInput},
    {.name = "seed",
     .value = "N",
     .commands = kRun | kBench | kCompile,
     .fallback = "0",
     .brief = "Seed of random inputs.",
     .help = "",
     .store = StoreSeed},
    {.name = "range",
     .value = "NAME=LO:HI",
     .commands = kRun | kBench | kCompile,
     .brief = "Range of a random input.",
     .help = "Both ends are included. Can be given several times.",
     .store = StoreRange},
    {.name = "to",
     .value = "FORMAT",
     .commands = kConvert,
     .fallback = "netplist",
     .brief = "The format to write: netplist, mil or mlpackage.",
     .help = "mlpackage is a Core ML package of the whole model (docs/coreml.md); the others are "
             "folders with a file for each segment.",
     .choices = FormatNames,
     .store = [](Options& o, const std::string& v) { return StoreChoice(v, FormatNames(), o.to); }},
    {.name = "minimum-os",
     .value = "OS",
     .commands = kConvert,
     .brief = "The oldest system that must run the package: ios15 to ios26, macos12 to macos26.",
     .help = "Only with --to mlpackage. By default the oldest one that has the model's operations.",
     .store = KeepText<&Options::minimum_os>},
    {.name = "segments",
     .value = nullptr,
     .commands = kConvert,
     .brief = "Write a package for each engine segment instead of one of the whole model.",
     .help = "Only with --to mlpackage. The folder also has manifest.json and the CPU segments, as "
             "with "
             "--to mil.",
     .store = Set<&Options::segments, true>},
    {.name = "image-input",
     .value = "NAME[:scale=S,bias=B]",
     .commands = kConvert,
     .brief = "Make an input an image: the model reads S * pixel + B.",
     .help =
         "Only with --to mlpackage, for an input of shape 1x3xHxW (RGB) or 1x1xHxW (gray). Pixels "
         "are from 0 to 255. B is a number, or R/G/B. Can be given several times.",
     .store = Append<&Options::image_inputs>},
    {.name = "state",
     .value = "PAST=PRESENT",
     .commands = kConvert,
     .brief = "Keep a value between predictions: the output PRESENT becomes the input PAST.",
     .help =
         "Only with --to mlpackage; the state is an MLState, from iOS 18 on. Can be given several "
         "times.",
     .store = Append<&Options::states>},
    {.name = "metadata",
     .value = "KEY=WORDS",
     .commands = kConvert,
     .brief = "What the package says of the model: author, version, license, description.",
     .help = "Only with --to mlpackage. Other keys become user-defined metadata. By default the "
             "model's own metadata. Can be given several times.",
     .store = Append<&Options::metadata>},
    {.name = "describe",
     .value = "PORT=WORDS",
     .commands = kConvert,
     .brief = "Describe an input or output in the package.",
     .help = "Only with --to mlpackage. By default the model's own text. Can be given several "
             "times.",
     .store = Append<&Options::descriptions>},
    {.name = "output",
     .value = "DIR",
     .commands = kZoo,
     .brief = "The folder of the results.",
     .help = "It is created, or its results are continued.",
     .store = KeepText<&Options::output>,
     .letter = "o"},
    {.name = "compile",
     .value = nullptr,
     .commands = kZoo,
     .brief = "Also compile the engine segments of each model for each target.",
     .help = "",
     .store = Set<&Options::compile, true>},
    {.name = "run",
     .value = nullptr,
     .commands = kZoo,
     .brief = "Also run each model on each target, and compare it with ONNX Runtime.",
     .help = "",
     .store = Set<&Options::run, true>},
    {.name = "convert",
     .value = "FORMAT",
     .commands = kZoo,
     .brief = "Also convert each model for the first target: netplist, mil or mlpackage.",
     .help = "The result is in models/ID/FORMAT.",
     .choices = FormatNames,
     .store = [](Options& o,
                 const std::string& v) { return StoreChoice(v, FormatNames(), o.convert); }},
    {.name = "jobs",
     .value = "N",
     .commands = kZoo,
     .fallback = "1",
     .brief = "Work on N models at a time.",
     .help = "",
     .store = [](Options& o,
                 const std::string& v) { return StoreWhole<&Options::jobs>(o, v, 1, 1024); }},
    {.name = "executor",
     .value = "NAME",
     .commands = kZoo,
     .fallback = "local",
     .brief = "Where the work is done: local, or ray[:ADDRESS].",
     .help = "`ray` needs the Python package with its extra `ray`. Without an ADDRESS it starts a "
             "cluster on this machine, of --jobs workers: docs/zoo.md.",
     .choices = ExecutorNames,
     .store =
         [](Options& o, const std::string& v) {
           o.executor = v;
           const bool is_address = absl::StartsWith(v, "ray:") && v.size() > 4;
           return v == "local" || v == "ray" || is_address
                      ? absl::OkStatus()
                      : Bad(absl::StrCat("want local, ray or ray:ADDRESS; got '", v, "'"));
         }},
    {.name = "timeout",
     .value = "SECONDS",
     .commands = kZoo,
     .fallback = "0",
     .brief = "End a process that takes longer; the model's status is timeout.",
     .help = "Each step of a model (check, compile, run, convert) is a process. 0: no limit.",
     .store =
         [](Options& o, const std::string& v) {
           ANEMONE_RETURN_IF_ERROR(StoreNumber(v, o.timeout));
           return o.timeout >= 0 && o.timeout <= kLongestTimeout
                      ? absl::OkStatus()
                      : Bad(absl::StrCat("want a number of seconds up to ", kLongestTimeout,
                                         "; got '", v, "'"));
         }},
    {.name = "memory-limit",
     .value = "BYTES",
     .commands = kZoo,
     .fallback = "0",
     .brief = "Limit the address space of each process; the model's status is out-of-memory.",
     .help = "K, M and G are powers of 1024. 0: no limit.",
     .store =
         [](Options& o, const std::string& v) {
           ANEMONE_ASSIGN_OR_RETURN(o.process_memory, ParseBytes(v));
           return absl::OkStatus();
         }},
    {.name = "retry-failed",
     .value = nullptr,
     .commands = kZoo,
     .brief = "Work again on models whose status is not ok.",
     .help = "",
     .store = Set<&Options::retry_failed, true>},
    {.name = "output",
     .value = "DIR",
     .commands = kConvert,
     .brief = "The folder to write.",
     .help = "It must not exist, or be empty.",
     .store = KeepText<&Options::output>,
     .letter = "o"},
    {.name = "output",
     .value = "FILE.onnx",
     .commands = kTrain,
     .brief = "The model to write.",
     .help = "An existing file is replaced at the end, if everything succeeded.",
     .store = KeepText<&Options::output>,
     .letter = "o"},
    {.name = "output",
     .value = "FILE.html",
     .commands = kReport,
     .brief = "The page to write.",
     .help = "An existing file is replaced at the end, if everything succeeded.",
     .store = KeepText<&Options::output>,
     .letter = "o"},
    {.name = "compress",
     .value = "FORM",
     .commands = kCompile,
     .brief = "The form of the weights: int8, palette4, palette8, sparse or blockwise.",
     .help =
         "int8: a scale for each output channel. palette: a table of 16 or 256 numbers for each "
         "weight. sparse: zeros are not stored; no value is set to 0. blockwise: 4 bits, a scale "
         "for each block of 16 to 64.",
     .choices = CompressionNames,
     .store = [](Options& o,
                 const std::string& v) { return StoreChoice(v, CompressionNames(), o.compress); }},
    {.name = "verified-only",
     .value = nullptr,
     .commands = kConvert,
     .brief = "Only netplist forms that have been seen to compile on a real device.",
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
     .help = "The folder is created if needed.",
     .store = KeepText<&Options::output_dir>},
    {.name = "row-adapters",
     .value = "ADAPTERS",
     .commands = kRun,
     .brief = "The adapter of each row of the batch, by the names of --adapter.",
     .help = "Separated by commas. An empty name is the adapter without a name, or none: "
             "--row-adapters a,b,,a "
             "for a batch of 4.",
     .store =
         [](Options& o, const std::string& value) {
           o.row_adapters = absl::StrSplit(value, ',');
           o.settings.adapter_rows = true;
           return absl::OkStatus();
         }},
    {.name = "compare",
     .value = nullptr,
     .commands = kRun,
     .brief = "Compare with ONNX Runtime on the original file.",
     .help = "",
     .store = Set<&Options::compare, true>},
    {.name = "compile-only",
     .value = nullptr,
     .commands = kRun,
     .brief = "Plan and compile the model, and do not run it.",
     .help = "Prints the plan and the times. Not with options about inputs, outputs or results.",
     .store = Set<&Options::compile_only, true>},
    {.name = "tolerance",
     .value = "MEASURE=X",
     .commands = kRun | kCompile,
     .fallback = "cosine=0.999, max_rel=0.05",
     .brief = "The accuracy a comparison requires: cosine=, max_abs= or max_rel=.",
     .help = "max_rel is the largest error over the range of the reference output. If an output "
             "does not meet the tolerance the exit code is 3. Can be given several times; the "
             "measures that are given replace the default. A constant reference output is judged "
             "by max_rel alone, at most 0.01 unless given.",
     .choices = MeasureNames,
     .store = StoreTolerance},
    {.name = "hazards",
     .value = nullptr,
     .commands = kRun,
     .brief = "Report where values leave the range of fp16 for these inputs.",
     .help = "A line for each node whose values overflow, saturate a port, pass 4094 in a width "
             "slice, cancel, have no value or are flushed to zero, with magnitudes: "
             "docs/hazards.md. One more run finds them.",
     .store =
         [](Options& o, const std::string&) {
           o.settings.hazards = true;
           return absl::OkStatus();
         }},
    {.name = "repeat",
     .value = "N",
     .commands = kRun | kBench,
     .fallback = "1 (bench: 20)",
     .brief = "Run N times after the first run.",
     .help = "`run` prints the median of them, `bench` percentiles.",
     .store = [](Options& o,
                 const std::string& v) { return StoreWhole<&Options::repeat>(o, v, 1, 1000000); }},
    {.name = "profile",
     .value = "FILE",
     .commands = kRun,
     .brief = "Write a Chrome trace of one run.",
     .help = "Segments, crossings and units; open it in chrome://tracing or Perfetto.",
     .store = KeepText<&Options::profile>},
    {.name = "plugin",
     .value = "FILE",
     .commands = kDoctor,
     .brief = "The plugin to check.",
     .help = "Default: the plugin that was installed with this command.",
     .store = KeepText<&Options::plugin>},
    {.name = "self-test",
     .value = "FILE.json",
     .commands = kDoctor,
     .brief = "Ask the engine of this Mac about each case, and compare with the tables.",
     .help = "The file has cases as `confirm --probe` takes them; docs/apple.md names ours. The "
             "results go to one file (--output). Refusals take 15 s each.",
     .store = KeepText<&Options::self_test>},
    {.name = "output",
     .value = "FILE.json",
     .commands = kDoctor,
     .fallback = "anemone-self-test.json",
     .brief = "The file for the results of --self-test.",
     .help = "An existing file is replaced.",
     .store = KeepText<&Options::output>,
     .letter = "o"},
    {.name = "json",
     .value = nullptr,
     .commands = kPrintsTable | kPatch,
     .brief = "Print one JSON document on stdout and nothing else.",
     .help = "",
     .store = Set<&Options::json, true>},
    {.name = "quiet",
     .value = nullptr,
     .commands = kCheck | kDiff,
     .brief = "Print the first line only: the answer. No progress.",
     .help = "",
     .store = Set<&Options::quiet, true>,
     .letter = "q"},
    {.name = "quiet",
     .value = nullptr,
     .commands = kRun,
     .brief = "Print the result only. No progress, plan and times.",
     .help = "",
     .store = Set<&Options::quiet, true>,
     .letter = "q"},
    {.name = "quiet",
     .value = nullptr,
     .commands = (kReadsModel & ~(kCheck | kRun | kDiff)) | kPatch,
     .brief = "No progress and no notes.",
     .help = "",
     .store = Set<&Options::quiet, true>,
     .letter = "q"},
    {.name = "verbose",
     .value = nullptr,
     .commands = kCheck | kRun | kBench | kTrain | kGenerate,
     .brief = "Print the plan with all details and a line for every node.",
     .help = "",
     .store = Set<&Options::verbose, true>,
     .letter = "v"},
    {.name = "verbose",
     .value = nullptr,
     .commands = kDiff,
     .brief = "List every node that differs.",
     .help = "Without it at most ten of each kind.",
     .store = Set<&Options::verbose, true>,
     .letter = "v"},
    {.name = "verbose",
     .value = nullptr,
     .commands = kConvert,
     .brief = "List the units whose form has not been seen to compile on a device.",
     .help = "",
     .store = Set<&Options::verbose, true>,
     .letter = "v"},
};

// The settings, then the commands' own flags.
std::vector<Flag> MakeFlags() {
  std::vector<Flag> flags = SettingFlags();
  flags.insert(flags.end(), std::begin(kOwnFlags), std::end(kOwnFlags));
  const std::vector<Flag> train = TrainFlags();
  flags.insert(flags.end(), train.begin(), train.end());
  const absl::Span<const Flag> generate = GenerateFlags(), packages = PackageFlags();
  flags.insert(flags.end(), generate.begin(), generate.end());
  flags.insert(flags.end(), packages.begin(), packages.end());
  return flags;
}

}  // namespace

absl::Span<const ExitCode> ExitCodes() {
  static constexpr ExitCode kCodes[] = {
      {kExitDone, "done"},
      {kExitRefused, "the model, the data or this machine was refused"},
      {kExitUsage,
       "wrong usage: an option or a name on the command line that does not exist or does not fit"},
      {kExitThreshold, "done, but a threshold that you set was not met"},
  };
  return kCodes;
}

absl::Span<const Flag> Flags() {
  static const std::vector<Flag>* const flags = new std::vector<Flag>(MakeFlags());
  return *flags;
}

}  // namespace anemone
