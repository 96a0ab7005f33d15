// training_step: writes the step graph of a model, for scripts that compare its gradients
// (tests/importer/training/gradient_test.py).
//
//   training_step MODEL OUTPUT LOSS [OPTION=VALUE]...
//
// Options are fields of TrainingOptions. Prints JSON: the names of the loss, of the states and of
// the gradients, and the numbers of run 0 at the learning rate `rate`.
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/json.h"
#include "fallback/evaluator.h"
#include "fallback/ort_runtime.h"
#include "importer/training/training_step.h"
#include "importer/write/to_onnx.h"

namespace anemone {
namespace {

absl::Status Write(const std::string& path, const onnx::ModelProto& proto) {
  std::ofstream file(path, std::ios::binary);
  return proto.SerializeToOstream(&file) ? absl::OkStatus()
                                         : absl::UnknownError("cannot write " + path);
}

absl::Status Main(const std::string& input, const std::string& output, const std::string& loss,
                  std::map<std::string, std::string> words) {
  ANEMONE_ASSIGN_OR_RETURN(auto runtime, OrtRuntime::Open({.threads = 1}));
  const Evaluator evaluate = MakeEvaluator(runtime);
  ANEMONE_ASSIGN_OR_RETURN(Model model,
                           ImportFile(input, {.evaluate = evaluate, .simplify = false}));
  TrainingOptions options = {.loss = loss};
  double rate = 0.001;
  const std::map<std::string, double*> numbers = {{"momentum", &options.momentum},
                                                  {"beta1", &options.beta1},
                                                  {"beta2", &options.beta2},
                                                  {"epsilon", &options.epsilon},
                                                  {"loss_scale", &options.loss_scale},
                                                  {"weight_decay", &options.weight_decay},
                                                  {"clip", &options.clip},
                                                  {"rate", &rate}};
  for (const auto& [name, field] : numbers) {
    if (words.contains(name)) *field = std::stod(words[name]);
  }
  if (words.contains("optimizer")) options.optimizer = words["optimizer"];
  if (words.contains("train_only")) options.train_only = words["train_only"];
  if (words.contains("accumulate")) options.accumulate = std::stoi(words["accumulate"]);
  if (words.contains("pair")) options.pair = words["pair"] == "1";
  ANEMONE_ASSIGN_OR_RETURN(const TrainingStep step,
                           MakeTrainingStep(std::move(model), options, evaluate));
  ANEMONE_ASSIGN_OR_RETURN(const OnnxModel written,
                           ToOnnx(step.model.graph, {.external_from = kNeverExternal}));
  ANEMONE_RETURN_IF_ERROR(Write(output, written.proto));
  Json json = {{"loss", step.loss},
               {"gradients", step.gradients},
               {"states", Json::array()},
               {"weights", Json::array()},
               {"numbers", Json::array()}};
  for (const StepState& state : step.states) {
    json["states"].push_back({state.input, state.output});
  }
  for (const TrainedWeight& weight : step.weights) {
    json["weights"].push_back({weight.name, weight.value, weight.rest});
  }
  for (int run = 0; run < 2 * options.accumulate; ++run) {
    Json now;
    for (const auto& [name, tensor] : step.Numbers(run, rate)) now[name] = tensor.at<float>(0);
    json["numbers"].push_back(now);
  }
  std::cout << json.dump() << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace anemone

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::map<std::string, std::string> words;
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    const size_t equals = word.find('=');
    words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const absl::Status status = anemone::Main(argv[1], argv[2], argv[3], words);
  if (status.ok()) return 0;
  std::cerr << status.message() << "\n";
  return 1;
}
