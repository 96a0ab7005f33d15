// tests/faults/preload.cc: a library for LD_PRELOAD. It stands before the functions of the C
// library that can fail, and lets one call fail, as counter.h says. Calls before main() and after
// it pass.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "tests/faults/counter.h"

namespace {

using faults::Action;
using faults::ErrorOr;
using faults::Kill;
using faults::Next;

// The function of this name that the next library has.
template <class F>
F* Real(F*, const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

// Whether this call fails; then errno is set. kKill ends the process.
bool Fails(const char* kind, const char* function, int error) {
  const Action action = Next(kind, function);
  if (action == Action::kNone || action == Action::kShort) return false;
  if (action == Action::kKill) Kill();
  errno = action == Action::kInterrupt ? EINTR : ErrorOr(error);
  return true;
}

// The beginning of the library that has `place`.
const void* LibraryOf(const void* place) {
  dl_find_object object;
  return _dl_find_object(const_cast<void*>(place), &object) == 0 ? object.dlfo_map_start : nullptr;
}

// The C++ library, and operator new, of which the command has its own: they call malloc() for new.
const void* cpp_library = nullptr;
const char* operator_new = nullptr;

// `caller` is where the function returns to.
bool MemoryFails(const char* function, const void* caller) {
  constexpr size_t kOperatorBytes = 128;
  const auto after = static_cast<size_t>(static_cast<const char*>(caller) - operator_new);
  const bool is_new = after < kOperatorBytes || LibraryOf(caller) == cpp_library;
  return Fails(is_new ? "new" : "memory", function, ENOMEM);
}

}  // namespace

// The C library's own names of parameters are reserved ones.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)

// A function that returns `failed` and sets errno to `error`, in its N-th call.
#define STANDS_BEFORE(kind, error, failed, result, name, parameters, arguments)       \
  extern "C" result name parameters {                                                 \
    static const auto real = Real(static_cast<result(*) parameters>(nullptr), #name); \
    if (Fails(kind, #name, error)) return failed;                                     \
    return real arguments;                                                            \
  }

// ---- Memory. The C library's own functions are called directly: dlsym() may allocate.

extern "C" {
void* __libc_malloc(size_t size);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t size);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, size_t size);       // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT(bugprone-reserved-identifier)

#define MEMORY_FAILS(name) MemoryFails(name, __builtin_return_address(0))
void* malloc(size_t size) { return MEMORY_FAILS("malloc") ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return MEMORY_FAILS("calloc") ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  return MEMORY_FAILS("realloc") ? nullptr : __libc_realloc(memory, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return MEMORY_FAILS("aligned_alloc") ? nullptr : __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) {
  return MEMORY_FAILS("memalign") ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  if (MEMORY_FAILS("posix_memalign")) return ENOMEM;
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}

STANDS_BEFORE("map", ENOMEM, MAP_FAILED, void*, mmap,
              (void* at, size_t size, int access, int flags, int file, off_t offset),
              (at, size, access, flags, file, offset))
STANDS_BEFORE("map", ENOMEM, MAP_FAILED, void*, mmap64,
              (void* at, size_t size, int access, int flags, int file, off64_t offset),
              (at, size, access, flags, file, offset))
STANDS_BEFORE("thread", EAGAIN, EAGAIN, int, pthread_create,
              (pthread_t * thread, const pthread_attr_t* attributes, void* (*run)(void*),
               void* argument),
              (thread, attributes, run, argument))
STANDS_BEFORE("process", EAGAIN, -1, pid_t, fork, (), ())
STANDS_BEFORE("process", EMFILE, -1, int, pipe, (int* ends), (ends))
STANDS_BEFORE("process", EMFILE, -1, int, pipe2, (int* ends, int flags), (ends, flags))

// ---- The network, which no work may reach.

STANDS_BEFORE("network", EACCES, -1, int, socket, (int domain, int type, int protocol),
              (domain, type, protocol))
STANDS_BEFORE("network", EAI_FAIL, EAI_FAIL, int, getaddrinfo,
              (const char* host, const char* service, const addrinfo* hints, addrinfo** found),
              (host, service, hints, found))

// ---- Opening. The third argument is only there with some flags, but it can always be passed on.

#define OPENS(name, ...)                                                         \
  {                                                                              \
    va_list list;                                                                \
    va_start(list, flags);                                                       \
    const auto mode = static_cast<mode_t>(va_arg(list, int));                    \
    va_end(list);                                                                \
    static const auto real = Real(static_cast<decltype(&name)>(nullptr), #name); \
    if (Fails("open", #name, EMFILE)) return -1;                                 \
    return real(__VA_ARGS__, flags, mode);                                       \
  }
extern "C" {
int open(const char* path, int flags, ...)
    OPENS(open, path) int open64(const char* path, int flags, ...)
        OPENS(open64, path) int openat(int folder, const char* path, int flags, ...)
            OPENS(openat, folder, path) int openat64(int folder, const char* path, int flags, ...)
                OPENS(openat64, folder, path)
}
STANDS_BEFORE("open", EMFILE, nullptr, FILE*, fopen, (const char* path, const char* mode),
              (path, mode))
STANDS_BEFORE("open", EMFILE, nullptr, FILE*, fopen64, (const char* path, const char* mode),
              (path, mode))
STANDS_BEFORE("open", EMFILE, nullptr, DIR*, opendir, (const char* path), (path))
STANDS_BEFORE("open", EMFILE, nullptr, DIR*, fdopendir, (int file), (file))

// ---- Reading.

#define MOVES(kind, error, name, type, parameters, ...)                                \
  extern "C" ssize_t name parameters {                                                 \
    static const auto real = Real(static_cast<ssize_t(*) parameters>(nullptr), #name); \
    const Action action = Next(kind, #name);                                           \
    const size_t half = size / 2 + size % 2;                                           \
    if (action == Action::kShort) return real(file, data, half __VA_ARGS__);           \
    if (action == Action::kKill) {                                                     \
      real(file, data, half __VA_ARGS__);                                              \
      Kill();                                                                          \
    }                                                                                  \
    if (action != Action::kNone) {                                                     \
      errno = action == Action::kInterrupt ? EINTR : ErrorOr(error);                   \
      return -1;                                                                       \
    }                                                                                  \
    return real(file, data, size __VA_ARGS__);                                         \
  }
MOVES("read", EIO, read, void, (int file, void* data, size_t size))
MOVES("read", EIO, pread, void, (int file, void* data, size_t size, off_t at), , at)
MOVES("read", EIO, pread64, void, (int file, void* data, size_t size, off64_t at), , at)
MOVES("write", ENOSPC, write, const void, (int file, const void* data, size_t size))
MOVES("write", ENOSPC, pwrite, const void, (int file, const void* data, size_t size, off_t at), ,
      at)
MOVES("write", ENOSPC, pwrite64, const void, (int file, const void* data, size_t size, off64_t at),
      , at)
STANDS_BEFORE("write", ENOSPC, -1, ssize_t, writev, (int file, const iovec* parts, int count),
              (file, parts, count))
STANDS_BEFORE("stat", EIO, -1, int, stat, (const char* path, struct stat* info), (path, info))
STANDS_BEFORE("stat", EIO, -1, int, fstat, (int file, struct stat* info), (file, info))
STANDS_BEFORE("stat", EIO, -1, int, lstat, (const char* path, struct stat* info), (path, info))
STANDS_BEFORE("read", EIO, nullptr, dirent*, readdir, (DIR * folder), (folder))
STANDS_BEFORE("read", EIO, nullptr, dirent64*, readdir64, (DIR * folder), (folder))

// ---- Changing.

STANDS_BEFORE("rename", EIO, -1, int, rename, (const char* from, const char* to), (from, to))
STANDS_BEFORE("sync", EIO, -1, int, fsync, (int file), (file))
STANDS_BEFORE("sync", EIO, -1, int, fdatasync, (int file), (file))
STANDS_BEFORE("sync", EIO, -1, int, msync, (void* at, size_t size, int flags), (at, size, flags))
STANDS_BEFORE("write", ENOSPC, -1, int, ftruncate, (int file, off_t size), (file, size))
STANDS_BEFORE("write", ENOSPC, -1, int, ftruncate64, (int file, off64_t size), (file, size))
STANDS_BEFORE("write", ENOSPC, -1, int, posix_fallocate, (int file, off_t at, off_t size),
              (file, at, size))
STANDS_BEFORE("mkdir", ENOSPC, -1, int, mkdir, (const char* path, mode_t mode), (path, mode))
STANDS_BEFORE("lock", ENOLCK, -1, int, flock, (int file, int how), (file, how))
STANDS_BEFORE("remove", EIO, -1, int, unlink, (const char* path), (path))
STANDS_BEFORE("remove", EIO, -1, int, unlinkat, (int folder, const char* path, int flags),
              (folder, path, flags))
STANDS_BEFORE("remove", EIO, -1, int, rmdir, (const char* path), (path))
STANDS_BEFORE("remove", EIO, -1, int, remove, (const char* path), (path))

// A file whose close() fails is closed, too.
extern "C" int close(int file) {
  static const auto real = Real(static_cast<int (*)(int)>(nullptr), "close");
  const bool fails = Fails("close", "close", EIO);
  const int error = errno;
  const int result = real(file);
  if (!fails) return result;
  errno = error;
  return -1;
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)

// ---- From the first statement of main() to its last.

namespace {
using Main = int(int, char**, char**);
Main* real_main = nullptr;
int MainWithFaults(int count, char** words, char** environment) {
  operator_new = static_cast<const char*>(dlsym(RTLD_DEFAULT, "_Znwm"));
  cpp_library = LibraryOf(dlsym(RTLD_DEFAULT, "__cxa_throw"));
  faults::SetRunning(true);
  const int code = real_main(count, words, environment);
  faults::SetRunning(false);
  return code;
}
}  // namespace

// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" int __libc_start_main(Main* main, int count, char** words, void (*init)(),
                                 void (*fini)(), void (*loader_fini)(), void* stack_end) {
  real_main = main;
  using Start = int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*);
  const auto start = Real(static_cast<Start*>(nullptr), "__libc_start_main");
  return start(MainWithFaults, count, words, init, fini, loader_fini, stack_end);
}
