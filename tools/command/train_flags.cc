#include "tools/command/train_flags.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/command/flag_values.h"

namespace anemone {
namespace {

constexpr int64_t kMostSteps = int64_t{1} << 40;

std::vector<std::string> OptimizerNames() { return {"sgd", "adam", "adamw"}; }
std::vector<std::string> MasterNames() { return {"pair", "fp16"}; }
std::vector<std::string> UpdateNames() { return {"engine", "cpu"}; }

template <auto Field>
absl::Status StoreRate(Options& o, const std::string& value) {
  double number = 0;
  ANEMONE_RETURN_IF_ERROR(StoreNumber(value, number));
  if (!(number >= 0)) return Bad(absl::StrCat("want a number from 0; got '", value, "'"));
  o.training.*Field = number;
  return absl::OkStatus();
}

}  // namespace

std::vector<Flag> TrainFlags() {
  return {
      {.name = "data",
       .value = "FILE.npz",
       .commands = kTrain,
       .brief = "The arrays of the inputs and labels, by name: a .npz file, or a folder of .npy.",
       .help = "Samples are along the first axis. They are taken in order and wrap round. The "
               "file is one of numpy.savez.",
       .store = KeepText<&Options::data>},
      {.name = "loss",
       .value = "LOSS",
       .commands = kTrain,
       .brief = "cross-entropy:LOGITS:LABELS, mse:OUTPUT:TARGET or output:NAME.",
       .help = "LOGITS, OUTPUT and NAME are outputs of the model; LABELS and TARGET are arrays of "
               "the data. Labels are class numbers, or the share of each class.",
       .store =
           [](Options& o, const std::string& v) {
             o.training.loss = v;
             return absl::OkStatus();
           }},
      {.name = "optimizer",
       .value = "NAME",
       .commands = kTrain,
       .fallback = "adam",
       .brief = "How weights are updated: sgd, adam or adamw.",
       .help = "",
       .choices = OptimizerNames,
       .store =
           [](Options& o, const std::string& v) {
             return StoreChoice(v, OptimizerNames(), o.training.optimizer);
           }},
      {.name = "lr",
       .value = "RATE",
       .commands = kTrain,
       .fallback = "0.001",
       .brief = "The learning rate.",
       .help = "",
       .store = StoreRate<&TrainingOptions::learning_rate>},
      {.name = "momentum",
       .value = "M",
       .commands = kTrain,
       .fallback = "0.9",
       .brief = "Momentum of sgd; 0 for none.",
       .help = "",
       .store = StoreRate<&TrainingOptions::momentum>},
      {.name = "beta1",
       .value = "B",
       .commands = kTrain,
       .fallback = "0.9",
       .brief = "Decay of the mean of gradients: adam, adamw.",
       .help = "",
       .store = StoreRate<&TrainingOptions::beta1>},
      {.name = "beta2",
       .value = "B",
       .commands = kTrain,
       .fallback = "0.999",
       .brief = "Decay of the mean of their squares: adam, adamw.",
       .help = "",
       .store = StoreRate<&TrainingOptions::beta2>},
      {.name = "epsilon",
       .value = "E",
       .commands = kTrain,
       .fallback = "1e-8",
       .brief = "Added to the root of the mean of squares: adam, adamw.",
       .help = "In fp16 it is at least about 2^-7 / (loss scale).",
       .store = StoreRate<&TrainingOptions::epsilon>},
      {.name = "weight-decay",
       .value = "D",
       .commands = kTrain,
       .fallback = "0.01",
       .brief = "Weight decay of adamw.",
       .help = "",
       .store = StoreRate<&TrainingOptions::weight_decay>},
      {.name = "steps",
       .value = "N",
       .commands = kTrain,
       .fallback = "100",
       .brief = "The number of updates, with those before --resume.",
       .help = "",
       .store = [](Options& o,
                   const std::string& v) { return StoreInteger(v, 1, kMostSteps, o.steps); }},
      {.name = "batch",
       .value = "N",
       .commands = kTrain,
       .brief = "Samples in a batch.",
       .help = "Binds the first dimension of the inputs, where it is free.",
       .store =
           [](Options& o, const std::string& v) {
             return StoreInteger(v, 1, int64_t{1} << 30, o.training.batch);
           }},
      {.name = "accumulate",
       .value = "N",
       .commands = kTrain,
       .fallback = "1",
       .brief = "Add the gradients of N batches before each update.",
       .help = "",
       .store =
           [](Options& o, const std::string& v) {
             int64_t count = 1;
             ANEMONE_RETURN_IF_ERROR(StoreInteger(v, 1, 65536, count));
             o.training.accumulate = static_cast<int>(count);
             return absl::OkStatus();
           }},
      {.name = "clip",
       .value = "NORM",
       .commands = kTrain,
       .brief = "Limit the norm of all gradients together.",
       .help = "",
       .store = StoreRate<&TrainingOptions::clip>},
      {.name = "loss-scale",
       .value = "S",
       .commands = kTrain,
       .fallback = "1024",
       .brief = "Multiply the loss by S before the gradients, so that small ones do not vanish.",
       .help = "It is divided out of the update, or cancels there. 1 to 32768.",
       .store = StoreRate<&TrainingOptions::loss_scale>},
      {.name = "train-only",
       .value = "PATTERN",
       .commands = kTrain,
       .brief = "Train only weights with these names: * and ?, separated by commas.",
       .help = "Without it, every float initializer that the loss depends on and that is no mask.",
       .store = [](Options& o, const std::string& v) -> absl::Status {
         if (v.empty()) return absl::InvalidArgumentError("want a value, got ''");
         o.training.train_only = v;
         return absl::OkStatus();
       }},
      {.name = "master",
       .value = "FORM",
       .commands = kTrain,
       .fallback = "pair",
       .brief = "How weights are kept: as a pair of fp16 numbers, or as one.",
       .help = "One fp16 number loses updates below half a unit of its last place.",
       .choices = MasterNames,
       .store =
           [](Options& o, const std::string& v) {
             std::string name;
             ANEMONE_RETURN_IF_ERROR(StoreChoice(v, MasterNames(), name));
             o.training.pair = name == "pair";
             return absl::OkStatus();
           }},
      {.name = "update",
       .value = "WHERE",
       .commands = kTrain,
       .fallback = "engine",
       .brief = "Where weights are updated: engine, or cpu in fp32.",
       .help = "With cpu, products that are gradients of weights are computed there too.",
       .choices = UpdateNames,
       .store =
           [](Options& o, const std::string& v) {
             std::string name;
             ANEMONE_RETURN_IF_ERROR(StoreChoice(v, UpdateNames(), name));
             o.training.update_on_cpu = name == "cpu";
             return absl::OkStatus();
           }},
      {.name = "shuffle",
       .value = nullptr,
       .commands = kTrain,
       .brief = "Take the samples of each pass in an order of its own.",
       .help = "It depends on --seed and the number of the pass.",
       .store = Set<&Options::shuffle, true>},
      {.name = "seed",
       .value = "N",
       .commands = kTrain,
       .fallback = "0",
       .brief = "Seed of --shuffle.",
       .help = "",
       .store = StoreSeed},
      {.name = "checkpoint",
       .value = "DIR",
       .commands = kTrain,
       .brief = "The folder of the checkpoint, metrics.jsonl and report.html.",
       .help = "It is created if needed. checkpoint.safetensors is replaced as a whole.",
       .store = KeepText<&Options::checkpoint>},
      {.name = "checkpoint-every",
       .value = "N",
       .commands = kTrain,
       .fallback = "100",
       .brief = "Write the checkpoint after every N updates, and at the end.",
       .help = "",
       .store =
           [](Options& o, const std::string& v) {
             return StoreInteger(v, 1, kMostSteps, o.checkpoint_every);
           }},
      {.name = "resume",
       .value = nullptr,
       .commands = kTrain,
       .brief = "Go on from the checkpoint, if there is one.",
       .help = "The result has the same bits as that of a training without a break.",
       .store = Set<&Options::resume, true>},
      {.name = "save-step",
       .value = "FILE.onnx",
       .commands = kTrain,
       .brief = "Also write the step as a model, for `anemone check` and other tools.",
       .help = "",
       .store = KeepText<&Options::save_step>},
  };
}

}  // namespace anemone
