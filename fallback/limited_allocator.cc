#include "fallback/limited_allocator.h"

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/memory_limit.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

constexpr size_t kBlockAlignment = 64;

// What an allocation takes beside its bytes: its head, and the tensor and value of ONNX Runtime.
constexpr int64_t kAround = 512;

thread_local std::string limit_text;

// In front of each block.
struct alignas(kBlockAlignment) BlockHead {
  std::shared_ptr<const void> taken;
};

// Throws as ONNX Runtime's own allocator does: it makes a status of the exception.
void* Allocate(OrtAllocator*, size_t size) {
  if (size == 0) return nullptr;
  if (size > SIZE_MAX / 4) throw std::bad_alloc();
  std::shared_ptr<const void> taken;
  try {
    taken = TakeAnyMemory(static_cast<int64_t>(size) + kAround);
  } catch (const MemoryLimitReached& reached) {
    limit_text = reached.what();
    throw;
  }
  const size_t rounded = (size + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  void* const block = std::aligned_alloc(kBlockAlignment, sizeof(BlockHead) + rounded);
  if (block == nullptr) throw std::bad_alloc();
  return new (block) BlockHead{std::move(taken)} + 1;
}

void Release(OrtAllocator*, void* bytes) {
  if (bytes == nullptr) return;
  BlockHead* const head = static_cast<BlockHead*>(bytes) - 1;
  head->~BlockHead();
  std::free(head);
}

struct LimitedAllocator : OrtAllocator {
  OrtMemoryInfo* info = nullptr;
};

const OrtMemoryInfo* InfoOf(const OrtAllocator* allocator) {
  return static_cast<const LimitedAllocator*>(allocator)->info;
}

}  // namespace

absl::Status RegisterLimitedAllocator(const OrtRuntime& runtime, OrtEnv* env) {
  constexpr char kWhere[] = "the allocator with a limit";
  const OrtApi& api = runtime.api();
  // An environment may outlive the runtime, so they stay: one for each library.
  static auto& allocators = *new std::map<const OrtApi*, LimitedAllocator>;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  LimitedAllocator& allocator = allocators[&api];
  if (allocator.info == nullptr) {
    ANEMONE_RETURN_IF_ERROR(runtime.ToStatus(
        api.CreateMemoryInfo("Cpu", OrtDeviceAllocator, 0, OrtMemTypeDefault, &allocator.info),
        kWhere));
    allocator.version = ORT_API_VERSION;
    allocator.Alloc = Allocate;
    allocator.Free = Release;
    allocator.Info = InfoOf;
    allocator.Reserve = Allocate;
  }
  return runtime.ToStatus(api.RegisterAllocator(env, &allocator), kWhere);
}

std::string TakeLimitText() { return std::exchange(limit_text, ""); }

}  // namespace anemone
