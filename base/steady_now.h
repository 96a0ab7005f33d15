// base/steady_now.h: a clock for durations. The machine's time may be set while a model runs, which
// would make a step take less than nothing, or a year.
#ifndef ANEMONE_BASE_STEADY_NOW_H_
#define ANEMONE_BASE_STEADY_NOW_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace anemone {

// The time of the first call, and what has passed since.
inline absl::Time SteadyNow() {
  using Clock = std::chrono::steady_clock;
  static const absl::Time began = absl::Now();
  static const Clock::time_point start = Clock::now();
  return began + absl::FromChrono(Clock::now() - start);
}

}  // namespace anemone

#endif  // ANEMONE_BASE_STEADY_NOW_H_
