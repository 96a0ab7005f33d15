// base/model_limits.h: Settings::limits, of what a model may ask for. One table has their names and
// defaults.
//
//   const ModelLimits limits({{"nodes", 1000}});  // of what this thread does while it exists
//   const int64_t most = ValueOf(ModelLimit::kNodes);
//   const absl::Status over = OverLimit(ModelLimit::kNodes, "the model has");
//
// The message is "the model has more than 1000 nodes; raise the limit (--limit nodes=N)".
#ifndef ANEMONE_BASE_MODEL_LIMITS_H_
#define ANEMONE_BASE_MODEL_LIMITS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace anemone {

enum class ModelLimit {
  kModelBytes,
  kStringBytes,
  kNesting,
  kCallNesting,
  kNodes,
  kFunctionNodes,
  kNameBytes,
  kTensorBytes,
  kDenseBytes,
  kFoldedBytes,
  kUnrolledNodes,
  kListElements,
  kMatrixElements,
  kKernelElements,
};

inline constexpr int64_t kAnyTensorBytes = int64_t{1} << 60;  // the default: no limit

struct ModelLimitRow {
  ModelLimit limit;
  const char* name;
  int64_t value;  // the default
  int64_t most;   // the largest that can be given
  bool is_bytes;
  const char* unit;  // after a number: "nodes"; "" if it is in bytes
  const char* what;  // for help
};

// In the order of ModelLimit.
absl::Span<const ModelLimitRow> AllModelLimits();

// Limits what this thread does while it exists, by name; other limits have their defaults. Inside
// another one, only that one counts. Names and values must have passed CheckModelLimits().
class ModelLimits {
 public:
  explicit ModelLimits(const std::map<std::string, int64_t>& given);
  ~ModelLimits();
  ModelLimits(const ModelLimits&) = delete;
  ModelLimits& operator=(const ModelLimits&) = delete;

 private:
  std::vector<int64_t> values_;  // by ModelLimit; empty: another object or the defaults count
};

// Of this thread's work.
int64_t ValueOf(ModelLimit limit);

// "--limit nodes=N raises the limit".
std::string RaiseText(ModelLimit limit);
// kResourceExhausted: "WHAT more than 1000 nodes; REMEDY, or raise the limit (...)".
absl::Status OverLimit(ModelLimit limit, absl::string_view what, absl::string_view remedy = "");

// kInvalidArgument: there is no such limit, or it cannot have this value.
absl::Status CheckModelLimits(const std::map<std::string, int64_t>& given);
// Reads "NAME=VALUE[,NAME=VALUE...]". kInvalidArgument as above, or if a name is given twice.
absl::Status ReadModelLimits(absl::string_view text, std::map<std::string, int64_t>& limits);

}  // namespace anemone

#endif  // ANEMONE_BASE_MODEL_LIMITS_H_
