// math/core/epilogue.h: what follows a product while its results are still in the nearest cache.
//
//   const auto relu = [](Half* first, int64_t runs, int64_t count, int64_t step) {
//     for (int64_t i = 0; i < runs; ++i, first += step) Relu({first, count}, {first, count});
//   };
//   Conv(conv, x, y, Epilogue(relu));
#ifndef ANEMONE_MATH_CORE_EPILOGUE_H_
#define ANEMONE_MATH_CORE_EPILOGUE_H_

#include <cstdint>

#include "math/core/half.h"
#include "math/core/parallel.h"

namespace anemone::math {

// 8 KB: the first-level cache holds a few operands of so many.
inline constexpr int64_t kNearElements = 4096;

// Halfs, lo <= 0 <= hi, neither of them -0; a NaN lies within any.
struct Limits {
  float lo, hi;
};

// Is called with runs of finished elements, each one after the other in memory, from any thread of
// the arena; together they are the whole result, and no element comes twice. It may change them,
// and must not start parallel work. The function and the limits outlive the call that the epilogue
// is given to.
class Epilogue {
 public:
  Epilogue() = default;
  // `finish(Half* first, int64_t runs, int64_t count, int64_t step)`: `runs` runs of `count`
  // elements, `step` apart.
  template <class Function>
  explicit Epilogue(const Function& finish)
      : function_(&finish),
        call_([](const void* function, Half* first, int64_t runs, int64_t count, int64_t step) {
          (*static_cast<const Function*>(function))(first, runs, count, step);
        }) {}
  // As `all`, which clamps each element to `limits` and goes on as `rest`: a kernel that clamps
  // what it rounds leaves the rest to that.
  Epilogue(const Limits& limits, const Epilogue& all, const Epilogue& rest)
      : function_(all.function_),
        call_(all.call_),
        limits_(&limits),
        rest_function_(rest.function_),
        rest_call_(rest.call_) {}
  // Null: it begins with no clamp, and rest() is all of it.
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
  // All of a result of which nothing has been finished: `runs` runs of `count`, `step` apart.
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
