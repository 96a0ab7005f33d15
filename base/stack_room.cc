#include "base/stack_room.h"

#include <pthread.h>

#include <limits>

namespace anemone {
namespace {

constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

// The lowest address that the stack of this thread may grow to; 0 if it is not known.
intptr_t EndOfStack() {
#ifdef __APPLE__
  const pthread_t self = pthread_self();
  return reinterpret_cast<intptr_t>(pthread_get_stackaddr_np(self)) -
         static_cast<intptr_t>(pthread_get_stacksize_np(self));
#else
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* lowest = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? reinterpret_cast<intptr_t>(lowest) : 0;
#endif
}

}  // namespace

int64_t StackLeft() {
  const intptr_t end = EndOfStack();
  const auto here = reinterpret_cast<intptr_t>(__builtin_frame_address(0));
  return end == 0 || here < end ? kUnknown : static_cast<int64_t>(here - end);
}

}  // namespace anemone
