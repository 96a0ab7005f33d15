// Valid graphs, whose bytes are the choices of tests/fuzz: which operators, attributes and shapes.
// The whole way from the model to the results, compared with ONNX Runtime.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/graph.h"
#include "tests/fuzz/maker.h"
#include "tests/fuzzers/fuzzers.h"

namespace anemone {
namespace {

constexpr int kCpuPolicyOneIn = 4;

fuzz::Runtime OpenedRuntime() {
  auto runtime = OrtRuntime::Open({.threads = 1});
  Require(runtime.ok(), runtime.status().ToString());
  return *std::move(runtime);
}

void RunGraph(absl::string_view bytes) {
  static const fuzz::Runtime& runtime = *new fuzz::Runtime(OpenedRuntime());
  const fuzz::Made made = fuzz::MakeGraph(runtime, fuzz::Random(bytes),
                                          {{"h11", "h12", "h13", "h14", "h15", "h16", "h17"}});
  if (made.graph.nodes.empty()) return;
  const bool cpu_policy = bytes.size() % kCpuPolicyOneIn == 0;
  const fuzz::Outcome outcome = fuzz::Check(runtime, made.graph, cpu_policy);
  if (outcome.fault == fuzz::Fault::kNone) return;
  std::fprintf(stderr, "%s\n", fuzz::TextOf(made.graph).c_str());
  Require(false, absl::StrCat(fuzz::FaultName(outcome.fault), ": ", outcome.text));
}

std::vector<std::string> Choices() {
  std::vector<std::string> seeds;
  for (uint64_t number = 0; number < 16; ++number) {
    fuzz::Random random(1, number);
    std::string& seed = seeds.emplace_back();
    for (int i = 0; i < 64; ++i) seed.push_back(static_cast<char>(random.Below(256)));
  }
  return seeds;
}

constexpr Fuzzer kGraphFuzzers[] = {{"graph", RunGraph, Choices}};

}  // namespace

absl::Span<const Fuzzer> GraphFuzzers() { return kGraphFuzzers; }

}  // namespace anemone
