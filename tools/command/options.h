// tools/command/options.h: what a command line asks for.
#ifndef ANEMONE_TOOLS_COMMAND_OPTIONS_H_
#define ANEMONE_TOOLS_COMMAND_OPTIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "anemone/settings.h"
#include "anemone/training.h"
#include "kernels/mil.h"

namespace anemone {

// Exit codes (docs/interface.md).
inline constexpr int kExitDone = 0;
inline constexpr int kExitRefused = 1;    // the model, data or environment was refused
inline constexpr int kExitUsage = 2;      // wrong usage
inline constexpr int kExitThreshold = 3;  // done, but a threshold the user set was not met

inline constexpr char kAdapterIsNotCompared[] =
    "--adapter: cannot be compared, because ONNX Runtime runs the model without it; drop --compare";

struct Range {
  double low = 0, high = 1;
};

struct Options {
  std::vector<std::string> arguments;  // models, or what else the command takes
  std::set<std::string> given;         // the names of the flags on the command line
  // Of a bucketed dimension, `dims` is the size of random inputs: SettingsOf().
  Settings settings;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  std::optional<double> require_engine_share;
  std::string save_rejected;        // check: the folder to write
  std::vector<std::string> inputs;  // "NAME=FILE", taken apart when the model's names are known
  std::map<std::string, Range> ranges;
  uint64_t seed = 0;
  std::string output_dir;
  std::vector<std::string> row_adapters;  // run: the name of each row's adapter
  std::string to = "netplist", output;    // convert: the format; the folder or file to write
  // convert: of a Core ML package
  std::string minimum_os;
  std::vector<std::string> image_inputs, states, metadata, descriptions;
  bool segments = false;
  std::string compress;  // compile: the form of its weights
  std::string weights;   // patch: the file with new ones
  bool verified_only = false, binary = false;
  bool compare = false, compile_only = false;
  std::map<std::string, double> tolerance;  // "cosine", "max_abs", "max_rel"
  int repeat = 1;
  std::string profile;
  MilCall call;                   // confirm: the operation asked for
  bool confirm_rewrites = false;  // confirm asks without, the other commands with
  std::string probe;
  std::string expected;  // confirm: the verdict that a script wants; "": any
  // generate: the prompt, and how tokens are chosen.
  std::vector<int64_t> tokens, stops;
  int64_t max_new = 32;
  double temperature = 0, top_p = 1, repetition_penalty = 1;
  int64_t top_k = 0;
  // zoo: what is done with each model, and the limits of a process.
  bool compile = false, run = false, retry_failed = false;
  std::string convert, executor = "local";
  int jobs = 1;
  double timeout = 0;
  int64_t process_memory = 0;
  TrainingOptions training;
  // train: the file or folder of arrays, the number of updates, and the folder of checkpoints,
  // which are written after every `checkpoint_every` updates.
  std::string data, checkpoint, save_step;
  int64_t steps = 100, checkpoint_every = 100;
  bool resume = false, shuffle = false;
  std::vector<std::string> setting_words;  // the flags that are settings, except --target
  std::string self_test;                   // doctor: a file of cases
  std::string plugin;  // doctor: its library; "": the one that came with the command
};

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_OPTIONS_H_
