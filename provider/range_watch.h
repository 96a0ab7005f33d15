// provider/range_watch.h: warns once of values that fp16 cannot hold: values that become infinite
// when they enter an engine segment, and values that leave one and are not finite.
//
// `anemone run --hazards` finds the unit in which it starts. This looks only at the tensors that
// are converted anyway, and counts in the conversion, until it has warned.
#ifndef ANEMONE_PROVIDER_RANGE_WATCH_H_
#define ANEMONE_PROVIDER_RANGE_WATCH_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/network.h"
#include "math/move/counted_convert.h"

namespace anemone {

// The node in which a value is read or computed: the operator if it is known, and the name of the
// value that the node computes. Both are "" if there is no such node.
struct WatchedNode {
  std::string op_type, makes;
};

// The node of the first unit that reads an input port.
WatchedNode ReaderOf(const Network& network, int input);
// The node of the unit that computes an output port; units that only change its shape are skipped.
WatchedNode MakerOf(const Network& network, int output);

// Thread-safe.
class RangeWatch {
 public:
  // `option` is how the user gives a policy: "the option policy=" or "--policy ".
  RangeWatch(std::string option, std::function<void(const std::string&)> warn)
      : option_(std::move(option)), warn_(std::move(warn)) {}

  // The tally for the conversion of an input or output: `tally`, or null if nothing more is told.
  math::Tally* ForInput(math::Tally& tally) { return input_told_ ? nullptr : &tally; }
  math::Tally* ForOutput(math::Tally& tally) { return output_told_ ? nullptr : &tally; }

  // Warns if the conversion of a value of so many elements met such numbers. `node` reads or
  // computes it.
  void Input(const math::Tally& tally, int64_t elements, absl::string_view name,
             const WatchedNode& node);
  void Output(const math::Tally& tally, int64_t elements, absl::string_view name,
              const WatchedNode& node);

 private:
  std::string Advice(const WatchedNode& node) const;

  const std::string option_;
  const std::function<void(const std::string&)> warn_;
  std::atomic<bool> input_told_{false}, output_told_{false};
};

// Texts that several threads add. Thread-safe.
class WarningTexts {
 public:
  void Add(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    texts_.push_back(text);
  }
  std::vector<std::string> All() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return texts_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_RANGE_WATCH_H_
