// tests/faults/clock.cc: a library for LD_PRELOAD, in which the machine's clock jumps. Variables:
//   CLOCK_NAME  "real" (time of day), "steady" (CLOCK_MONOTONIC) or "both"
//   CLOCK_BY    how far, in seconds; less than 0 is into the past
//   CLOCK_AT    from this call on; 0: never
//   CLOCK_BACK  if set, every other call has the old time again
//   CLOCK_FILE  gets the number of calls when the process ends
#include <dlfcn.h>
#include <sys/time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace {

template <class F>
F* Real(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

int64_t NumberOf(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoll(text);
}

std::atomic<int64_t> calls = 0;

// By how many seconds a clock is wrong in this call.
int64_t Wrong(const char* clock) {
  static const char* const name = std::getenv("CLOCK_NAME");
  static const int64_t by = NumberOf("CLOCK_BY"), at = NumberOf("CLOCK_AT");
  static const bool back = std::getenv("CLOCK_BACK") != nullptr;
  if (name == nullptr || (std::strcmp(name, clock) != 0 && std::strcmp(name, "both") != 0))
    return 0;
  const int64_t call = ++calls;
  if (at == 0 || call < at || (back && (call - at) % 2 == 1)) return 0;
  return by;
}

struct Report {
  ~Report() {
    const char* path = std::getenv("CLOCK_FILE");
    if (path == nullptr) return;
    std::FILE* file = std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%lld\n", static_cast<long long>(calls));
    std::fclose(file);
  }
} report;

}  // namespace

// The C library's own names of parameters are reserved ones.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = Real(&clock_gettime, "clock_gettime");
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += Wrong("real");
  if (clock == CLOCK_MONOTONIC) time->tv_sec += Wrong("steady");
  return result;
}

int gettimeofday(timeval* time, void* zone) noexcept {
  static const auto real = Real(static_cast<int (*)(timeval*, void*)>(nullptr), "gettimeofday");
  const int result = real(time, zone);
  time->tv_sec += Wrong("real");
  return result;
}

time_t time(time_t* to) noexcept {
  static const auto real = Real(static_cast<time_t (*)(time_t*)>(nullptr), "time");
  const time_t now = real(nullptr) + Wrong("real");
  if (to != nullptr) *to = now;
  return now;
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
