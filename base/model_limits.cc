#include "base/model_limits.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/byte_sizes.h"
#include "base/near_names.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;
constexpr int64_t kMost32 = std::numeric_limits<int32_t>::max();

constexpr ModelLimitRow kRows[] = {
    {ModelLimit::kModelBytes, "model-bytes", kMost32, kMost32, true, "",
     "a model without its large tensors"},
    {ModelLimit::kStringBytes, "string-bytes", kGiB, kMost32, true, "",
     "one name, text or list of numbers in the file"},
    {ModelLimit::kNesting, "nesting", 200, 600, false, "messages",
     "messages of the file inside each other; a body of If, Loop or Scan takes three"},
    {ModelLimit::kCallNesting, "call-nesting", 100, 200, false, "levels",
     "bodies and calls of functions inside each other"},
    {ModelLimit::kNodes, "nodes", 10'000'000, kMost32, false, "nodes",
     "nodes, those of bodies too, as they are read and after all rewrites"},
    {ModelLimit::kFunctionNodes, "function-nodes", 200'000, kMost32, false, "nodes",
     "nodes that calls of functions become"},
    {ModelLimit::kNameBytes, "name-bytes", 512 * kMiB, 1024 * kGiB, true, "",
     "names, functions and bodies after functions are inlined"},
    {ModelLimit::kTensorBytes, "tensor-bytes", kAnyTensorBytes, kAnyTensorBytes, true, "",
     "one tensor: a constant, or a value whose shape is known"},
    {ModelLimit::kDenseBytes, "dense-bytes", 64 * kMiB, 1024 * kGiB, true, "",
     "a sparse tensor in dense form"},
    {ModelLimit::kFoldedBytes, "folded-bytes", 256 * kMiB, 1024 * kGiB, true, "",
     "by how much folded constants grow; beyond it nodes stay nodes"},
    {ModelLimit::kUnrolledNodes, "unrolled-nodes", 2048, kMost32, false, "nodes",
     "nodes that unrolled loops become; beyond it a loop stays a loop"},
    {ModelLimit::kListElements, "list-elements", int64_t{1} << 20, int64_t{1} << 28, false,
     "elements",
     "a constant that is read as a list of integers; beyond it a node stays on the CPU"},
    {ModelLimit::kMatrixElements, "matrix-elements", int64_t{1} << 24, int64_t{1} << 31, false,
     "elements", "a matrix that a node becomes; beyond it the node stays on the CPU"},
    {ModelLimit::kKernelElements, "kernel-elements", int64_t{1} << 26, int64_t{1} << 31, false,
     "elements", "a kernel that a convolution becomes; beyond it the node stays on the CPU"},
};

constexpr bool IsInOrder() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].limit != static_cast<ModelLimit>(i)) return false;
  }
  return true;
}
static_assert(IsInOrder());

thread_local const std::vector<int64_t>* values_of_thread = nullptr;

const ModelLimitRow& RowOf(ModelLimit limit) { return kRows[static_cast<size_t>(limit)]; }

const ModelLimitRow* Find(absl::string_view name) {
  const auto* found = std::find_if(std::begin(kRows), std::end(kRows),
                                   [&](const ModelLimitRow& row) { return name == row.name; });
  return found == std::end(kRows) ? nullptr : found;
}

absl::StatusOr<const ModelLimitRow*> RowNamed(absl::string_view name) {
  if (const ModelLimitRow* row = Find(name)) return row;
  std::vector<std::string> names;
  for (const ModelLimitRow& row : kRows) names.emplace_back(row.name);
  const std::string question = DidYouMean(name, names);
  return absl::InvalidArgumentError(
      absl::StrCat("there is no limit '", name, "'; ", question, question.empty() ? "" : " ",
                   "want NAME=VALUE with one of ", absl::StrJoin(names, ", ")));
}

std::string ValueText(const ModelLimitRow& row, int64_t value) {
  return row.is_bytes ? BytesText(value) : absl::StrCat(value, " ", row.unit);
}

absl::Status CheckValue(const ModelLimitRow& row, int64_t value) {
  if (value >= 1 && value <= row.most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(row.name, ": want 1 to ", ValueText(row, row.most), ", got ", value));
}

}  // namespace

absl::Span<const ModelLimitRow> AllModelLimits() { return kRows; }

ModelLimits::ModelLimits(const std::map<std::string, int64_t>& given) {
  if (given.empty() || values_of_thread != nullptr) return;
  for (const ModelLimitRow& row : kRows) {
    const auto found = given.find(row.name);
    values_.push_back(found == given.end() ? row.value : found->second);
  }
  values_of_thread = &values_;
}

ModelLimits::~ModelLimits() {
  if (!values_.empty()) values_of_thread = nullptr;
}

int64_t ValueOf(ModelLimit limit) {
  return values_of_thread == nullptr ? RowOf(limit).value
                                     : (*values_of_thread)[static_cast<size_t>(limit)];
}

std::string RaiseText(ModelLimit limit) {
  return absl::StrCat("--limit ", RowOf(limit).name, "=N raises the limit");
}

absl::Status OverLimit(ModelLimit limit, absl::string_view what, absl::string_view remedy) {
  const ModelLimitRow& row = RowOf(limit);
  const int64_t value = ValueOf(limit);
  const std::string raise =
      value < row.most ? absl::StrCat("raise the limit (--limit ", row.name, "=N)") : "";
  return absl::ResourceExhaustedError(absl::StrCat(
      what, " more than ", ValueText(row, value), remedy.empty() && raise.empty() ? "" : "; ",
      remedy, remedy.empty() || raise.empty() ? "" : ", or ", raise));
}

absl::Status CheckModelLimits(const std::map<std::string, int64_t>& given) {
  for (const auto& [name, value] : given) {
    ANEMONE_ASSIGN_OR_RETURN(const ModelLimitRow* row, RowNamed(name));
    ANEMONE_RETURN_IF_ERROR(CheckValue(*row, value));
  }
  return absl::OkStatus();
}

absl::Status ReadModelLimits(absl::string_view text, std::map<std::string, int64_t>& limits) {
  for (const absl::string_view pair : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    ANEMONE_ASSIGN_OR_RETURN(const ModelLimitRow* row, RowNamed(parts.first));
    int64_t value = 0;
    if (row->is_bytes) {
      ANEMONE_ASSIGN_OR_RETURN(value, ParseBytes(parts.second));
    } else if (!absl::SimpleAtoi(parts.second, &value)) {
      return absl::InvalidArgumentError(
          absl::StrCat(row->name, ": want a number, got '", parts.second, "'"));
    }
    ANEMONE_RETURN_IF_ERROR(CheckValue(*row, value));
    if (!limits.emplace(row->name, value).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", row->name, "' is given twice, want it once"));
    }
  }
  return absl::OkStatus();
}

}  // namespace anemone
