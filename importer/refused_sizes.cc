#include "importer/refused_sizes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/steady_now.h"
#include "base/usage_error.h"
#include "importer/infer/infer.h"
#include "importer/read/free_dimensions.h"

namespace anemone {
namespace {

constexpr int kMostTries = 64;                          // imports
constexpr absl::Duration kMostTime = absl::Seconds(3);  // a large model needs 0.3 s for an import
constexpr size_t kMostSizesShown = 4;                   // sizes that fit
constexpr int64_t kFarthest = 4;                        // from a given size
constexpr int64_t kSmallestPart = 64;                   // of a size that is too large
constexpr int64_t kMultiples[] = {8, 16, 32, 64};       // of networks that halve their input

// The sizes as users write them: "seq=7", "x=1x3x7x?".
std::vector<std::string> SizesOf(const ImportOptions& options) {
  std::vector<std::string> sizes;
  for (const auto& [name, size] : options.dims) sizes.push_back(absl::StrCat(name, "=", size));
  for (const auto& [input, shape] : options.shapes) {
    const std::string axes = absl::StrJoin(shape, "x", [](std::string* out, int64_t size) {
      absl::StrAppend(out, size < 0 ? "?" : absl::StrCat(size));
    });
    sizes.push_back(absl::StrCat(input, "=", axes));
  }
  return sizes;
}

// `options` with only the sizes that are to blame: those that the model cannot have alone or, if it
// can have each alone, those without which the others are accepted.
ImportOptions GuiltyOnly(const ImportOptions& options, const ImportAgain& import) {
  constexpr size_t kMostNames = 8;  // two imports for each
  if (options.dims.size() + options.shapes.size() > kMostNames) return options;
  const auto is_refused = [&](const ImportOptions& tried) {
    return absl::IsInvalidArgument(import(tried).status());
  };
  const auto for_each = [&](const auto& visit) {
    for (const auto& dim : options.dims) visit(&ImportOptions::dims, dim);
    for (const auto& shape : options.shapes) visit(&ImportOptions::shapes, shape);
  };
  ImportOptions none = options;
  none.dims.clear();
  none.shapes.clear();
  ImportOptions guilty = none;
  for_each([&](auto sizes, const auto& size) {
    ImportOptions alone = none;
    (alone.*sizes).insert(size);
    if (is_refused(alone)) (guilty.*sizes).insert(size);
  });
  if (!guilty.dims.empty() || !guilty.shapes.empty()) return guilty;
  guilty = options;
  for_each([&](auto sizes, const auto& size) {
    ImportOptions without = guilty;
    (without.*sizes).erase(size.first);
    if (is_refused(without)) guilty = std::move(without);
  });
  return guilty;
}

// A size that the user gave and may change: of a name, or of all places of a free dimension.
struct Given {
  std::vector<FreeDimension::Place> places;  // in `shapes`; empty: it is in `dims`
  std::string name;
  int64_t size = 0;
  int64_t typical = 1;

  void Set(ImportOptions& options, int64_t to) const {
    if (places.empty()) options.dims[name] = to;
    for (const FreeDimension::Place& place : places) options.shapes[place.input][place.axis] = to;
  }
};

class SizeSearch {
 public:
  SizeSearch(const ImportOptions& options, const Model& free, const ImportAgain& import)
      : options_(options), import_(import) {
    for (const FreeDimension& dim : FreeDimensionsOf(free)) AddGiven(dim);
  }

  // "seq=6 or seq=8"; "" if none is found.
  std::string Run() {
    for (int64_t step = 1; step <= kFarthest && fitting_.empty(); ++step) {
      for (const Given& given : given_) {
        Try({&given}, [&](int64_t size) { return size - step; });
        Try({&given}, [&](int64_t size) { return size + step; });
      }
    }
    std::vector<const Given*> all;
    for (const Given& given : given_) all.push_back(&given);
    for (const int64_t multiple : kMultiples) {
      if (!fitting_.empty()) break;
      const auto below = [&](int64_t size) { return size == 1 ? 1 : size / multiple * multiple; };
      const auto above = [&](int64_t size) {
        return size == 1 ? 1 : (size + multiple - 1) / multiple * multiple;
      };
      Try(all, below);
      Try(all, above);
      for (const Given* given : all) {
        Try({given}, below);
        Try({given}, above);
      }
    }
    for (int64_t part = 2; part <= kSmallestPart && fitting_.empty(); part *= 2) {
      for (const Given* given : all) {
        Try({given}, [&](int64_t size) { return size / part; });
      }
    }
    if (fitting_.empty()) TryTypical(all);
    return absl::StrJoin(fitting_, " or ");
  }

 private:
  void AddGiven(const FreeDimension& dim) {
    Given given{.name = dim.name, .typical = dim.typical};
    if (const auto found = options_.dims.find(dim.name); found != options_.dims.end()) {
      given.size = found->second;
      given_.push_back(std::move(given));
      return;
    }
    for (const FreeDimension::Place& place : dim.places) {
      const auto shape = options_.shapes.find(place.input);
      const bool has_size = shape != options_.shapes.end() && place.axis != kNone &&
                            place.axis < static_cast<int>(shape->second.size()) &&
                            shape->second[place.axis] >= 0;
      if (!has_size) continue;
      given.size = shape->second[place.axis];
      given.places.push_back(place);
    }
    if (!given.places.empty()) given_.push_back(std::move(given));
  }

  template <class Change>
  void Try(const std::vector<const Given*>& changed, const Change& change) {
    ImportOptions tried = options_;
    for (const Given* given : changed) {
      const int64_t size = change(given->size);
      if (size < 1) return;
      given->Set(tried, size);
    }
    TryOptions(tried);
  }

  void TryTypical(const std::vector<const Given*>& all) {
    ImportOptions every = options_;
    for (const Given* given : all) {
      given->Set(every, given->typical);
      ImportOptions one = options_;
      given->Set(one, given->typical);
      TryOptions(one);
    }
    TryOptions(every);
  }

  void TryOptions(const ImportOptions& tried) {
    std::vector<std::string> changed = SizesOf(tried);
    const std::vector<std::string> refused = SizesOf(options_);
    std::erase_if(changed, [&](const std::string& size) {
      return std::find(refused.begin(), refused.end(), size) != refused.end();
    });
    const std::string text = absl::StrJoin(changed, ",");
    if (text.empty()) return;
    if (fitting_.size() == kMostSizesShown || tries_ == kMostTries) return;
    if (SteadyNow() - start_ > kMostTime) return;
    if (std::find(tried_.begin(), tried_.end(), text) != tried_.end()) return;
    tried_.push_back(text);
    ++tries_;
    if (import_(tried).ok()) fitting_.push_back(text);
  }

  const ImportOptions& options_;
  const ImportAgain& import_;
  std::vector<Given> given_;
  const absl::Time start_ = SteadyNow();
  int tries_ = 0;
  std::vector<std::string> tried_, fitting_;
};

}  // namespace

namespace {

absl::Status WithRefusal(absl::Status status, absl::string_view refusal) {
  status.SetPayload(kRefusalPayload, absl::Cord(refusal));
  return status;
}

}  // namespace

absl::Status ExplainSizes(const ImportOptions& options, const absl::Status& refusal,
                          const ImportAgain& import) {
  const bool has_sizes = !options.dims.empty() || !options.shapes.empty();
  if (!has_sizes || !absl::IsInvalidArgument(refusal) || IsUsageError(refusal)) return refusal;
  ImportOptions sized = options;
  sized.stop_after = 0;  // sizes are refused by inference, before the passes
  ImportOptions free = sized;
  free.dims.clear();
  free.shapes.clear();
  const absl::StatusOr<Model> model = import(free);
  if (!model.ok()) return refusal;  // the model is refused at any size
  const absl::string_view why = absl::StripSuffix(refusal.message(), kCheckerRemedy);
  if (!options.find_sizes) return WithRefusal(AsUsageError(refusal), why);
  const ImportOptions guilty = GuiltyOnly(sized, import);
  const std::string fitting = SizeSearch(sized, *model, import).Run();
  const bool one = guilty.shapes.empty() && guilty.dims.size() == 1;
  const std::string text = absl::StrCat(
      absl::StrJoin(SizesOf(guilty), ", "), ": the model cannot have ",
      one ? "this size" : "these sizes", ": ", why, "; ",
      fitting.empty() ? "give other sizes" : absl::StrCat("sizes that fit: ", fitting));
  return WithRefusal(UsageError(text), why);
}

}  // namespace anemone
