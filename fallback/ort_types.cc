#include "fallback/ort_types.h"

namespace anemone {
namespace {

// The types whose numbers differ: those that were added after int4.
struct LateType {
  DataType type;
  int number;
};
constexpr LateType kLateTypes[] = {{DataType::kFloat4E2M1, 23},
                                   {DataType::kUInt2, 24},
                                   {DataType::kInt2, 25},
                                   {DataType::kFloat8E8M0, 26}};

}  // namespace

DataType TypeNumbered(int number) {
  for (const LateType& late : kLateTypes) {
    if (late.number == number) return late.type;
  }
  return number > 0 && number <= static_cast<int>(DataType::kInt4) ? static_cast<DataType>(number)
                                                                   : DataType::kUndefined;
}

int NumberOf(DataType type) {
  for (const LateType& late : kLateTypes) {
    if (late.type == type) return late.number;
  }
  return static_cast<int>(type);
}

}  // namespace anemone
