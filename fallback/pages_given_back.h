// fallback/pages_given_back.h: gives pages of mapped weights back to the system while ONNX Runtime
// opens a session. It copies all weights before it packs the first, so that they would be in memory
// twice.
#ifndef ANEMONE_FALLBACK_PAGES_GIVEN_BACK_H_
#define ANEMONE_FALLBACK_PAGES_GIVEN_BACK_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/types/span.h"

namespace anemone {

// Gives them back again and again while it exists, and once at its end. A page that is read again
// comes from the file again. Bytes that are in no mapped file stay.
class PagesGivenBack {
 public:
  explicit PagesGivenBack(std::vector<absl::Span<const std::byte>> mapped);
  ~PagesGivenBack();
  PagesGivenBack(const PagesGivenBack&) = delete;
  PagesGivenBack& operator=(const PagesGivenBack&) = delete;

 private:
  void GiveBack() const;
  void Watch();

  const std::vector<absl::Span<const std::byte>> mapped_;
  std::mutex mutex_;
  std::condition_variable closing_changed_;
  bool is_closing_ = false;  // guarded by mutex_
  std::thread watcher_;      // runs if there are many bytes
};

}  // namespace anemone

#endif  // ANEMONE_FALLBACK_PAGES_GIVEN_BACK_H_
