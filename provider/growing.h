// provider/growing.h: a state that grows, such as the keys and values of a decoder: each run
// appends rows to it. The rows are in a buffer, and a program is compiled for its capacity and not
// for each length: capacity and new rows together are 64, 128, ... rows. Unused rows are hidden by
// the model's own mask: an input as long as old and new rows together, in which a 0 is put for each
// of them: for 5 rows and a new one, with a capacity of 7, the mask 111111 becomes 11111 00 1.
//
// That this changes nothing is proven (importer/padding/padding.h) for the first and the last
// length of a capacity, or from the form of the graph if the caches are those of
// GroupQueryAttention (importer/padding/grouped_caches.h). Without a proof, runs have programs of
// their exact sizes.
#ifndef ANEMONE_PROVIDER_GROWING_H_
#define ANEMONE_PROVIDER_GROWING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "importer/padding/grouped_caches.h"
#include "importer/padding/padding.h"
#include "provider/buckets/bucketed.h"
#include "provider/buckets/bucketing.h"
#include "provider/load_setup.h"
#include "provider/loaded_model.h"
#include "provider/run_inputs.h"
#include "provider/state_pairs.h"

namespace anemone {

// Thread-safe; shared by the forks of a session.
class Growing {
 public:
  // A pair whose output is longer than its input along one axis: the old rows, then new ones.
  struct Cache : CachePorts {
    size_t pair = 0;
    size_t axis = 0;
  };

  // Null: the model has no such pair, or none whose sizes have names.
  static std::shared_ptr<Growing> Of(const LoadSetup& setup,
                                     std::shared_ptr<const LoadedModel> model,
                                     absl::Span<const StatePair> pairs);

  const std::vector<Cache>& caches() const { return caches_; }

  // One run: a program whose outputs have the new rows in place of the caches, and its inputs.
  struct Job {
    std::shared_ptr<const LoadedModel> program;
    NamedValues inputs;  // those of caches are fills, which the run ignores
    int64_t rows = 0;    // of the capacity, and new ones
  };
  // `given` has values for all inputs, and for caches values of their length (or fills).
  // The program has `at_least` rows or more. Nullopt: run the model at the exact sizes; refusal()
  // says why. Errors: those of making a program.
  absl::StatusOr<std::optional<Job>> Prepare(const NamedValues& given, int64_t at_least);

  // Makes the programs that `before` has, of another model with the same ports, or takes them if
  // `adopt` accepts them. An error of `check` ends it.
  absl::Status MakeThoseOf(
      Growing& before, const Adopt& adopt,
      const std::function<absl::Status(const LoadedModel& theirs, const LoadedModel& ours)>& check);

  // Why caches are not kept in place; "" if they are, or before the first run.
  std::string refusal();

 private:
  struct Program {
    std::shared_ptr<const LoadedModel> model;  // null: not proven
    std::vector<MaskCondition> masks;
  };
  struct Sizes {
    int64_t past = 0, fresh = 0, capacity = 0;
    int64_t rows() const { return capacity + fresh; }
  };

  Growing(const LoadSetup& setup, std::shared_ptr<const LoadedModel> model,
          std::vector<Cache> caches, std::vector<MaskPort> masks);
  const Graph& graph() const { return model_->graph(); }
  std::optional<Sizes> SizesOf(const NamedValues& given, int64_t at_least) const;
  InputShapes ShapesAt(const NamedValues& given, const Sizes& sizes, int64_t past) const;
  ImportOptions ImportingAt(const NamedValues& given, const Sizes& sizes, int64_t past) const;
  absl::StatusOr<Program> ProgramOf(const NamedValues& given, const Sizes& sizes,
                                    const EarlierProgram& earlier = {});
  std::optional<Program> Find(const InputShapes& shapes);
  absl::StatusOr<Program> Make(const NamedValues& given, const Sizes& sizes,
                               const EarlierProgram& earlier);
  std::vector<CachePorts> CachesOf() const { return {caches_.begin(), caches_.end()}; }
  absl::Status ProveGrouped(Program& program) const;
  absl::Status Prove(const NamedValues& given, const Sizes& sizes, Program& program) const;
  absl::Status AppendRows(Graph& made) const;
  void Refuse(std::string why);

  const LoadSetup setup_;
  const std::shared_ptr<const LoadedModel> model_;
  const std::vector<Cache> caches_;
  const std::vector<MaskPort> masks_;
  const bool grouped_;  // the caches are those of GroupQueryAttention

  std::mutex making_;                                    // held while making a program
  std::mutex mutex_;                                     // guards the members below
  std::list<std::pair<InputShapes, Program>> programs_;  // most recently used first
  std::string refusal_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_GROWING_H_
