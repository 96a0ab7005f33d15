// provider/weights/run_gate.h: lets runs pass, and stops them while programs change in place.
#ifndef ANEMONE_PROVIDER_WEIGHTS_RUN_GATE_H_
#define ANEMONE_PROVIDER_WEIGHTS_RUN_GATE_H_

#include <condition_variable>
#include <mutex>

namespace anemone {

class RunGate {
 public:
  // Waits while the gate is closed.
  void Enter() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !is_closed_; });
    ++inside_;
  }
  void Leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--inside_ == 0) changed_.notify_all();
  }

  // Returns when nobody is inside. One thread at a time may close it.
  void Close() {
    std::unique_lock<std::mutex> lock(mutex_);
    is_closed_ = true;
    changed_.wait(lock, [&] { return inside_ == 0; });
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_closed_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool is_closed_ = false;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHTS_RUN_GATE_H_
