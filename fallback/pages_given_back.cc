#include "fallback/pages_given_back.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/mapped_file.h"

namespace anemone {
namespace {

constexpr size_t kWorthAThread = size_t{32} << 20;      // bytes
constexpr std::chrono::milliseconds kGiveBackEach{20};  // some 20 MB are copied meanwhile

size_t SizeOfAll(const std::vector<absl::Span<const std::byte>>& mapped) {
  size_t size = 0;
  for (const absl::Span<const std::byte> each : mapped) size += each.size();
  return size;
}

}  // namespace

PagesGivenBack::PagesGivenBack(std::vector<absl::Span<const std::byte>> mapped)
    : mapped_(std::move(mapped)) {
  if (SizeOfAll(mapped_) < kWorthAThread) return;
  try {
    watcher_ = std::thread([this] { Watch(); });
  } catch (const std::system_error&) {  // no thread is left: the pages stay up to the end
  }
}

PagesGivenBack::~PagesGivenBack() {
  if (watcher_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_closing_ = true;
    }
    closing_changed_.notify_one();
    watcher_.join();
  }
  GiveBack();
}

void PagesGivenBack::GiveBack() const {
  for (const absl::Span<const std::byte> each : mapped_) MappedFile::GiveBack(each);
}

void PagesGivenBack::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!closing_changed_.wait_for(lock, kGiveBackEach, [this] { return is_closing_; })) {
    GiveBack();
  }
}

}  // namespace anemone
