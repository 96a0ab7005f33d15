// provider/work_limits.h: the limits of settings on loading, planning and compiling a model.
#ifndef ANEMONE_PROVIDER_WORK_LIMITS_H_
#define ANEMONE_PROVIDER_WORK_LIMITS_H_

#include "anemone/settings.h"
#include "base/deadline.h"
#include "base/memory_limit.h"
#include "base/model_limits.h"

namespace anemone {

// Limits what this thread does while it exists.
class WorkLimits {
 public:
  explicit WorkLimits(const Settings& settings)
      : time_(settings.time_limit), memory_(settings.memory_limit), model_(settings.limits) {}

 private:
  const TimeLimit time_;
  const MemoryLimit memory_;
  const ModelLimits model_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WORK_LIMITS_H_
