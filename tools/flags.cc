#include "tools/flags.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "anemone/status_macros.h"
#include "engine/target.h"
#include "partitioner/plan.h"
#include "provider/planning.h"
#include "tools/commands.h"

namespace anemone {
namespace {

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

// "NAME=REST", split at the last '=', since a name may hold one.
absl::Status SplitPair(const std::string& text, std::string& name, std::string& rest) {
  size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) {
    return Bad(absl::StrCat("want NAME=VALUE, got '", text, "'"));
  }
  name = text.substr(0, at);
  rest = text.substr(at + 1);
  return absl::OkStatus();
}

template <class T>
absl::Status StoreInteger(const std::string& text, int64_t low, int64_t high, T& to) {
  int64_t value;
  if (!absl::SimpleAtoi(text, &value) || value < low || value > high) {
    return Bad(absl::StrCat("want an integer from ", low, " to ", high, ", got '", text, "'"));
  }
  to = static_cast<T>(value);
  return absl::OkStatus();
}

absl::Status StoreNumber(const std::string& text, double& to) {
  if (!absl::SimpleAtod(text, &to) || to != to) {
    return Bad(absl::StrCat("want a number, got '", text, "'"));
  }
  return absl::OkStatus();
}

absl::Status StoreTargets(Options& o, const std::string& value) {
  o.targets = absl::StrSplit(value, ',');
  for (const std::string& name : ExpandTargets(o.targets)) {
    ANEMONE_RETURN_IF_ERROR(FindTarget(name).status());
  }
  return absl::OkStatus();
}

absl::Status StoreDim(Options& o, const std::string& value) {
  std::string name, size;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, size));
  return StoreInteger(size, 1, std::numeric_limits<int32_t>::max(), o.dims[name]);
}

absl::Status StoreShape(Options& o, const std::string& value) {
  std::string name, shape;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, shape));
  std::vector<int64_t>& dims = o.shapes[name];
  dims.clear();
  if (shape == "scalar") return absl::OkStatus();
  for (absl::string_view size : absl::StrSplit(shape, 'x')) {
    dims.push_back(0);
    ANEMONE_RETURN_IF_ERROR(
        StoreInteger(std::string(size), 0, std::numeric_limits<int32_t>::max(), dims.back()));
  }
  return absl::OkStatus();
}

absl::Status StoreChoice(const std::string& value, const std::vector<std::string>& choices,
                         std::string& to) {
  for (const std::string& choice : choices) {
    if (value == choice) {
      to = value;
      return absl::OkStatus();
    }
  }
  std::string known;
  for (const std::string& choice : choices)
    absl::StrAppend(&known, known.empty() ? "" : ", ", choice);
  return Bad(absl::StrCat("want one of ", known, "; got '", value, "'"));
}

absl::Status StorePolicy(Options& o, const std::string& value) {
  o.policy = value;
  return Policy::Parse(value).status();
}

absl::Status StoreRange(Options& o, const std::string& value) {
  std::string name, range;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, range));
  std::vector<std::string> ends = absl::StrSplit(range, ':');
  if (ends.size() != 2) return Bad(absl::StrCat("want NAME=LOW:HIGH, got '", value, "'"));
  Range& r = o.ranges[name];
  ANEMONE_RETURN_IF_ERROR(StoreNumber(ends[0], r.low));
  ANEMONE_RETURN_IF_ERROR(StoreNumber(ends[1], r.high));
  return r.low <= r.high ? absl::OkStatus() : Bad("want LOW not above HIGH");
}

absl::Status StoreTolerance(Options& o, const std::string& value) {
  std::string name, number;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, number));
  if (name != "cosine" && name != "max_abs" && name != "max_rel") {
    return Bad(absl::StrCat("want cosine=, max_abs= or max_rel=, got '", name, "'"));
  }
  return StoreNumber(number, o.tolerance[name]);
}

absl::Status StoreInput(Options& o, const std::string& value) {
  size_t at = value.rfind('=');  // a name may begin with one
  if (at == std::string::npos || at + 1 == value.size()) {
    return Bad(absl::StrCat("want NAME=FILE, got '", value, "'"));
  }
  o.inputs.push_back(value);
  return absl::OkStatus();
}

std::vector<std::string> TargetNames() {
  std::vector<std::string> names = {"all"};
  for (const Target& t : AllTargets()) names.emplace_back(t.option_name());
  return names;
}
std::vector<std::string> RouteNames() { return {"netplist", "mil"}; }
std::vector<std::string> PolicyNames() { return {"maximal", "cpu", "refuse:"}; }
std::vector<std::string> DeviceNames() { return {"auto", "software"}; }
std::vector<std::string> NumericsNames() { return {"fast"}; }

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
     .arguments = "markdown|man",
     .min_arguments = 1,
     .max_arguments = 1,
     .brief = "Print this program's reference page.",
     .help = "docs/cli.md and the man page are made by it.",
     .run = DocsCommand,
     .hidden = true},
};

const Flag kFlags[] = {
    {.name = "target",
     .value = "NAME[,NAME...]",
     .commands = kReadsModel,
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
    {.name = "shape",
     .value = "INPUT=1x3x224x224",
     .commands = kReadsModel,
     .brief = "Bind the whole shape of an input.",
     .help = "For dimensions without a name, or with an awkward one. A scalar is `INPUT=scalar`.",
     .store = StoreShape},
    {.name = "route",
     .value = "ROUTE",
     .commands = kReadsModel,
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
     .store =
         [](Options& o, const std::string&) {
           o.rewrites = false;
           return absl::OkStatus();
         }},
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
     .commands = kRun | kBench,
     .fallback = "auto",
     .brief = "Where engine segments run: auto or software.",
     .help = "",
     .choices = DeviceNames,
     .store = [](Options& o,
                 const std::string& v) { return StoreChoice(v, DeviceNames(), o.device); }},
    {.name = "numerics",
     .value = "MODE",
     .commands = kRun | kBench,
     .fallback = "fast",
     .brief = "How the software engine computes: fast.",
     .help = "fp16 storage and rounding at unit boundaries, fp32 accumulation.",
     .choices = NumericsNames,
     .store = [](Options& o,
                 const std::string& v) { return StoreChoice(v, NumericsNames(), o.numerics); }},
    {.name = "threads",
     .value = "N",
     .commands = kRun | kBench,
     .fallback = "all cores",
     .brief = "One budget of threads for engine and CPU segments.",
     .help = "",
     .store = [](Options& o, const std::string& v) { return StoreInteger(v, 1, 1024, o.threads); }},
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
     .commands = kRun,
     .brief = "Read an input from a .npy or .pb file.",
     .help = "A .pb file holds one onnx.TensorProto. May be given several times.",
     .store = StoreInput},
    {.name = "seed",
     .value = "N",
     .commands = kRun | kBench,
     .fallback = "0",
     .brief = "Seed of random inputs.",
     .help = "",
     .store =
         [](Options& o, const std::string& v) {
           return StoreInteger(v, 0, std::numeric_limits<int64_t>::max(), o.seed);
         }},
    {.name = "range",
     .value = "NAME=LO:HI",
     .commands = kRun | kBench,
     .brief = "Range of a random input.",
     .help = "Both ends belong to it. May be given several times.",
     .store = StoreRange},
    {.name = "output-dir",
     .value = "DIR",
     .commands = kRun,
     .brief = "Write every output as .npy into this folder.",
     .help = "The folder is made if it is not there.",
     .store =
         [](Options& o, const std::string& v) {
           o.output_dir = v;
           return absl::OkStatus();
         }},
    {.name = "compare",
     .value = nullptr,
     .commands = kRun,
     .brief = "Compare with ONNX Runtime on the untouched file.",
     .help = "",
     .store =
         [](Options& o, const std::string&) {
           o.compare = true;
           return absl::OkStatus();
         }},
    {.name = "tolerance",
     .value = "MEASURE=X",
     .commands = kRun,
     .fallback = "cosine=0.999",
     .brief = "What --compare demands: cosine=, max_abs= or max_rel=.",
     .help = "If an output does not meet it the exit code is 3. A constant reference output is "
             "judged by max_rel, at most 0.01 unless given. May be given several times.",
     .store = StoreTolerance},
    {.name = "repeat",
     .value = "N",
     .commands = kRun | kBench,
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
     .store =
         [](Options& o, const std::string& v) {
           o.profile = v;
           return absl::OkStatus();
         }},
    {.name = "json",
     .value = nullptr,
     .commands = kReadsModel,
     .brief = "Print one JSON document on stdout, and nothing else there.",
     .help = "",
     .store =
         [](Options& o, const std::string&) {
           o.json = true;
           return absl::OkStatus();
         }},
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
     .commands = kReadsModel,
     .brief = "Print a line for every node.",
     .help = "",
     .store =
         [](Options& o, const std::string&) {
           o.verbose = true;
           return absl::OkStatus();
         },
     .letter = "v"},
};

constexpr const char* kPromisedCommands[] = {"confirm", "targets",  "units", "doctor",
                                             "convert", "compile",  "zoo",   "report",
                                             "diff",    "generate", "train"};
constexpr const char* kPromisedFlags[] = {"save-rejected", "memory-limit", "hazards",
                                          "device-limits", "bucket",       "compress"};

}  // namespace

absl::Span<const Command> Commands() { return kCommands; }
absl::Span<const Flag> Flags() { return kFlags; }
absl::Span<const char* const> PromisedCommands() { return kPromisedCommands; }
absl::Span<const char* const> PromisedFlags() { return kPromisedFlags; }

}  // namespace anemone
