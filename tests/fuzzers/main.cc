// fuzzers: runs one function of fuzzers.h on many inputs.
//
//   fuzzers --target=mil --seeds=DIR        writes the function's seeds to DIR
//   fuzzers --target=mil FILE...            runs it on files, and prints how many
//   fuzzers --list                          prints the names of all functions
//
// If the compiler has libFuzzer, its options and folders may follow (`-max_total_time=60 CORPUS`);
// libFuzzer ignores options with two dashes. tools/fuzz runs all functions that way.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/fuzzers/fuzzers.h"

namespace anemone {

std::string BytesIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Require(bool holds, absl::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "fuzzers: %s\n", std::string(what).c_str());
  std::abort();
}

void RequireAnswer(const absl::Status& status) {
  Require(status.ok() || !status.message().empty(), "an error without a message");
}

namespace {

const Fuzzer* chosen = nullptr;

std::vector<Fuzzer> AllFuzzers() {
  std::vector<Fuzzer> all;
  for (const auto& some : {FormatFuzzers(), PackageFuzzers(), ProgramFuzzers(), ModelFuzzers(),
                           WeightFuzzers(), GraphFuzzers()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

void WriteSeeds(const std::string& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const std::string& seed : chosen->seeds()) {
    std::ofstream(absl::StrCat(folder, "/seed", number++), std::ios::binary) << seed;
  }
}

// Reads our own options. Ends the process after --list and --seeds.
void Begin(int argc, char** argv) {
  static const std::vector<Fuzzer>& all = *new std::vector<Fuzzer>(AllFuzzers());
  std::string seeds;
  for (int i = 1; i < argc; ++i) {
    absl::string_view word = argv[i];
    if (word == "--list") {
      for (const Fuzzer& fuzzer : all) std::printf("%s\n", fuzzer.name);
      std::exit(0);
    }
    if (absl::ConsumePrefix(&word, "--target=")) {
      for (const Fuzzer& fuzzer : all) {
        if (fuzzer.name == word) chosen = &fuzzer;
      }
    } else if (absl::ConsumePrefix(&word, "--seeds=")) {
      seeds = std::string(word);
    }
  }
  Require(chosen != nullptr, "want --target=NAME with a name of --list");
  if (seeds.empty()) return;
  WriteSeeds(seeds);
  std::exit(0);
}

}  // namespace
}  // namespace anemone

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  anemone::chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}

#ifdef ANEMONE_LIBFUZZER

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  anemone::Begin(*argc, *argv);
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  if (anemone::chosen->message && seed % 4 != 0) {
    const std::string changed = anemone::MutatedModel({reinterpret_cast<const char*>(data), size},
                                                      seed, *anemone::chosen->message);
    if (!changed.empty() && changed.size() <= max_size) {
      std::copy(changed.begin(), changed.end(), data);
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

#else

int main(int argc, char** argv) {
  anemone::Begin(argc, argv);
  int count = 0;
  const auto run = [&](const std::filesystem::path& path) {
    const std::string bytes = anemone::BytesIn(path);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++count;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with("-")) continue;
    if (!std::filesystem::is_directory(word)) {
      run(word);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(word)) run(entry.path());
  }
  std::printf("%s: %d inputs\n", anemone::chosen->name, count);
  return 0;
}

#endif
