// tests/apple/foundation/not_on_macos.h: functions that Linux's C library declares and macOS does
// not have. macos_test.py includes it before each source, so that a call of one is an error.
#ifndef ANEMONE_TESTS_APPLE_NOT_ON_MACOS_H_
#define ANEMONE_TESTS_APPLE_NOT_ON_MACOS_H_

#ifdef __cplusplus
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <unistd.h>

// With x86's macros, which the C library needs, Abseil would include x86's vector instructions.
#include "absl/base/config.h"
#undef ABSL_INTERNAL_HAVE_SSE
#undef ABSL_INTERNAL_HAVE_SSE2

#define ANEMONE_NOT_ON_MACOS(function) \
  extern "C" __attribute__((unavailable("macOS does not have it"))) decltype(function) function

ANEMONE_NOT_ON_MACOS(accept4);
ANEMONE_NOT_ON_MACOS(canonicalize_file_name);
ANEMONE_NOT_ON_MACOS(copy_file_range);
ANEMONE_NOT_ON_MACOS(dup3);
ANEMONE_NOT_ON_MACOS(eventfd);
ANEMONE_NOT_ON_MACOS(execvpe);
ANEMONE_NOT_ON_MACOS(explicit_bzero);
ANEMONE_NOT_ON_MACOS(fallocate);
ANEMONE_NOT_ON_MACOS(get_nprocs);
ANEMONE_NOT_ON_MACOS(getauxval);
ANEMONE_NOT_ON_MACOS(getrandom);
ANEMONE_NOT_ON_MACOS(gettid);
ANEMONE_NOT_ON_MACOS(inotify_init);
ANEMONE_NOT_ON_MACOS(malloc_trim);
ANEMONE_NOT_ON_MACOS(malloc_usable_size);
ANEMONE_NOT_ON_MACOS(memfd_create);
ANEMONE_NOT_ON_MACOS(mremap);
ANEMONE_NOT_ON_MACOS(pipe2);
ANEMONE_NOT_ON_MACOS(posix_fadvise);
ANEMONE_NOT_ON_MACOS(posix_fallocate);
ANEMONE_NOT_ON_MACOS(prctl);
ANEMONE_NOT_ON_MACOS(sched_getaffinity);
ANEMONE_NOT_ON_MACOS(secure_getenv);
ANEMONE_NOT_ON_MACOS(syncfs);
ANEMONE_NOT_ON_MACOS(sysinfo);

#undef ANEMONE_NOT_ON_MACOS
#endif  // __cplusplus

#endif  // ANEMONE_TESTS_APPLE_NOT_ON_MACOS_H_
