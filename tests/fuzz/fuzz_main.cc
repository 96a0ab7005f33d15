// fuzz: runs random small graphs with Session and with ONNX Runtime; the results must agree.
//
//   fuzz --seed 1 --count 50000                        # every fault, and the totals
//   fuzz --seed 1 --first 1234 --count 1 --shrink --save DIR   # rerun one graph and shrink it
//   fuzz --seed 1 --count 500 --self-test              # does the comparison detect wrong graphs?
//
// Graph number K depends only on the seed and K. Graphs run in a forked child, so that a crash or a
// hang is reported with the graph's number, and the run continues. reference.h says what is
// compared and with which tolerance. Exit code: 0 if there was no fault, and the share of graphs
// with an engine segment (or, for --self-test, of detected wrong graphs) is at least --least-share.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "importer/write/to_onnx.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/maker.h"
#include "tests/fuzz/shrink.h"

namespace anemone::fuzz {
namespace {

constexpr unsigned kSecondsPerGraph = 60;
constexpr int64_t kGraphsPerChild = 500;
constexpr int kCpuPolicyOneIn = 4;
constexpr int kFaults = 8;

struct Options {
  uint64_t seed = 1;
  int64_t first = 0, count = 1000;
  std::vector<std::string> targets = {"h13", "h13", "h14", "h15", "h16", "h17", "h12", "h11"};
  bool shrink = false, self_test = false, print = false;
  std::string save;
  int least_share = 50;
};

// Memory that child and parent share.
struct Progress {
  int64_t next;  // the current graph
  bool is_made;  // before it is made, only ONNX Runtime runs its nodes
  int64_t graphs, empty, on_engine, nodes, refused, unmade;
  int64_t compared, open;
  int64_t faults[kFaults];
  int64_t noticed, missed;
};

// Runs `work` in a child process and returns how it ended.
enum class End { kDone, kCrash, kHang };
template <class Work>
End InChild(Work work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    work();
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return End::kDone;
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? End::kHang : End::kCrash;
}

Runtime OpenRuntime() {
  auto runtime = OrtRuntime::Open({.threads = 1});
  if (runtime.ok()) return *runtime;
  std::fprintf(stderr, "fuzz: %s\n", runtime.status().ToString().c_str());
  _exit(2);
}

void Save(const Options& options, int64_t number, const FuzzGraph& graph) {
  const Runtime runtime = OpenRuntime();
  const auto reference = Reference::Make(runtime, graph);
  if (!reference.ok()) return;
  const std::filesystem::path folder =
      std::filesystem::path(options.save) / absl::StrCat(options.seed, "-", number);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "model.onnx", std::ios::binary)
      << ModelOf(graph, reference->Plain()).SerializeAsString();
  for (const Leaf& leaf : graph.leaves) {
    onnx::TensorProto proto = ToProto(leaf.value);
    proto.set_name(leaf.name);
    if (!leaf.constant) {
      std::ofstream(folder / (leaf.name + ".pb"), std::ios::binary) << proto.SerializeAsString();
    }
  }
}

void Report(const Options& options, int64_t number, Fault fault, const std::string& text,
            const FuzzGraph& graph) {
  std::string operators;
  for (const auto& node : graph.nodes) absl::StrAppend(&operators, " ", node.op_type());
  std::printf("graph %lld (seed %llu): %s: %s [%s ]\n", static_cast<long long>(number),
              static_cast<unsigned long long>(options.seed), FaultName(fault), text.c_str(),
              operators.c_str());
  if (options.shrink) std::printf("%s\n", TextOf(graph).c_str());
  std::fflush(stdout);
  if (!options.save.empty()) Save(options, number, graph);
}

bool AsksCpuPolicy(int64_t number) { return number % kCpuPolicyOneIn == 0; }

void CheckOne(const Runtime& runtime, const Options& options, int64_t number, Progress& progress) {
  Made made = MakeGraph(runtime, options.seed, number, {options.targets});
  if (options.print) std::printf("%s\n", TextOf(made.graph).c_str());
  progress.is_made = true;
  progress.refused += made.refused;
  progress.nodes += static_cast<int64_t>(made.graph.nodes.size());
  if (made.graph.nodes.empty()) {
    ++progress.empty;
    return;
  }
  Outcome outcome = Check(runtime, made.graph, AsksCpuPolicy(number));
  progress.on_engine += outcome.on_engine ? 1 : 0;
  progress.compared += outcome.counts.compared;
  progress.open += outcome.counts.open;
  if (outcome.fault == Fault::kNone) return;
  ++progress.faults[static_cast<int>(outcome.fault)];
  if (options.shrink) {
    const Fault fault = outcome.fault;
    made.graph = Shrink(runtime, made.graph, [&](const FuzzGraph& candidate) {
      alarm(kSecondsPerGraph);
      const Outcome o = Check(runtime, candidate, fault == Fault::kCpuPolicy);
      if (o.fault == fault) outcome = o;
      return o.fault == fault;
    });
  }
  Report(options, number, outcome.fault, outcome.text, made.graph);
}

void TestSelf(const Runtime& runtime, const Options& options, int64_t number, Progress& progress) {
  const FuzzGraph graph = MakeGraph(runtime, options.seed, number, {options.targets}).graph;
  const std::vector<FuzzGraph> all = Neighbours(graph);
  if (all.empty()) return;
  Random random(options.seed, ~static_cast<uint64_t>(number));
  const FuzzGraph& changed = random.Pick(all);
  const Notice notice = Notices(runtime, graph, changed);
  if (notice == Notice::kNoticed) ++progress.noticed;
  if (notice != Notice::kMissed) return;
  ++progress.missed;
  if (options.print) {
    std::printf("graph %lld: not noticed\n%sis not\n%s\n", static_cast<long long>(number),
                TextOf(graph).c_str(), TextOf(changed).c_str());
  }
}

// Reports that a child ended while it processed graph `number`.
void ReportEnd(const Options& options, int64_t number, End end, Progress& progress) {
  if (!progress.is_made) {
    ++progress.unmade;
    return;
  }
  const Fault fault = end == End::kHang ? Fault::kHang : Fault::kCrash;
  ++progress.faults[static_cast<int>(fault)];
  InChild([&] {
    const Runtime runtime = OpenRuntime();
    FuzzGraph graph = MakeGraph(runtime, options.seed, number, {options.targets}).graph;
    if (options.shrink) {
      graph = Shrink(runtime, graph, [&](const FuzzGraph& candidate) {
        return InChild([&] {
                 alarm(kSecondsPerGraph);
                 Check(runtime, candidate, AsksCpuPolicy(number));
               }) == end;
      });
    }
    Report(options, number, fault, "", graph);
  });
}

int Main(const Options& options) {
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  Progress& progress = *new (shared) Progress{};
  const absl::Time start = absl::Now();
  const int64_t last = options.first + options.count;
  for (int64_t from = options.first; from < last;) {
    const int64_t to = std::min(last, from + kGraphsPerChild);
    progress.next = from;
    const End end = InChild([&] {
      const Runtime runtime = OpenRuntime();
      for (; progress.next < to; ++progress.next) {
        alarm(kSecondsPerGraph);
        progress.is_made = false;
        options.self_test ? TestSelf(runtime, options, progress.next, progress)
                          : CheckOne(runtime, options, progress.next, progress);
        ++progress.graphs;
      }
    });
    if (end != End::kDone) ReportEnd(options, progress.next++, end, progress);
    from = progress.next;
  }
  int64_t faults = 0;
  for (int64_t count : progress.faults) faults += count;
  const auto percent = [](int64_t part, int64_t whole) {
    return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::printf("%lld graphs in %.0f s", static_cast<long long>(progress.graphs),
              absl::ToDoubleSeconds(absl::Now() - start));
  double share = 0;
  if (options.self_test) {
    share = percent(progress.noticed, progress.noticed + progress.missed);
    std::printf("; of %s wrong graphs %.2f %% noticed",
                std::to_string(progress.noticed + progress.missed).c_str(), share);
  } else {
    share = percent(progress.on_engine, progress.graphs);
    std::printf(
        ", %.1f nodes each (%lld nodes refused by ONNX Runtime, which crashed on %lld; %lld graphs "
        "empty); %.1f %% with an engine segment; %lld elements compared, %.2f %% open",
        static_cast<double>(progress.nodes) / static_cast<double>(progress.graphs),
        static_cast<long long>(progress.refused), static_cast<long long>(progress.unmade),
        static_cast<long long>(progress.empty), share, static_cast<long long>(progress.compared),
        percent(progress.open, progress.open + progress.compared));
  }
  std::printf("; %lld faults", static_cast<long long>(faults));
  for (int f = 0; f < kFaults; ++f) {
    if (progress.faults[f] > 0) {
      std::printf(", %s %lld", FaultName(static_cast<Fault>(f)),
                  static_cast<long long>(progress.faults[f]));
    }
  }
  std::printf("\n");
  return faults == 0 && share >= options.least_share ? 0 : 1;
}

}  // namespace
}  // namespace anemone::fuzz

int main(int argc, char** argv) {
  anemone::fuzz::Options options;
  CLI::App app("Compares Session with ONNX Runtime on random small graphs.");
  app.add_option("--seed", options.seed);
  app.add_option("--first", options.first, "number of the first graph");
  app.add_option("--count", options.count, "number of graphs");
  app.add_option("--target", options.targets)->delimiter(',');
  app.add_flag("--shrink", options.shrink, "shrink graphs with a fault, and print them");
  app.add_option("--save", options.save, "write graphs with a fault, and their inputs, here");
  app.add_flag("--self-test", options.self_test,
               "compare with graphs that differ in one attribute, which must be detected");
  app.add_flag("--print", options.print, "print the graphs");
  app.add_option(
      "--least-share", options.least_share,
      "required percentage of graphs with an engine segment, or of detected wrong graphs");
  CLI11_PARSE(app, argc, argv);
  return anemone::fuzz::Main(options);
}
