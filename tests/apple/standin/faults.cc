#include "tests/apple/standin/faults.h"

#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "tests/apple/standin/standin.h"

namespace anemone::standin {
namespace {

// Never destroyed: a call may hang until the process ends.
struct Faults {
  std::mutex mutex;
  std::condition_variable released;
  std::string name;
  int at = 0;  // the time at which it happens; 0: each time
  int times = 0;
  bool is_released = false;
};

void Set(Faults& faults, std::string fault) {
  faults.at = faults.times = 0;
  faults.is_released = false;
  const size_t mark = fault.find('#');
  if (mark != std::string::npos && absl::SimpleAtoi(fault.substr(mark + 1), &faults.at)) {
    fault.resize(mark);
  }
  faults.name = fault;
}

Faults& All() {
  static Faults& faults = *[] {
    auto* made = new Faults;
    if (const char* fault = std::getenv("ANEMONE_STANDIN_FAULT")) Set(*made, fault);
    return made;
  }();
  return faults;
}

}  // namespace

bool Happens(const std::string& name) {
  Faults& faults = All();
  const std::lock_guard<std::mutex> lock(faults.mutex);
  return name == faults.name && (faults.at == 0 || ++faults.times == faults.at);
}

std::string MissingMessage() {
  constexpr char kPrefix[] = "message:";
  Faults& faults = All();
  const std::lock_guard<std::mutex> lock(faults.mutex);
  return absl::StartsWith(faults.name, kPrefix) ? faults.name.substr(sizeof(kPrefix) - 1) : "";
}

void MayHang() {
  if (!Happens("hang")) return;
  Faults& faults = All();
  std::unique_lock<std::mutex> lock(faults.mutex);
  faults.released.wait(lock, [&] { return faults.is_released; });
}

Counters& Counts() {
  static Counters& counts = *new Counters;
  return counts;
}

}  // namespace anemone::standin

void anemone_standin_fault(const char* fault) {
  auto& faults = anemone::standin::All();
  const std::lock_guard<std::mutex> lock(faults.mutex);
  anemone::standin::Set(faults, fault);
}

void anemone_standin_count(StandinCounts* counts) {
  auto& c = anemone::standin::Counts();
  *counts = {c.objects, c.surfaces, c.loaded, c.mapped, c.compiles};
}

void anemone_standin_release() {
  auto& faults = anemone::standin::All();
  const std::lock_guard<std::mutex> lock(faults.mutex);
  faults.is_released = true;
  faults.name.clear();
  faults.released.notify_all();
}
