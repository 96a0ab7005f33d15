#include "provider/trace.h"

#include <unistd.h>

#include <functional>
#include <thread>
#include <utility>

#include "engine/formats/json.h"

namespace anemone {

void Trace::Add(absl::string_view category, absl::string_view name, absl::Time start,
                absl::Duration took) {
  size_t thread = std::hash<std::thread::id>()(std::this_thread::get_id()) % 100000;
  nlohmann::json event = {{"name", std::string(name)},
                          {"cat", std::string(category)},
                          {"ph", "X"},
                          {"ts", absl::ToUnixMicros(start)},
                          {"dur", absl::ToDoubleMicroseconds(took)},
                          {"pid", getpid()},
                          {"tid", thread}};
  // Names come from the model and may not be valid UTF-8.
  std::string text = event.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::lock_guard<std::mutex> lock(mutex_);
  if (!events_.empty()) events_ += ",\n";
  events_ += text;
}

std::string Trace::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(events_, "");
}

}  // namespace anemone
