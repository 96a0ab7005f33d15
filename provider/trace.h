// provider/trace.h: records the steps of a run as Chrome trace events (chrome://tracing, Perfetto).
#ifndef ANEMONE_PROVIDER_TRACE_H_
#define ANEMONE_PROVIDER_TRACE_H_

#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace anemone {

// Collects complete events (phase "X"). Thread-safe.
class Trace {
 public:
  void Add(absl::string_view category, absl::string_view name, absl::Time start,
           absl::Duration took);
  // Returns the events as JSON objects separated by commas, and clears them.
  std::string Take();

 private:
  std::mutex mutex_;
  std::string events_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_TRACE_H_
