// tests/apple/standin/faults.h: the faults and counts of the stand-in.
#ifndef ANEMONE_TESTS_APPLE_STANDIN_FAULTS_H_
#define ANEMONE_TESTS_APPLE_STANDIN_FAULTS_H_

#include <atomic>
#include <string>

namespace anemone::standin {

// Whether the fault `name` happens now.
bool Happens(const std::string& name);
// The selector of a fault "message:SELECTOR"; "" without such a fault.
std::string MissingMessage();
// If the fault "hang" happens, returns only after anemone_standin_release().
void MayHang();

struct Counters {
  std::atomic<int> objects{0}, surfaces{0}, loaded{0}, mapped{0}, compiles{0};
};
Counters& Counts();

}  // namespace anemone::standin

#endif  // ANEMONE_TESTS_APPLE_STANDIN_FAULTS_H_
