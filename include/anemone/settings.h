// anemone/settings.h: what a user can choose about how a model is planned, compiled and run. The
// options of the command, the provider options of the plugin and the keywords of the Python package
// are these settings, under the same names: docs/options.md.
//
//   auto session = anemone::Session::Load("net.onnx", {.target = "m1", .dims = {{"batch", 1}}});
//   auto report = anemone::Check("net.onnx", {.target = "m1,m4"});
//
// A function that does not compute (Check) ignores what only a run needs, such as `threads`.
#ifndef ANEMONE_SETTINGS_H_
#define ANEMONE_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace anemone {

inline constexpr char kDefaultTarget[] = "h13";
inline constexpr char kUsualPairs[] = "auto";  // a key of Settings::state

struct Settings {
  // A target or product name, in any case: "h13", "M1-Pro", "a15". Check() also takes several names
  // separated by commas, and "all".
  std::string target = kDefaultTarget;
  std::string route = "netplist";  // or "mil": which of the engine's compile paths is asked
  // Or "latency", "fewest-segments", "cpu", "refuse:UNIT[,UNIT...]", "insist:fp16-range":
  // docs/options.md.
  std::string policy = "max-engine";
  bool rewrites = true;  // an operator may become other units than its own
  // "convolutions": chains of linear layers become 1x1 convolutions where that is better; with
  // "products" they stay matrix products. "auto" is convolutions, except in a session that computes
  // in fast mode on the software engine, whose products are faster. Nodes are placed the same.
  std::string linear_layers = "auto";

  std::map<std::string, int64_t> dims;  // symbolic dimension -> size
  // Symbolic dimension -> smallest and largest size. Only a Core ML package of a whole model can
  // have them (docs/coreml.md); all else refuses them.
  std::map<std::string, std::pair<int64_t, int64_t>> dim_ranges;
  std::map<std::string, std::vector<int64_t>> shapes;  // input -> whole shape
  // Symbolic dimension -> sizes. Each size gets a program, which is made at its first use. Inputs
  // of another size are padded with zeros to the next larger size and outputs are cropped, where
  // that is proven to be right; elsewhere the model is compiled for the exact size:
  // docs/dynamic_shapes.md.
  std::map<std::string, std::vector<int64_t>> buckets;
  // A model with dimensions that are not bound and have no buckets is planned in each run whose
  // arrays have new sizes. This is the number of such plans that are kept: those used last.
  int max_plans = 8;

  // Name -> file of an adapter (LoRA), for Session::Run(): PEFT's .safetensors or ONNX Runtime's
  // .onnx_adapter. The one named "" is used in runs that name none: docs/adapters.md.
  std::map<std::string, std::string> adapters;
  // Each row of a batch may have another of them: Session::RunRows().
  bool adapter_rows = false;

  // Input -> the output that is its value in the next run. The session keeps the value, and the
  // input may be left out of Run(): docs/state.md. {kUsualPairs, ""} stands for the pairs whose
  // names exporters give, such as past_key_values.0.key and present.0.key.
  std::map<std::string, std::string> state;

  // Initializers that the model also lists as inputs, from IR version 4: those named here stay
  // inputs with a default, which a run may give; {"all"} stands for all. Others are constants:
  // a convolution whose kernel is an input runs on the CPU.
  std::vector<std::string> overridable;

  // The output `logits` of a language model, batch x tokens x vocabulary, is computed and returned
  // for the last token only. A Generator asks for that by itself: docs/state.md.
  bool last_logits = false;

  std::string device = "auto";  // or "software", "apple": docs/apple.md
  // "fast", or "exact": every known rule of the target's arithmetic. "exact,RULE=OPTION[,...]" sets
  // a rule that the sources leave open (numerics.json): "exact,mac-tile=none".
  std::string numerics = "fast";
  // Limits values to the range of fp16 before softmax and layer normalization, so that an infinity
  // there does not spread.
  bool clamp_activations = false;
  // The software device fails where the silicon would at run time: a limited number of compiles in
  // a process, a pause after a failed compile, surfaces of one size and of at least 48 KiB, and on
  // the mil route ports in alphabetical order (docs/device_limits.md).
  bool device_limits = false;
  // Works around those limits: pads surfaces to one size and binds ports by name.
  bool heed_limits = false;
  bool hazards = false;  // FindHazards() will be called; Run() may be slower and use more memory
  // Keep what was planned in the user's cache folder, and load it from there: docs/cache.md.
  bool cache = true;
  int threads = 0;  // one budget for engine and CPU segments; 0: all cores
  // In bytes; 0: none. Planning ends with kResourceExhausted before it makes constants that need
  // more. Then a program that needs more by an estimate (weights, values between nodes, and
  // surfaces, for one run at a time) is refused before it is compiled.
  int64_t memory_limit = 0;
  // In seconds; 0: none. Loading a model (reading, planning, compiling) and each run that takes
  // longer ends with kDeadlineExceeded, between two nodes: one node, and the parsing of a file,
  // cannot be stopped.
  double time_limit = 0;
  // Of what a model may ask for, by name: {{"nodes", 10000}, {"tensor-bytes", 1 << 30}}. Limits
  // that are not named have their defaults: docs/options.md. A model beyond one ends with
  // kResourceExhausted.
  std::map<std::string, int64_t> limits;

  // Path of ONNX Runtime's shared library, 1.23 or newer. If empty: the path in the environment
  // variable ANEMONE_ORT_LIBRARY, else the library that set-up found, else the system's.
  std::string ort_library;

  bool operator==(const Settings&) const = default;
};

}  // namespace anemone

#endif  // ANEMONE_SETTINGS_H_
