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

// The value after which a unit is named: "y" of "y" and of "y#2".
absl::string_view ValueOf(absl::string_view unit);

// The name of the first unit that reads an input port, or "": that of the value which the unit
// makes, and perhaps '#' and a number.
std::string ReaderOf(const Network& network, int input);
// That of the unit that computes an output port; units that only change its shape are skipped.
std::string MakerOf(const Network& network, int output);

struct RangeWarning {
  bool enters = false;  // the engine, where the values become infinite; else they leave it
  int64_t count = 0, elements = 0;
  std::string value;
  std::string unit;  // that reads or computes the value; "" if there is none
};

// "2 of 64 values of 'y' are not finite, ...; node 'mul' (Mul) computes them: --policy
// refuse:node:y runs it on the CPU". `option` is how the user gives a policy: "the option
// policy=" or "--policy ". `node` is the model's node of the unit, "'mul' (Mul)", or "" if that is
// not known.
std::string RangeWarningText(const RangeWarning& warning, absl::string_view option,
                             absl::string_view node);

// Thread-safe.
class RangeWatch {
 public:
  explicit RangeWatch(std::function<void(RangeWarning)> warn) : warn_(std::move(warn)) {}

  // The tally for the conversion of an input or output: `tally`, or null if nothing more is told.
  math::Tally* ForInput(math::Tally& tally) { return input_told_ ? nullptr : &tally; }
  math::Tally* ForOutput(math::Tally& tally) { return output_told_ ? nullptr : &tally; }

  // Warns if the conversion of a value of so many elements met such numbers. `unit` reads or
  // computes it.
  void Input(const math::Tally& tally, int64_t elements, absl::string_view name,
             const std::string& unit);
  void Output(const math::Tally& tally, int64_t elements, absl::string_view name,
              const std::string& unit);

 private:
  const std::function<void(RangeWarning)> warn_;
  std::atomic<bool> input_told_{false}, output_told_{false};
};

// The warnings of a session's runs. Thread-safe.
class RangeWarnings {
 public:
  void Add(RangeWarning warning) {
    const std::lock_guard<std::mutex> lock(mutex_);
    warnings_.push_back(std::move(warning));
  }
  // `node_of` gives RangeWarningText() the node of the unit with this name. It is called once for
  // each warning.
  std::vector<std::string> Texts(const std::function<std::string(absl::string_view)>& node_of);

 private:
  std::mutex mutex_;
  std::vector<RangeWarning> warnings_;
  std::vector<std::string> texts_;  // of the first warnings
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_RANGE_WATCH_H_
