#include "provider/temporaries.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <new>
#include <random>
#include <set>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kPrefix = ".anemone-", kSuffix = ".tmp";
constexpr size_t kDigits = 16;
constexpr time_t kLeftAfterSeconds = 3600;

// ---- What this process has to remove.

// No memory is allocated under the lock, nor by Remove(): RemoveTemporaries() is also called when
// an allocation has failed.
struct Registry {
  std::mutex mutex;
  std::set<std::string> paths;
  std::set<std::string> swept;  // folders that were searched for leftovers
};
Registry& All() {
  alignas(Registry) static std::byte memory[sizeof(Registry)];
  static Registry& registry =
      *new (memory) Registry;  // the thread below may outlive static objects
  return registry;
}

// ---- Signals.

constexpr int kSignals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGPIPE, SIGALRM,
                            SIGUSR1, SIGUSR2, SIGPROF, SIGXCPU, SIGXFSZ, SIGVTALRM};
std::atomic<bool> remove_on_signals = false;
int signal_pipe[2] = {-1, -1};

void OnSignal(int signal) {
  const int kept = errno;
  const auto number = static_cast<unsigned char>(signal);
  if (::write(signal_pipe[1], &number, 1) == 1) {
    // The interrupted thread may be the writer: it must not go on and report that its files are
    // gone. The wait has an end because that thread may hold a lock that the removal needs.
    timespec wait = {0, 300'000'000};
    ::nanosleep(&wait, nullptr);
  }
  errno = kept;
}

// Removes a file or a folder as far as it can.
void Remove(const std::string& path) noexcept {
  constexpr int kTries = 20;  // another thread may add a file to the folder meanwhile
  constexpr int kDescriptors = 8;
  const auto remove = [](const char* name, const struct stat*, int, FTW*) {
    std::remove(name);
    return 0;
  };
  struct stat info;
  const auto is_gone = [&] { return ::lstat(path.c_str(), &info) != 0 && errno == ENOENT; };
  for (int i = 0; i < kTries && !is_gone(); ++i) {
    ::nftw(path.c_str(), remove, kDescriptors, FTW_DEPTH | FTW_PHYS);
  }
}

// Waits for a signal, removes everything, and lets the signal end the process.
void RemoveWhenSignalled() {
  sigset_t every;
  sigfillset(&every);
  pthread_sigmask(SIG_BLOCK, &every, nullptr);
  unsigned char number = 0;
  while (::read(signal_pipe[0], &number, 1) != 1) {
  }
  RemoveTemporaries();
  std::signal(number, SIG_DFL);
  ::kill(::getpid(), number);
}

// Handlers are installed when there is something to remove: until then signals act at once.
void HandleSignals() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (::pipe(signal_pipe) != 0) return;
    for (int end : signal_pipe) ::fcntl(end, F_SETFD, FD_CLOEXEC);
    std::thread(RemoveWhenSignalled).detach();
    for (int number : kSignals) {
      struct sigaction old = {};
      if (::sigaction(number, nullptr, &old) != 0 || old.sa_handler != SIG_DFL) continue;
      struct sigaction handler = {};
      handler.sa_handler = OnSignal;
      handler.sa_flags = SA_RESTART;
      sigemptyset(&handler.sa_mask);
      ::sigaction(number, &handler, nullptr);
    }
  });
}

// ---- Names and leftovers.

std::string RandomName(const std::string& path) {
  static std::mutex mutex;
  static std::random_device& random = *new std::random_device;
  uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    number = uint64_t{random()} << 32 | random();
  }
  constexpr size_t kMostName = 200;  // file systems allow 255 bytes
  const size_t name = path.rfind('/') + 1;
  return absl::StrCat(path.substr(0, std::min(path.size(), name + kMostName)), kPrefix,
                      absl::StrFormat("%016x", number), kSuffix);
}

// Removes a file or folder that is not locked and was last changed before `before`.
void RemoveIfLeftBefore(const std::string& path, time_t before) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat info;
  if (::fstat(file, &info) != 0 || !(S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) ||
      info.st_uid != ::geteuid() || info.st_mtime > before) {
    return;
  }
  std::error_code error;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) fs::remove_all(path, error);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

void Sweep(const std::string& folder) {
  std::set<std::string> made = {folder};
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    All().swept.merge(made);
  }
  if (!made.empty()) return;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (!IsTemporaryName(at->path().filename().string())) continue;
    RemoveIfLeftBefore(at->path().string(), std::time(nullptr) - kLeftAfterSeconds);
  }
}

// Locks a new file or folder. Returns false if another process has removed it as a leftover.
bool LockNew(int file) {
  while (::flock(file, LOCK_EX) != 0) {
    if (errno != EINTR) return true;  // a file system without locks
  }
  struct stat info;
  return ::fstat(file, &info) != 0 || info.st_nlink > 0;
}

void Register(const std::string& path) {
  std::set<std::string> made = {path};
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().paths.merge(made);
}

void Forget(const std::string& path) {
  const std::lock_guard<std::mutex> lock(All().mutex);
  All().paths.erase(path);
}

}  // namespace

bool IsTemporaryName(absl::string_view name) {
  const size_t end = kDigits + kSuffix.size();
  if (name.size() < kPrefix.size() + end) return false;
  const absl::string_view digits = name.substr(name.size() - end, kDigits);
  return name.substr(name.size() - kSuffix.size()) == kSuffix &&
         name.substr(name.size() - end - kPrefix.size(), kPrefix.size()) == kPrefix &&
         std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit);
}

absl::StatusOr<std::unique_ptr<Temporary>> Temporary::Make(const std::string& path, Kind kind) {
  Sweep(FolderOf(path));
  if (remove_on_signals) HandleSignals();
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    // All memory is allocated before the file exists: an exception would leave it behind.
    std::unique_ptr<Temporary> made(new Temporary(RandomName(path), -1));
    const char* const name = made->path_.c_str();
    Register(made->path_);  // before it exists: a signal may come at once
    if (kind == Kind::kFile) {
      made->file_ = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    } else if (::mkdir(name, 0777) == 0) {
      made->file_ = ::open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (made->file_ >= 0) {
      if (LockNew(made->file_)) return made;
      continue;
    }
    const int problem = errno;
    if (problem == EEXIST) {
      made->Leave();  // it is another writer's
      continue;
    }
    made.reset();  // a folder may have been made
    return absl::ErrnoToStatus(problem, "cannot be written");
  }
  return absl::AbortedError("there is no free name for a temporary file; try again");
}

Temporary::~Temporary() {
  if (!path_.empty()) {
    Remove(path_);
    Leave();
  }
  if (file_ >= 0) ::close(file_);
}

void Temporary::Leave() {
  Forget(path_);
  path_.clear();
}

bool Temporary::RenameTo(const std::string& path, bool flush) {
  if (flush && ::fsync(file_) != 0 && errno != EINVAL)
    return false;  // EINVAL: not for folders here
  if (std::rename(path_.c_str(), path.c_str()) != 0) return false;
  Leave();
  if (!flush) return true;
  // A name is on the disk only after its folder has been flushed.
  const int folder = ::open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return true;
}

bool Temporary::ExchangeWith(const std::string& path) {
  ::fsync(file_);
#ifdef __APPLE__
  return ::renamex_np(path_.c_str(), path.c_str(), RENAME_SWAP) == 0;
#else
  return ::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0;
#endif
}

void RemoveTemporariesOnSignals() { remove_on_signals = true; }

void RemoveTemporaries() {
  const std::lock_guard<std::mutex> lock(All().mutex);
  for (const std::string& path : All().paths) Remove(path);
}

void RemoveIfLeft(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  RemoveIfLeftBefore(path, std::time(nullptr) + kLeftAfterSeconds);
}

}  // namespace anemone
