// math/core/epilogue.h: a function that a convolution or matrix product applies to its results
// while they are still in the first-level cache.
//
//   const auto relu = [](Half* first, int64_t runs, int64_t count, int64_t step) {
//     for (int64_t i = 0; i < runs; ++i, first += step) {
//       const absl::Span<Half> run(first, static_cast<size_t>(count));
//       Relu(run, run);
//     }
//   };
//   Conv(conv, x, y, Epilogue(relu));
#ifndef ANEMONE_MATH_CORE_EPILOGUE_H_
#define ANEMONE_MATH_CORE_EPILOGUE_H_

#include <cstdint>

#include "math/core/half.h"
#include "math/core/parallel.h"

namespace anemone::math {

// 8 KB of Halfs: the first-level cache holds a few operands of this size.
inline constexpr int64_t kNearElements = 4096;

// A clamp. Both limits are Half values, lo <= 0 <= hi, and not -0. A NaN is not clamped.
struct Limits {
  float lo, hi;
};

// Wraps a function that is called with runs of finished elements, each contiguous, from any thread
// of the arena. The calls cover every element of the result exactly once. The function may change
// the elements and must not start parallel work. The function and the limits are borrowed: they
// must outlive the call that takes the epilogue.
class Epilogue {
 public:
  Epilogue() = default;
  // `finish(Half* first, int64_t runs, int64_t count, int64_t step)` gets `runs` runs of `count`
  // elements, which start `step` elements apart.
  template <class Function>
  explicit Epilogue(const Function& finish)
      : function_(&finish),
        call_([](const void* function, Half* first, int64_t runs, int64_t count, int64_t step) {
          (*static_cast<const Function*>(function))(first, runs, count, step);
        }) {}
  // Does the same as `all`, which must clamp each element to `limits` and then apply `rest`. A
  // kernel that clamps its results itself calls rest() instead.
  Epilogue(const Limits& limits, const Epilogue& all, const Epilogue& rest)
      : function_(all.function_),
        call_(all.call_),
        limits_(&limits),
        rest_function_(rest.function_),
        rest_call_(rest.call_) {}
  // Null if the epilogue does not begin with a clamp; rest() is then the whole epilogue.
  const Limits* limits() const { return limits_; }
  Epilogue rest() const {
    if (limits_ == nullptr) return *this;
    Epilogue rest;
    rest.function_ = rest_function_;
    rest.call_ = rest_call_;
    return rest;
  }
  bool is_empty() const { return call_ == nullptr; }
  void FinishRuns(Half* y, int64_t runs, int64_t count, int64_t step) const {
    if (call_ == nullptr) return;
    if (step == count) {
      count *= runs;
      runs = 1;
    }
    call_(function_, y, runs, count, step);
  }
  // Applies the function to a whole result, in parallel: `runs` runs of `count`, `step` apart.
  void FinishAll(Half* y, int64_t runs, int64_t count, int64_t step) const {
    if (is_empty()) return;
    ParallelForItems(runs, count, [&](int64_t begin, int64_t end) {
      FinishRuns(y + begin * step, end - begin, count, step);
    });
  }

 private:
  using Call = void (*)(const void* function, Half* first, int64_t runs, int64_t count,
                        int64_t step);
  const void* function_ = nullptr;
  Call call_ = nullptr;
  const Limits* limits_ = nullptr;
  const void* rest_function_ = nullptr;
  Call rest_call_ = nullptr;
};

}  // namespace anemone::math

#endif  // ANEMONE_MATH_CORE_EPILOGUE_H_
