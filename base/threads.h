// base/threads.h: limit and default for every option that sets a number of threads.
#ifndef ANEMONE_BASE_THREADS_H_
#define ANEMONE_BASE_THREADS_H_

#include <algorithm>
#include <thread>

namespace anemone {

inline constexpr int kMostThreads = 1024;

// The number of threads for an option's value: 0 means one per core.
inline int ThreadsOf(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace anemone

#endif  // ANEMONE_BASE_THREADS_H_
