#include "tests/faults/counter.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace faults {
namespace {

// The file of the driver. It survives the process.
struct Shared {
  std::atomic<int64_t> calls;
  std::atomic<int64_t> hits;
  char what[240];  // "write: fwrite", of the call that failed
};

struct Settings {
  Shared* shared = nullptr;
  const char* calls = "";
  int64_t at = 0;
  int error = 0;
  bool every = false;
  Action action = Action::kFail;
  int places = -1;
};
Settings settings;
std::atomic<bool> running{false};
thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;

// Whether `list` has the word `name` between commas.
bool Has(const char* list, const char* name) {
  const size_t size = std::strlen(name);
  for (const char* at = std::strstr(list, name); at != nullptr; at = std::strstr(at + 1, name)) {
    const bool begins = at == list || at[-1] == ',';
    if (begins && (at[size] == '\0' || at[size] == ',')) return true;
  }
  return false;
}

// Whether the innermost frames of this call stack were not seen before in this process.
// Puts their hash into `place`; it is the same in each run.
bool IsNewPlace(uint64_t& place) {
  constexpr int kFrames = 12;
  constexpr size_t kPlaces = size_t{1} << 18;
  static std::atomic<uint64_t> seen[kPlaces];
  void* frames[kFrames];
  const int count = backtrace(frames, kFrames);
  uint64_t hash = 1469598103934665603u;
  for (int i = 0; i < count; ++i) {
    dl_find_object object;  // the same in each run: the distance from its library's beginning
    uint64_t at = reinterpret_cast<uint64_t>(frames[i]);
    if (_dl_find_object(frames[i], &object) == 0) {
      at -= reinterpret_cast<uint64_t>(object.dlfo_map_start);
    }
    hash = (hash ^ at) * 1099511628211u;
    hash ^= hash >> 29;
  }
  if (hash == 0) hash = 1;
  place = hash;
  for (size_t i = hash % kPlaces, tries = 0; tries < kPlaces; ++tries, i = (i + 1) % kPlaces) {
    uint64_t there = 0;
    if (seen[i].compare_exchange_strong(there, hash)) return true;
    if (there == hash) return false;
  }
  return false;
}

void Read() {
  const char* file = std::getenv("FAULT_FILE");
  if (file == nullptr) return;
  const auto descriptor = static_cast<int>(syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CLOEXEC));
  if (descriptor < 0) return;
  void* const mapped = std::bit_cast<void*>(syscall(
      SYS_mmap, nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
  syscall(SYS_close, descriptor);
  if (mapped == MAP_FAILED) return;
  if (const char* calls = std::getenv("FAULT_CALLS")) settings.calls = calls;
  if (const char* at = std::getenv("FAULT_AT")) settings.at = std::atoll(at);
  if (const char* error = std::getenv("FAULT_ERRNO")) settings.error = std::atoi(error);
  const char* action = std::getenv("FAULT_ACTION");
  if (action != nullptr) {
    settings.every = std::strcmp(action, "every") == 0;
    if (std::strcmp(action, "short") == 0) settings.action = Action::kShort;
    if (std::strcmp(action, "interrupt") == 0) settings.action = Action::kInterrupt;
    if (std::strcmp(action, "kill") == 0) settings.action = Action::kKill;
  }
  if (const char* places = std::getenv("FAULT_PLACES")) {
    settings.places = static_cast<int>(
        syscall(SYS_openat, AT_FDCWD, places, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
    void* frame = nullptr;
    backtrace(&frame, 1);  // loads the unwinder now
  }
  settings.shared = static_cast<Shared*>(mapped);
}

}  // namespace

Action Next(const char* kind, const char* function) {
  if (!running.load(std::memory_order_relaxed) || inside || settings.shared == nullptr ||
      !Has(settings.calls, kind)) {
    return Action::kNone;
  }
  inside = true;
  const int kept = errno;
  const int64_t call = ++settings.shared->calls;
  uint64_t place = 0;
  if (settings.places >= 0 && IsNewPlace(place)) {
    char line[64];
    const int size = std::snprintf(line, sizeof(line), "%lld %llx\n", static_cast<long long>(call),
                                   static_cast<unsigned long long>(place));
    syscall(SYS_write, settings.places, line, size);
  }
  Action action = Action::kNone;
  if (settings.at > 0 && (call == settings.at || (settings.every && call > settings.at))) {
    if (settings.shared->hits++ == 0) {
      std::snprintf(settings.shared->what, sizeof(settings.shared->what), "%s: %s", kind, function);
    }
    action = settings.action;
    if (std::getenv("FAULT_TRACE") != nullptr) {
      void* frames[64];
      backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
    }
  }
  errno = kept;
  inside = false;
  return action;
}

int ErrorOr(int usual) { return settings.error != 0 ? settings.error : usual; }

void Kill() {
  syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
  while (true) {
  }
}

void SetRunning(bool is_running) {
  if (is_running) Read();
  running = is_running;
}

}  // namespace faults
