#include "provider/coreml/free_sizes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "base/usage_error.h"

namespace anemone {
namespace {

// The most shapes that a package lists; each is checked by an import.
constexpr size_t kMostListed = 128;

}  // namespace

absl::StatusOr<FreeSizes> FreeSizes::Of(const Settings& settings) {
  FreeSizes made;
  made.ranges_ = settings.dim_ranges;
  made.lists_ = settings.buckets;
  if (!made.ranges_.empty() && !made.lists_.empty()) {
    return UsageError(
        "--bucket and a range of --dim: Core ML's inputs have lists of shapes or "
        "ranges; give one kind");
  }
  for (auto& [symbol, sizes] : made.lists_) {
    if (sizes.empty()) return UsageError(absl::StrCat("--bucket ", symbol, ": no sizes"));
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    std::vector<SizeMap> combined;
    for (const SizeMap& sizes_before : made.all_) {
      for (int64_t size : sizes) {
        combined.push_back(sizes_before);
        combined.back()[symbol] = size;
      }
    }
    if (combined.size() > kMostListed) {
      return UsageError(absl::StrCat("--bucket: ", combined.size(), " combinations of sizes, want ",
                                     "at most ", kMostListed));
    }
    made.all_ = std::move(combined);
  }
  return made;
}

SizeMap FreeSizes::Smallest() const {
  SizeMap sizes;
  for (const auto& [symbol, range] : ranges_) sizes[symbol] = range.first;
  for (const auto& [symbol, list] : lists_) sizes[symbol] = list.front();
  return sizes;
}

SizeMap FreeSizes::Largest() const {
  SizeMap sizes;
  for (const auto& [symbol, range] : ranges_) sizes[symbol] = range.second;
  for (const auto& [symbol, list] : lists_) sizes[symbol] = list.back();
  return sizes;
}

std::string TextOfRanges(const std::map<std::string, SizeRange>& ranges) {
  return absl::StrJoin(ranges, " ", [](std::string* out, const auto& range) {
    absl::StrAppend(out, range.first, "=", range.second.first);
    if (range.second.first != range.second.second) absl::StrAppend(out, "..", range.second.second);
  });
}

std::string FreeSizes::Text() const {
  if (!are_listed()) return TextOfRanges(ranges_);
  return absl::StrJoin(lists_, " ", [](std::string* out, const auto& list) {
    absl::StrAppend(out, list.first, "=", absl::StrJoin(list.second, ","));
  });
}

absl::Status FreeSizes::CheckSymbols(const Graph& graph) const {
  const SizeMap given = Smallest();
  std::set<std::string> found;
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[id];
    for (const Dim& dim : value.shape.value_or(Shape())) {
      if (dim.known()) continue;
      if (!dim.symbol.empty()) found.insert(dim.symbol);
      if (given.count(dim.symbol) != 0) continue;
      return UsageError(absl::StrCat(
          "input '", value.name, "' has a free dimension ",
          dim.symbol.empty() ? "without a name; give its shape with --shape"
                             : absl::StrCat("'", dim.symbol, "'; give a size or a range, --dim ",
                                            dim.symbol, "=N or N..M")));
    }
  }
  for (const auto& [symbol, size] : given) {
    if (found.contains(symbol)) continue;
    return UsageError(absl::StrCat(
        are_listed() ? "--bucket " : "--dim ", symbol, ": no input has a free dimension of that ",
        "name; ",
        found.empty()
            ? "all dimensions have a size in the model, or are bound"
            : absl::StrCat("there are ", NearText(symbol, {found.begin(), found.end()}))));
  }
  return absl::OkStatus();
}

std::vector<SizeRange> FreeSizes::RangesOf(const Shape& shape) const {
  std::vector<SizeRange> ranges;
  ranges.reserve(shape.size());
  for (const Dim& dim : shape) {
    const auto found = ranges_.find(dim.symbol);
    ranges.push_back(dim.known() || found == ranges_.end() ? SizeRange(dim.size, dim.size)
                                                           : found->second);
  }
  return ranges;
}

std::vector<std::vector<int64_t>> FreeSizes::ShapesOf(const Shape& shape) const {
  std::vector<std::vector<int64_t>> shapes;
  shapes.reserve(all_.size());
  for (const SizeMap& sizes : all_) {
    std::vector<int64_t>& made = shapes.emplace_back();
    made.reserve(shape.size());
    for (const Dim& dim : shape) {
      const auto found = sizes.find(dim.symbol);
      made.push_back(dim.known() || found == sizes.end() ? dim.size : found->second);
    }
  }
  return shapes;
}

}  // namespace anemone
