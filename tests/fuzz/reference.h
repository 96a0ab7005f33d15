// tests/fuzz/reference.h: computes a graph's outputs with ONNX Runtime, and the error that a
// correct engine may have.
//
// The graph is run node by node in float32. For nodes that the plan puts on the engine, the values
// that they read and write obey the engine's storage rules (numerics.json): an overflow beyond
// 65504 is an infinity, and a NaN at a port is +infinity. That run is the center. Further runs
// perturb these values by at most one rounding to fp16: several perturb all values in random
// directions, one rounds to nearest, and one run per value perturbs only that value, so that no two
// perturbations can cancel. A last run inverts each comparison whose operands are within the
// perturbation of each other, so that it may have either result. The distance of these runs from
// the center, for each output element, is the effect of fp16. So steep functions and cancelling
// sums have a large tolerance, copies almost none. An element that is a NaN or an infinity in some
// runs only is open: it is not compared.
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

// Where the plan puts a node.
struct Place {
  bool on_engine = false;
  int segment = -1;
  int units = 1;
};

// Every value in all runs, the center first.
struct Runs {
  std::vector<Values> values;
  std::vector<Values> alone;                // only one value perturbed
  std::map<std::string, std::string> open;  // values excluded by a rule (rules.h), and its name
};

// Result elements of comparisons that may be true or false, by value.
using Ties = std::map<std::string, std::vector<int64_t>>;

class Reference {
 public:
  static absl::StatusOr<Reference> Make(const Runtime& runtime, const FuzzGraph& graph);

  // The results of ONNX Runtime without perturbations.
  const Values& Plain() const { return plain_; }
  // The center and the perturbed runs, for these places of the nodes.
  absl::StatusOr<Runs> Disturbed(const std::vector<Place>& places) const;

 private:
  enum class How { kCentre, kRounded, kDisturbed, kUnbounded, kShaken, kAlone };
  struct Change {
    How how;
    std::string alone = {};  // the value that kAlone perturbs
    std::vector<std::string>* disturbed =
        nullptr;                 // if set, receives the values that can be perturbed
    const Ties* ties = nullptr;  // comparisons to invert
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

// Describes the first error in an output; empty if there is none. Counts the elements that were
// compared and the open ones.
struct Counts {
  int64_t compared = 0, open = 0;
};
std::string Disagreement(const std::string& name, const Tensor& got, const Runs& runs,
                         Counts& counts);

// The elements of a tensor, of any type that graphs use; and their largest finite magnitude.
std::vector<double> NumbersOf(const Tensor& tensor);
double LargestOf(const std::vector<double>& numbers);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_REFERENCE_H_
