// tests/fuzz/reference.h: what ONNX Runtime says a graph computes, and how far a correct engine may
// be from it.
//
// The graph is run node by node in float32. Where the plan has a node on the engine, the values
// that enter and leave it obey the engine's rules of storage (numerics.json): an overflow beyond
// 65504 is an infinity, a NaN at a port is +infinity. That run is the centre. Others disturb every
// such value by as much as a rounding to fp16 may, in random directions, and one rounds to nearest;
// and one run for each value disturbs that alone, so that no two can cancel. A last one turns round
// each comparison whose operands those bring so near to each other that it may go either way. How
// far they come from the centre at an element of an output is what fp16 can do to it: steep
// functions and cancelling sums are allowed much, copies next to nothing. An element that becomes a
// NaN or an infinity in some runs and not in others is open: nothing is said of it.
#ifndef ANEMONE_TESTS_FUZZ_REFERENCE_H_
#define ANEMONE_TESTS_FUZZ_REFERENCE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/fuzz/graph.h"
#include "tests/fuzz/random.h"

namespace anemone::fuzz {

// Where the plan has a node.
struct Place {
  bool on_engine = false;
  int segment = -1;
  int units = 1;
};

// Every value in all runs, the centre first.
struct Runs {
  std::vector<Values> values;
  std::vector<Values> alone;                // one value disturbed
  std::map<std::string, std::string> open;  // values that a rule opens (rules.h), and its name
};

// Elements of comparisons' results that may go either way, by value.
using Ties = std::map<std::string, std::vector<int64_t>>;

class Reference {
 public:
  static absl::StatusOr<Reference> Make(const Runtime& runtime, const FuzzGraph& graph);

  // As ONNX Runtime alone computes it.
  const Values& Plain() const { return plain_; }
  // The centre and the disturbed runs, for these places of the nodes.
  absl::StatusOr<Runs> Disturbed(const std::vector<Place>& places) const;

 private:
  enum class How { kCentre, kRounded, kDisturbed, kUnbounded, kShaken, kAlone };
  struct Change {
    How how;
    std::string alone = {};                         // the value that kAlone disturbs
    std::vector<std::string>* disturbed = nullptr;  // told what could be, if asked
    const Ties* ties = nullptr;                     // to be turned round
  };
  absl::StatusOr<Values> Run(const std::vector<Place>& places, const std::vector<double>& inner,
                             const Change& change, Random& random) const;
  Ties FindTies(const Runs& runs) const;
  void AskRules(const std::vector<Place>& places, Runs& runs, std::vector<double>& inner) const;

  const FuzzGraph* graph_ = nullptr;
  Runtime runtime_;
  std::vector<std::unique_ptr<CpuSession>> sessions_;
  Values plain_;
};

// What an output has that it may not; empty if nothing. Counts elements that were compared, and
// those that were open.
struct Counts {
  int64_t compared = 0, open = 0;
};
std::string Disagreement(const std::string& name, const Tensor& got, const Runs& runs,
                         Counts& counts);

// The elements, of any type that graphs have; and the largest finite magnitude of them.
std::vector<double> NumbersOf(const Tensor& tensor);
double LargestOf(const std::vector<double>& numbers);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_REFERENCE_H_
