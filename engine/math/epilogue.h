// engine/math/epilogue.h: what follows a product while its results are still in the nearest cache.
//
//   const auto relu = [](Half* run, int64_t count) { Relu({run, count}, {run, count}); };
//   Conv(conv, x, y, Epilogue(relu));
#ifndef ENGINE_MATH_EPILOGUE_H_
#define ENGINE_MATH_EPILOGUE_H_

#include <cstdint>

#include "engine/math/half.h"
#include "engine/math/parallel.h"

namespace anemone::math {

// Is called with runs of finished elements, each one after the other in memory, from any thread of
// the arena; together they are the whole result, and no element comes twice. It may change them,
// and must not start parallel work. The function outlives the call that the epilogue is given to.
class Epilogue {
 public:
  Epilogue() = default;
  // `finish(Half* run, int64_t count)`.
  template <class Function>
  explicit Epilogue(const Function& finish)
      : function_(&finish), call_([](const void* function, Half* run, int64_t count) {
          (*static_cast<const Function*>(function))(run, count);
        }) {}
  bool is_empty() const { return call_ == nullptr; }
  void Finish(Half* run, int64_t count) const {
    if (call_ != nullptr) call_(function_, run, count);
  }
  // All of a result of which nothing has been finished: `runs` runs of `count`, `step` apart.
  void FinishAll(Half* y, int64_t runs, int64_t count, int64_t step) const {
    if (is_empty()) return;
    ParallelForItems(runs, count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) Finish(y + i * step, count);
    });
  }

 private:
  const void* function_ = nullptr;
  void (*call_)(const void* function, Half* run, int64_t count) = nullptr;
};

}  // namespace anemone::math

#endif  // ENGINE_MATH_EPILOGUE_H_
