// What abseil's span calls from its library, which is not at hand for the other machine.
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
