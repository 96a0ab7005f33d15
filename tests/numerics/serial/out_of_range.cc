// The function of abseil's library that its span calls; the library for Arm is not available.
#include <cstdlib>

#include "absl/base/config.h"

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace base_internal {
[[noreturn]] void ThrowStdOutOfRange(const char* what);
void ThrowStdOutOfRange(const char*) { std::abort(); }
}  // namespace base_internal
ABSL_NAMESPACE_END
}  // namespace absl
