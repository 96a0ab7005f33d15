// fallback/limited_allocator.h: an allocator for ONNX Runtime that takes its memory from the limit
// of the thread that asks (base/memory_limit.h). Without a limit it only allocates.
//
// It counts the tensors that nodes make and the scratch memory that they ask the session for. It
// does not see what they take by operator new, such as the characters of strings, nor what threads
// of ONNX Runtime's pool take.
#ifndef ANEMONE_FALLBACK_LIMITED_ALLOCATOR_H_
#define ANEMONE_FALLBACK_LIMITED_ALLOCATOR_H_

#include <string>

#include "absl/status/status.h"
#include "fallback/ort_runtime.h"

namespace anemone {

// Makes the allocator known to the runtime's environment, for its sessions with the option
// "session.use_env_allocators". The environment is that of the process, so it is done once.
absl::Status RegisterLimitedAllocator(const OrtRuntime& runtime, OrtEnv* env);

// What MemoryLimitReached said in this thread since the last call, or "".
std::string TakeLimitText();

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_LIMITED_ALLOCATOR_H_
