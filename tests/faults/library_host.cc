// tests/faults/library_host.cc: a program that uses the C++ library. Arguments: a model with the
// input x and the weight w of 3 x 16 x 16 and 8 x 3 x 3 x 3 numbers, and the .npy file of x.
#include <cstring>
#include <vector>

#include "anemone/session.h"
#include "tests/faults/host.h"

namespace {

absl::Status Work(const char* model, const char* input, std::string& output) {
  const std::vector<int64_t> dims = {1, 3, 16, 16}, weight_dims = {8, 3, 3, 3};
  std::vector<float> x(3 * 16 * 16);
  const std::string bytes = faults::EndOfFile(input, x.size() * sizeof(float));
  if (bytes.empty()) return absl::NotFoundError("x cannot be read");
  std::memcpy(x.data(), bytes.data(), bytes.size());
  const std::map<std::string, anemone::Tensor> inputs = {{"x", anemone::Tensor::Floats(dims, x)}};
  absl::StatusOr<anemone::Session> session = anemone::Session::Load(model, {.threads = 1});
  if (!session.ok()) return session.status();
  for (int i = 0; i < 2; ++i) {
    const auto made = session->Run(inputs);
    if (!made.ok()) return made.status();
    for (const float y : made->at("y").data<float>()) output += std::to_string(y);
    absl::Status updated = session->UpdateWeights(
        {{"w", anemone::Tensor::Floats(weight_dims, std::vector<float>(8 * 3 * 3 * 3, 0.5f))}});
    if (!updated.ok()) return updated;
  }
  return absl::OkStatus();
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  return faults::RunTwice([&](std::string& output) {
    const absl::Status status = Work(words[1], words[2], output);
    return status.ok() ? std::string() : status.ToString();
  });
}
