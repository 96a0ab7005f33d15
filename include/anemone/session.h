// anemone/session.h: runs one ONNX model on one target.
//
//   auto s = anemone::Session::Load("net.onnx", {.target = "m1"});
//   if (!s.ok()) return Fail(s.status());          // says which node, and what to do
//   auto y = s->Run({{"x", image}});               // y->at("probs"): 1x1000, float32
//   std::cout << s->PlanText();                    // where each node ran, and why
//
// A model whose inputs have free dimensions is planned in the first run of each size.
// Run() may be called from many threads; inputs are borrowed until it returns.
// In a child that fork() made, a session cannot be used (kFailedPrecondition): load one there.
// With Settings::state the session keeps values between runs:
//
//   auto stream = anemone::Session::Load("net.onnx", {.state = {{"h0", "hn"}}});
//   auto first = stream->Run({{"x", image}});  // h0 is zeros, hn is kept
//   auto next = stream->Run({{"x", image}});   // h0 is what hn was
//   auto kept = stream->ReadState("h0");
//
// Check ok() first: `Session::Load(p)->Run(...)` aborts the process if Load() failed.
#ifndef ANEMONE_SESSION_H_
#define ANEMONE_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "anemone/hazard.h"
#include "anemone/onnx_value.h"
#include "anemone/settings.h"
#include "anemone/tensor.h"

namespace anemone {

enum class PortKind { kTensor, kSequence, kOptional, kMap, kOther };

// An input or output of the model. A size of -1 is known only at run time.
struct PortInfo {
  std::string name;
  DataType type = DataType::kUndefined;  // of the innermost elements; of a map, of its values
  std::vector<int64_t> dims;             // of a tensor
  bool has_default = false;              // may be left out of Run()
  PortKind kind = PortKind::kTensor;
  std::string type_text;  // "float32", "optional(sequence(float32))", "map(int64, float32)"
};

// Milliseconds spent in Load(), and in planning for the sizes of later runs.
struct LoadTimes {
  double load = 0;  // read, checked, simplified
  double plan = 0;
  double compile = 0;  // programs and CPU sessions created
};

struct PlanSummary {
  std::string target;  // the name of the target, "h13", even if a product was given ("M1")
  int engine_segments = 0, cpu_segments = 0;
  // Nullopt if a size that they depend on is not known.
  std::optional<int64_t> macs = 0, engine_macs = 0;
  std::optional<double> engine_macs_share;  // nullopt too if there are no MACs
  int warnings = 0, warned_nodes = 0;       // a warning may be about another place than a node
};

// The program that a run of a session with buckets uses.
struct BucketUse {
  std::map<std::string, int64_t> sizes;   // of the inputs
  std::map<std::string, int64_t> bucket;  // the sizes it is compiled for: a bucket, or `sizes`
  bool padded = false;                    // inputs are padded and outputs cropped
  std::string refusal;  // why no bucket was used: the node and the reason; "" if one was
};

class CurrentModel;  // provider/weights/current_model.h
class KeptState;     // provider/kept_state.h
struct LoadSetup;    // provider/load_setup.h
class Surfaces;      // anemone/surfaces.h

class Session {
 public:
  // Errors: kNotFound (no file, no such target, no ONNX Runtime for a CPU segment),
  // kInvalidArgument (the model breaks ONNX's rules, an option's value is unknown), kDataLoss
  // (damaged file), kResourceExhausted (also if the limit of compiles per process is reached),
  // kUnavailable (the device needs a pause after a failed compile), kUnimplemented. If dimensions
  // of the inputs are free, a run can have these errors too.
  static absl::StatusOr<Session> Load(const std::string& path, const Settings& settings = {});
  // The same from memory, which is borrowed until Load returns; external data is refused.
  static absl::StatusOr<Session> LoadBytes(absl::string_view model, const Settings& settings = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // With Settings::state, an input of a pair has a default (its state), and the outputs are those
  // that Run() returns: without the outputs of pairs.
  const std::vector<PortInfo>& inputs() const;
  const std::vector<PortInfo>& outputs() const;
  // Inputs of the model's file that Run() does not take: they are initializers too, so they are
  // constants (Settings::overridable).
  std::vector<std::string> ConstantInputs() const;

  // Takes every input by name, except inputs with a default, and returns every output by name.
  // Types and shapes must be those of inputs(); a size of -1 may be any. `adapter` is a name of
  // Settings::adapters. Errors: kInvalidArgument naming the input or adapter, kFailedPrecondition
  // if an output is not a tensor, or the error of a segment.
  absl::StatusOr<std::map<std::string, Tensor>> Run(const std::map<std::string, Tensor>& inputs,
                                                    const std::string& adapter = "") const;

  // The same for values of every kind. An optional may be left without a value: OnnxValue().
  absl::StatusOr<std::map<std::string, OnnxValue>> RunValues(
      const std::map<std::string, OnnxValue>& inputs, const std::string& adapter = "") const;

  // The same for a batch in which each row has an adapter of its own: row i of the first dimension
  // has adapters[i]; "" is as in Run(). Needs Settings::adapter_rows (else kFailedPrecondition).
  // kInvalidArgument: there are more or fewer names than rows. In the first run of each size,
  // kFailedPrecondition: it is not proven that the rows stay apart: docs/adapters.md.
  absl::StatusOr<std::map<std::string, OnnxValue>> RunRows(
      const std::map<std::string, OnnxValue>& inputs,
      const std::vector<std::string>& adapters) const;

  // The same as Run(); appends one Chrome trace event per segment, crossing and unit to `trace`
  // (JSON objects, comma separated, without the enclosing brackets).
  absl::StatusOr<std::map<std::string, Tensor>> RunTraced(
      const std::map<std::string, Tensor>& inputs, std::string* trace) const;

  // Runs the model, and reports where values exceed what fp16 can represent, in the order of the
  // plan. Sums and products are computed about twice. Values are those of `fast` numerics. Needs
  // Settings::hazards (else kFailedPrecondition).
  absl::StatusOr<std::vector<Hazard>> FindHazards(
      const std::map<std::string, Tensor>& inputs) const;

  // Puts new values in the place of initializers of the model, by their names, for all later runs;
  // what was computed from them at load follows, and the plan stays. Types and shapes must be those
  // of the file. Thread-safe: a run that has begun ends on the old values. On an error
  // nothing has changed. Errors: kInvalidArgument (a name, type or shape is wrong, or there are NaN
  // or infinities where the model has none), kFailedPrecondition (a value decides what is compiled,
  // for example because it is a parameter of a unit; load a model with it instead), and those of
  // Load(). A state stays. docs/weights.md
  absl::Status UpdateWeights(const std::map<std::string, Tensor>& weights);

  // Warnings of the runs so far, each at most once: values that became infinite when they entered
  // the engine, and values that left it and are not finite. Each names the value, the numbers of
  // elements, the model's node, and the option that runs this node on the CPU.
  std::vector<std::string> RunWarnings() const;

  // The state of this session (Settings::state; without it there is none): for each pair the value
  // that its input has in the next run if Run() is not given one. At first, and after ResetState(),
  // zeros; a run that succeeds sets it to the output's value, one that is given the input's value
  // replaces it. A value that only the engine makes and reads stays in its surfaces between runs;
  // the bits are those of passing it by hand. Runs of a session with state wait for each other.
  //
  // The pairs, also those found by usual names: input -> output.
  std::map<std::string, std::string> StatePairs() const;
  // By the input's name. Errors: kNotFound (no such pair); of reading, kFailedPrecondition (zeros
  // of a shape that the first run decides); of writing, kInvalidArgument (another type or shape).
  void ResetState();
  absl::StatusOr<Tensor> ReadState(const std::string& input) const;
  absl::Status WriteState(const std::string& input, const Tensor& value);
  // Why a state that grows is planned again for each length: docs/state.md. "" if it is not, or
  // before the first run.
  std::string GrowthRefusal() const;
  // A session of the same programs with a state of its own, which is zeros. Costs no compile.
  Session Fork() const;

  // Memory of the engine for these inputs and outputs, which runs read and write without a copy:
  // anemone/surfaces.h. Errors: kInvalidArgument (no such port), kFailedPrecondition (its value is
  // not only in the engine's memory, dimensions are free, or the session keeps a state).
  absl::StatusOr<Surfaces> MakeSurfaces(const std::vector<std::string>& ports) const;

  // The program that Run() uses for these inputs. It is compiled now if it does not exist yet.
  // kFailedPrecondition if the session has no buckets.
  absl::StatusOr<BucketUse> UseOf(const std::map<std::string, Tensor>& inputs) const;

  // With free dimensions, the plan of the sizes used last; before the first run the texts say that
  // there is none yet, and PlanJson() is what Check() finds out without sizes. With buckets, the
  // plans of all of them.
  //
  // "M1: 97.3 % of MACs on the engine, 1 segment, 2 nodes on the CPU": at most 80 columns, without
  // a line break. With buckets: a line for each.
  std::string PlanLine() const;
  // Lines have at most `width` columns.
  std::string PlanText(bool every_node = false, int width = 80) const;
  std::string PlanJson() const;  // one item of `targets` in check.json; with buckets, their list
  PlanSummary Summary() const;   // with several sizes: of the program used last, zeros before it
  LoadTimes times() const;       // with several sizes: of all programs made so far

 private:
  Session(std::shared_ptr<CurrentModel> model, std::unique_ptr<KeptState> state);
  static absl::StatusOr<Session> Of(const LoadSetup& setup);
  absl::StatusOr<std::map<std::string, OnnxValue>> WithAll(
      const std::map<std::string, Tensor>& inputs) const;
  std::shared_ptr<CurrentModel> model_;
  std::unique_ptr<KeptState> state_;
};

}  // namespace anemone

#endif  // ANEMONE_SESSION_H_
