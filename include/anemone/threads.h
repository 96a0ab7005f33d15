// anemone/threads.h: how many threads may be asked for, wherever a number of them is given.
#ifndef ANEMONE_THREADS_H_
#define ANEMONE_THREADS_H_

namespace anemone {

inline constexpr int kMostThreads = 1024;

}  // namespace anemone

#endif  // ANEMONE_THREADS_H_
