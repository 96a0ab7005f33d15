// tests/apple/standin/model.h: what a model of the stand-in computes, without Objective-C.
#ifndef ANEMONE_TESTS_APPLE_STANDIN_MODEL_H_
#define ANEMONE_TESTS_APPLE_STANDIN_MODEL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/apple/driver.h"

namespace anemone {
class Program;
}

namespace anemone::standin {

using apple::Error;
using apple::LivePort;

struct Memory {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// The machine's chip, "Apple M1".
std::string ChipName();

class Model {
 public:
  Model(bool is_mil, std::string text, std::map<std::string, std::string> weights);
  ~Model();

  const std::string& identifier() const { return identifier_; }
  const std::string& folder() const { return folder_; }
  // Reads the files of the folder. An error is the compiler's message; "" if it has none.
  Error Compile();
  Error Load();
  bool is_loaded() const { return program_ != nullptr; }
  const std::vector<LivePort>& inputs() const { return inputs_; }
  const std::vector<LivePort>& outputs() const { return outputs_; }
  // The memory of each live port, in the order of the live lists.
  Error Evaluate(const std::vector<Memory>& inputs, const std::vector<Memory>& outputs);
  void Unload();

 private:
  const bool is_mil_;
  const std::string text_;
  const std::map<std::string, std::string> weights_;  // file name -> bytes
  std::string identifier_, folder_;
  bool is_compiled_ = false;
  std::unique_ptr<Program> program_;
  std::vector<LivePort> inputs_, outputs_;
  std::vector<int> input_ports_, output_ports_;  // by live port: the program's
};

}  // namespace anemone::standin

#endif  // ANEMONE_TESTS_APPLE_STANDIN_MODEL_H_
