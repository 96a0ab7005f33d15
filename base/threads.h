// base/threads.h: how many threads may be asked for, wherever a number of them is given.
#ifndef ANEMONE_BASE_THREADS_H_
#define ANEMONE_BASE_THREADS_H_

#include <algorithm>
#include <thread>

namespace anemone {

inline constexpr int kMostThreads = 1024;

// How many that is: 0 asks for one on each core.
inline int ThreadsOf(int wanted) {
  return wanted > 0 ? wanted : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace anemone

#endif  // ANEMONE_BASE_THREADS_H_
