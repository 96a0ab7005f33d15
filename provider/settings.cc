#include "provider/settings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "base/threads.h"
#include "engine/numerics_mode.h"
#include "engine/target.h"
#include "fallback/ort_runtime.h"
#include "importer/read/constant_inputs.h"
#include "provider/setting_stores.h"

namespace anemone {
namespace {

const Setting kSettings[] = {
    {.name = "target",
     .flag = "target",
     .value = "NAME[,NAME...]",
     .type = "str",
     .entries = kReadsModel | kConfirm | kPlugin,
     .fallback = kDefaultTarget,
     .brief = "Check and compile for these targets.",
     .help = "A target or product name in any case (h13, m1-pro, A15); h13 is the M1's. "
             "`check` and `confirm` take several, separated by commas, or `all`. `anemone targets` "
             "lists them.",
     .choices = TargetNames,
     .store = StoreTarget,
     .key = TargetKey},
    {.name = "dims",
     .flag = "dim",
     .value = "NAME=N",
     .type = "Mapping[str, int]",
     .entries = kReadsModel | kPython,
     .fallback = "",
     .brief = "Give a free dimension of the model a size, as in batch=1.",
     .help = "For `convert --to mlpackage` also a range, as in seq=1..512: docs/coreml.md.",
     .store = StoreDim},
    {.name = "shapes",
     .flag = "shape",
     .value = "INPUT=1x3x224x224",
     .type = "Mapping[str, Sequence[int]]",
     .entries = kReadsModel | kPython,
     .fallback = "",
     .brief = "Give an input its whole shape.",
     .help = "For dimensions without a name. A scalar is `INPUT=scalar`; `?` leaves a dimension to "
             "--dim or --bucket.",
     .store = StoreShape},
    {.name = "overridable",
     .flag = "overridable",
     .value = "NAME[,NAME...]",
     .type = "Sequence[str] | str",
     .entries = (kReadsModel & ~kTrain) | kPython,
     .fallback = "",
     .brief = "Initializers that stay inputs, with a default, if the model also lists them as "
              "inputs.",
     .help = "Names, or `all`. Others are constants, which a run cannot give, as most exporters "
             "mean it: nodes that need a constant, such as convolutions, run on the CPU if it is "
             "an input. In models before IR version 4 all are constants.",
     .choices = [] { return std::vector<std::string>{kAllOverridable}; },
     .store = StoreOverridable,
     .key = OverridableKey},
    {.name = "adapters",
     .flag = "adapter",
     .value = "[NAME=]FILE",
     .type = "Mapping[str, str]",
     .entries = kGenerate | kRun | kPythonSession,
     .fallback = "",
     .brief = "Run with an adapter (LoRA): PEFT's .safetensors or ONNX Runtime's .onnx_adapter.",
     .help = "In Python files by name, one of which run() gets. On the command line the adapter "
             "without a name is that of all rows, and --row-adapters names others: "
             "docs/adapters.md.",
     .store = StoreAdapter},
    {.name = "adapter_rows",
     .flag = "adapter-rows",
     .value = nullptr,
     .type = "bool",
     .entries = kPythonSession,
     .fallback = "false",
     .brief = "Let each row of a batch have another adapter.",
     .help = "run() then takes a list of names, one for each row: docs/adapters.md.",
     .store = StoreSwitch<&Settings::adapter_rows>},
    {.name = "buckets",
     .flag = "bucket",
     .value = "NAME=N[,N...]",
     .type = "Mapping[str, Sequence[int]]",
     .entries = kCheck | kRun | kBench | kReport | kConvert | kPython,
     .fallback = "",
     .brief = "Compile a program for each of these sizes of a free dimension.",
     .help =
         "Inputs of another size are padded to the next larger size and outputs are cropped, "
         "where that is proven to be right; elsewhere the model is compiled for the exact size: "
         "docs/dynamic_shapes.md. `convert --to mlpackage` writes one package that takes these "
         "sizes only.",
     .store = StoreBucket},
    {.name = "max_plans",
     .flag = "max-plans",
     .value = "N",
     .type = "int",
     .entries = kPythonSession,
     .fallback = "8",
     .brief = "How many plans of exact sizes to keep: those used last.",
     .help = "A session plans a model with free dimensions again for the sizes of each run's "
             "arrays: docs/dynamic_shapes.md.",
     .store = StoreMaxPlans},
    {.name = "state",
     .flag = "state",
     .value = "PAST=PRESENT",
     .type = "Mapping[str, str] | str",
     .entries = kGenerate | kRun | kPythonSession,
     .fallback = "",
     .brief = "Keep a value between runs: the output PRESENT is the input PAST of the next run.",
     .help = "Zeros at first. `auto` pairs the names that exporters "
             "give, such as past_key_values.0.key and present.0.key, or h0 and hn: docs/state.md.",
     .store = StoreState},
    {.name = "last_logits",
     .flag = "last-logits",
     .value = nullptr,
     .type = "bool",
     .entries = kRun | kBench | kCheck | kPython,
     .fallback = "false",
     .brief = "Compute the output `logits` for the last token only.",
     .help =
         "Of batch x tokens x vocabulary it is then batch x 1 x vocabulary, and the nodes before "
         "it compute no other rows. `generate` does so by itself: docs/state.md.",
     .store = StoreSwitch<&Settings::last_logits>,
     .key = [](const Settings& s) { return std::string(s.last_logits ? "true" : "false"); }},
    {.name = "route",
     .flag = "route",
     .value = "ROUTE",
     .type = "str",
     .entries = kGenerate | kCheck | kRun | kBench | kTrain | kCompile | kConfirm | kDiff | kZoo |
                kReport | kPlugin | kPython,
     .fallback = "netplist",
     .brief = "Which compile path of the engine to ask: netplist or mil.",
     .help = "Networks authored directly (netplist) and Core ML's conversion (mil) have different "
             "rules.",
     .choices = RouteNames,
     .store = StoreRoute,
     .key = [](const Settings& s) { return s.route; }},
    {.name = "rewrites",
     .flag = "no-rewrites",
     .value = nullptr,
     .type = "bool",
     .entries = kReadsModel | kPlugin | kPython,
     .fallback = "true",
     .brief = "Do not let an operator become other units than its own.",
     .help = "",
     .brief_of_value = "Let an operator become other units than its own.",
     .store = StoreSwitch<&Settings::rewrites>,
     .key = [](const Settings& s) { return std::string(s.rewrites ? "true" : "false"); }},
    {.name = "policy",
     .flag = "policy",
     .value = "NAME",
     .type = "str",
     .entries = kReadsModel | kPlugin | kPython,
     .fallback = "max-engine",
     .brief = "What to keep off the engine: max-engine, latency, fewest-segments, cpu, "
              "refuse:UNIT[,UNIT...] or insist:RULE.",
     .help =
         "`max-engine` (or `maximal`) keeps nothing off the engine, `cpu` everything. `latency` "
         "gives the CPU what it is estimated to do faster, on targets whose CPU has published "
         "rates (docs/costs.md); on others it is `max-engine`. `fewest-segments` gives the CPU "
         "segments without multiply-adds. `refuse:Pooling` keeps that unit off "
         "(`anemone units` lists them), "
         "`refuse:node:NODE` one node, by its name, its id, or the name of one of its outputs. "
         "`insist:fp16-range` puts nodes on the engine whose values or constants are known to "
         "leave the range of fp16.",
     .choices = PolicyNames,
     .store = StorePolicy,
     .key = PolicyKey},
    {.name = "linear_layers",
     .flag = "linear-layers",
     .value = "FORM",
     .type = "str",
     .entries = kReadsModel | kPlugin | kPython,
     .fallback = "auto",
     .brief = "What chains of linear layers become: auto, convolutions or products.",
     .help =
         "convolutions: 1x1 convolutions where the target accepts them, the segment has no more "
         "units and the target's rates expect it to be faster. auto: convolutions, except in "
         "runs in fast mode on the software engine, whose products are faster. Nodes are placed "
         "the same either way: docs/performance.md.",
     .choices = LayerForms,
     .store = StoreLinearLayers,
     .key =
         [](const Settings& s) {
           return std::string(ConvolvesInRuns(s) ? "convolutions" : "products");
         }},
    {.name = "device",
     .flag = "device",
     .value = "NAME",
     .type = "str",
     .entries = kGenerate | kRun | kBench | kTrain | kCompile | kConfirm | kPlugin | kPythonSession,
     .fallback = "auto",
     .brief = "Where engine segments run: auto, software or apple.",
     .help = "`apple` is the engine of this Mac, which must be --target's; a segment that fails "
             "there is an error. `auto` uses it too if there is one, and the software engine for "
             "segments that fail there, with a warning. With `apple`, `confirm` asks it too: "
             "docs/apple.md.",
     .choices = DeviceNames,
     .store = StoreDevice},
    {.name = "numerics",
     .flag = "numerics",
     .value = "MODE",
     .type = "str",
     .entries = kGenerate | kRun | kBench | kTrain | kCompile | kPlugin | kPythonSession,
     .fallback = "fast",
     .brief = "How the software engine computes: fast or exact.",
     .help =
         "fast: values are stored and rounded as fp16 between units, sums are fp32. exact: every "
         "known rule of the target's arithmetic, to the bit. exact,RULE=OPTION[,...] sets rules "
         "that the sources leave open, as in exact,mac-tile=none; an unknown RULE or OPTION "
         "lists the valid ones.",
     .choices = NumericsNames,
     .store = StoreNumerics},
    {.name = "clamp_activations",
     .flag = "clamp-activations",
     .value = nullptr,
     .type = "bool",
     .entries = kReadsModel | kPlugin | kPython,
     .fallback = "false",
     .brief = "Limit values to the range of fp16 before softmax and layer normalization.",
     .help = "A value that became infinite is then 65504, so that it does not spread; other values "
             "do not change. Each such unit gets one more unit before it, and attention becomes "
             "products and a softmax instead of one unit.",
     .store = StoreSwitch<&Settings::clamp_activations>,
     .key = [](const Settings& s) { return std::string(s.clamp_activations ? "true" : "false"); }},
    {.name = "device_limits",
     .flag = "device-limits",
     .value = nullptr,
     .type = "bool",
     .entries = kRun | kTrain | kPythonSession,
     .fallback = "false",
     .brief = "Let the software device fail where the silicon would at run time.",
     .help =
         "About 119 compiles in a process, a pause after a failed compile, surfaces of one size "
         "and of at least 48 KiB (else evaluation fails with status 0x1d), and on the mil route "
         "ports in alphabetical order. The model runs without workarounds: "
         "docs/device_limits.md.",
     .store = StoreSwitch<&Settings::device_limits>},
    {.name = "heed_limits",
     .flag = "heed-limits",
     .value = nullptr,
     .type = "bool",
     .entries = kRun | kTrain | kPythonSession,
     .fallback = "false",
     .brief = "Work around the device's run-time limits: pad surfaces and bind ports by name.",
     .help = "With --device-limits, only limits without a workaround still fail.",
     .store = StoreSwitch<&Settings::heed_limits>},
    {.name = "cache",
     .flag = "no-cache",
     .value = nullptr,
     .type = "bool",
     .entries = kGenerate | kRun | kBench | kTrain | kPythonSession,
     .fallback = "true",
     .brief = "Do not use the cache of planned models.",
     .help = "It is in the user's cache folder: docs/cache.md.",
     .brief_of_value = "Keep planned models in a cache, and load them from there.",
     .store = StoreSwitch<&Settings::cache>},
    {.name = "threads",
     .flag = "threads",
     .value = "N",
     .type = "int",
     .entries = kGenerate | kRun | kBench | kTrain | kCompile | kPlugin | kPythonSession,
     .fallback = "0",
     .brief = "How many threads compute, for engine and CPU segments together.",
     .help = "0: one for each core. At most 1024.",
     .store = StoreThreads},
    {.name = "memory_limit",
     .flag = "memory-limit",
     .value = "BYTES",
     .type = "int | str",
     .entries = (kReadsModel & ~kZoo) | kPatch | kPlugin | kPython,
     .fallback = "0",
     .brief = "Refuse a model that needs more memory.",
     .help = "K, M and G (or KiB, MiB, GiB) are powers of 1024; KB, MB and GB are powers of 1000. "
             "It limits the constants that planning makes, before each is made, and then what the "
             "program needs, by an estimate before it is compiled: weights, values between nodes, "
             "and surfaces, for one run at a time. In each run it limits the tensors that are made "
             "outside the engine, and what ONNX Runtime takes for them; then ONNX Runtime gives "
             "memory back at once, which costs time. SECURITY.md says what does not count. 0: no "
             "limit.",
     .store = StoreMemoryLimit},
    {.name = "time_limit",
     .flag = "time-limit",
     .value = "SECONDS",
     .type = "float",
     .entries = (kReadsModel & ~kZoo) | kPatch | kPlugin | kPython,
     .fallback = "0",
     .brief = "End with an error if loading a model, or a run, takes longer.",
     .help = "Loading is reading, planning and compiling. The error names the node that was "
             "reached. Work stops between two nodes; one node, or one pass of planning over a "
             "segment, is not interrupted, and ends with the error afterwards. 0: no limit.",
     .store = StoreTimeLimit},
    {.name = "limits",
     .flag = "limit",
     .value = "NAME=VALUE",
     .type = "Mapping[str, int | str]",
     .entries = kReadsModel | kPatch | kPlugin | kPython,
     .fallback = "",
     .brief = "Change a limit of what a model may ask for, as in nodes=100000 or tensor-bytes=1G.",
     .help = "A model beyond a limit is refused, and the error names the limit. The limits are "
             "model-bytes, string-bytes, nesting, call-nesting, nodes, function-nodes, name-bytes, "
             "tensor-bytes, dense-bytes, folded-bytes, unrolled-nodes, list-elements, "
             "matrix-elements and kernel-elements; docs/options.md says what they limit, and their "
             "defaults. Bytes are written as for --memory-limit.",
     .choices = LimitNames,
     .store = StoreLimits},
};

}  // namespace

absl::Span<const Setting> AllSettings() { return kSettings; }

const Setting* FindSetting(absl::string_view name) {
  const auto found = std::find_if(std::begin(kSettings), std::end(kSettings),
                                  [&](const Setting& setting) { return name == setting.name; });
  return found == std::end(kSettings) ? nullptr : found;
}

void UseInstalledLibrary(Settings& settings, const std::string& path) {
  settings.ort_library = OrtLibraryOfEnvironment();
  if (settings.ort_library.empty()) settings.ort_library = path;
}

std::string LimitsText(const Settings& settings) {
  return absl::StrJoin(settings.limits, ",", absl::PairFormatter("="));
}

absl::StatusOr<PlanOptions> PlanOptionsOf(const Settings& settings) {
  ANEMONE_RETURN_IF_ERROR(RequireSizes(settings));
  ANEMONE_RETURN_IF_ERROR(Annotated(CheckModelLimits(settings.limits), "limits"));
  PlanOptions options{.rewrites = settings.rewrites};
  ANEMONE_ASSIGN_OR_RETURN(options.target, FindTarget(settings.target));
  ANEMONE_ASSIGN_OR_RETURN(options.route,
                           Named("route", settings.route, ParseRoute(settings.route)));
  ANEMONE_ASSIGN_OR_RETURN(options.policy,
                           Named("policy", settings.policy, Policy::Parse(settings.policy)));
  options.clamp_activations = settings.clamp_activations;
  std::string form;
  ANEMONE_RETURN_IF_ERROR(
      Annotated(StoreChoice(settings.linear_layers, LayerForms(), form), "linear_layers"));
  options.convolves_layers = form != "products";
  return options;
}

absl::StatusOr<PlanOptions> RunPlanOptionsOf(const Settings& settings) {
  ANEMONE_ASSIGN_OR_RETURN(PlanOptions options, PlanOptionsOf(settings));
  options.convolves_layers = ConvolvesInRuns(settings);
  return options;
}

absl::Status CheckRunSettings(const Settings& settings) {
  if (settings.device == "apple" && (settings.hazards || settings.device_limits)) {
    return absl::InvalidArgumentError(
        absl::StrCat("device 'apple': ", settings.hazards ? "hazards are" : "device limits are",
                     " found by the software engine only; use --device software"));
  }
  ANEMONE_RETURN_IF_ERROR(
      Annotated(CheckDevice(settings.device), absl::StrCat("device '", settings.device, "'")));
  ANEMONE_RETURN_IF_ERROR(
      Named("numerics", settings.numerics, NumericsMode::Parse(settings.numerics)).status());
  if (settings.threads < 0 || settings.threads > kMostThreads) {
    return absl::InvalidArgumentError(absl::StrCat("threads ", settings.threads, ": want 1 to ",
                                                   kMostThreads, ", or 0 for all cores"));
  }
  if (settings.adapter_rows && settings.adapters.empty()) {
    return absl::InvalidArgumentError("adapter_rows: there is no adapter; give adapters");
  }
  if (settings.max_plans < 1 || settings.max_plans > kMostPlans) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_plans ", settings.max_plans, ": want 1 to ", kMostPlans));
  }
  if (settings.memory_limit < 0) {
    return absl::InvalidArgumentError(absl::StrCat("memory_limit ", settings.memory_limit,
                                                   ": want a number of bytes, or 0 for no limit"));
  }
  ANEMONE_RETURN_IF_ERROR(Annotated(CheckModelLimits(settings.limits), "limits"));
  return Annotated(CheckTimeLimit(settings.time_limit),
                   absl::StrCat("time_limit ", settings.time_limit));
}

}  // namespace anemone
