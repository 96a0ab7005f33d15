// tests/fuzzers/fuzzers.h: the functions that libFuzzer calls with bytes, one for each kind of file
// or text that Anemone reads from others. A new reader of such bytes gets a row in the list of its
// file.
//
// A function must accept any bytes. What it finds is a crash, a hang, an error of a sanitizer, or
// Require() of something that does not hold.
#ifndef ANEMONE_TESTS_FUZZERS_FUZZERS_H_
#define ANEMONE_TESTS_FUZZERS_FUZZERS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tests/fuzzers/mutate_model.h"

namespace anemone {

struct Fuzzer {
  const char* name;
  void (*run)(absl::string_view bytes);
  // Valid inputs, from which libFuzzer starts.
  std::vector<std::string> (*seeds)();
  // The bytes are a model, whose fields are mutated too, not only bytes.
  std::optional<MessageKind> message = std::nullopt;
};

absl::Span<const Fuzzer> FormatFuzzers();   // formats.cc: files of the engine, arrays, options
absl::Span<const Fuzzer> PackageFuzzers();  // packages.cc
absl::Span<const Fuzzer> ModelFuzzers();    // models.cc
absl::Span<const Fuzzer> ProgramFuzzers();  // programs.cc: folders of programs, entries of caches
absl::Span<const Fuzzer> WeightFuzzers();   // weights.cc: weights, adapters, checkpoints
absl::Span<const Fuzzer> GraphFuzzers();    // graphs.cc: results of valid graphs

// The bytes of a file; none if it cannot be read.
std::string BytesIn(const std::string& path);

// Ends the process with `what` if `holds` is false.
void Require(bool holds, absl::string_view what);
// Of an error: it must have a message.
void RequireAnswer(const absl::Status& status);

}  // namespace anemone

#endif  // ANEMONE_TESTS_FUZZERS_FUZZERS_H_
