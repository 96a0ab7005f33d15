#include "provider/coreml/size_check.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/annotated.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/edit.h"
#include "importer/infer/infer.h"
#include "importer/infer/infer_checks.h"
#include "importer/refused_sizes.h"

namespace anemone {
namespace {

// Ranges of at most this many sizes are checked size by size.
constexpr int64_t kFewSizes = 64;
constexpr size_t kMostShown = 4;  // combinations of listed sizes

// The importer trusts the shape that a Reshape asks for.
std::string ReshapeProblem(const Value& x, const Value& y) {
  const auto from = ElementCount(x.dims()), to = ElementCount(y.dims());
  if (from.ok() && to.ok() && *from == *to) return "";
  return absl::StrCat("a reshape of ", DimsToString(x.dims()), " to ", DimsToString(y.dims()));
}

// ONNX Runtime gives a pool whose window does not fit a result of one place.
std::string PoolProblem(const Node& node, const Value& x) {
  Shape window;
  for (int64_t size : IntsOf(node, "kernel_shape").value_or(std::vector<int64_t>())) {
    window.push_back({.size = size, .symbol = ""});
  }
  return std::string(CheckWindow(node, x, window).message());
}

std::string ProblemOf(const Graph& graph, const Node& node) {
  for (ValueId id : node.outputs) {
    if (id == kNone || !graph.values[id].is_static() || graph.values[id].constant) continue;
    const std::vector<int64_t>& dims = graph.values[id].dims();
    if (std::any_of(dims.begin(), dims.end(), [](int64_t extent) { return extent < 1; })) {
      return absl::StrCat("the result '", graph.values[id].name, "' has no elements (",
                          DimsToString(dims), ")");
    }
  }
  if (!node.domain.empty() || !HasInput(node, 0) || node.outputs[0] == kNone) return "";
  const Value &x = graph.values[node.inputs[0]], &y = graph.values[node.outputs[0]];
  if (!x.is_static() || !y.is_static()) return "";
  if (node.op_type == "Reshape") return ReshapeProblem(x, y);
  if (node.op_type == "MaxPool" || node.op_type == "AveragePool") return PoolProblem(node, x);
  return "";
}

// kInvalidArgument, naming the node: a result is not an array of Core ML's.
absl::Status CheckBound(const Model& model) {
  for (const Node& node : model.graph.nodes) {
    const std::string problem = ProblemOf(model.graph, node);
    if (problem.empty()) continue;
    return absl::InvalidArgumentError(absl::StrCat(NodeLabel(model, node), ": ", problem));
  }
  return absl::OkStatus();
}

std::string TextOf(const SizeMap& sizes) {
  return absl::StrJoin(sizes, ",", absl::PairFormatter("="));
}

// What is wrong, without the file and what to do about it.
std::string MessageOf(const absl::Status& status, const std::string& path) {
  absl::string_view message = absl::StripSuffix(status.message(), kCheckerRemedy);
  message = absl::StripPrefix(absl::StripPrefix(message, path), ": ");
  return std::string(message);
}

class SizeCheck {
 public:
  SizeCheck(const FreeSizes& free, const std::string& path, const ImportOptions& options)
      : free_(free), options_(options), import_([&path](const ImportOptions& at) {
          absl::StatusOr<Model> model = ImportFile(path, at);
          const absl::Status status = model.ok() ? CheckBound(*model) : model.status();
          if (status.ok()) return model;
          return absl::StatusOr<Model>(absl::Status(status.code(), MessageOf(status, path)));
        }) {}

  absl::Status Run() {
    if (free_.are_listed()) return RunList();
    std::optional<Refused> refused;
    ANEMONE_ASSIGN_OR_RETURN(refused, RefusedOf(free_.ranges()));
    return refused ? ExplainRange(*refused) : absl::OkStatus();
  }

 private:
  using Ranges = std::map<std::string, SizeRange>;

  struct Refused {
    SizeMap sizes;
    absl::Status why;
  };

  ImportOptions OptionsAt(const SizeMap& sizes) const {
    ImportOptions made = options_;
    made.dims.insert(sizes.begin(), sizes.end());
    return made;
  }

  // OK, or kInvalidArgument: the model cannot have the sizes. Other errors end the check.
  absl::Status At(const SizeMap& sizes) const {
    ImportOptions options = OptionsAt(sizes);
    options.find_sizes = false;
    return import_(options).status();
  }
  bool Fits(const SizeMap& sizes) const { return At(sizes).ok(); }

  // The first of the range's sizes that are checked which the model cannot have.
  absl::StatusOr<std::optional<Refused>> RefusedOf(const Ranges& ranges) const {
    for (const SizeMap& sizes : Probes(ranges)) {
      absl::Status status = At(sizes);
      if (status.ok()) continue;
      if (!absl::IsInvalidArgument(status)) return status;
      return Refused{sizes, std::move(status)};
    }
    return std::optional<Refused>();
  }

  static SizeMap EndOf(const Ranges& ranges, int64_t SizeRange::*end) {
    SizeMap sizes;
    for (const auto& [symbol, range] : ranges) sizes[symbol] = range.*end;
    return sizes;
  }

  static std::vector<SizeMap> Probes(const Ranges& ranges) {
    const SizeMap smallest = EndOf(ranges, &SizeRange::first),
                  largest = EndOf(ranges, &SizeRange::second);
    std::vector<SizeMap> probes = {smallest, largest};
    double count = 1;
    for (const auto& [symbol, range] : ranges) {
      count *= static_cast<double>(range.second - range.first + 1);
    }
    if (count <= kFewSizes) {
      std::vector<SizeMap> all = {{}};
      for (const auto& [symbol, range] : ranges) {
        std::vector<SizeMap> longer;
        for (const SizeMap& sizes : all) {
          for (int64_t size = range.first; size <= range.second; ++size) {
            longer.push_back(sizes);
            longer.back()[symbol] = size;
          }
        }
        all = std::move(longer);
      }
      probes.insert(probes.end(), all.begin(), all.end());
      return probes;
    }
    for (const auto& [symbol, range] : ranges) {
      const auto [first, last] = range;
      for (const SizeMap& others : {largest, smallest}) {
        for (int64_t size : {first, first + 1, first + (last - first) / 2, last - 1, last}) {
          SizeMap sizes = others;
          sizes[symbol] = size;
          if (std::find(probes.begin(), probes.end(), sizes) == probes.end()) {
            probes.push_back(std::move(sizes));
          }
        }
      }
    }
    return probes;
  }

  // Sizes of the range that the model can have: an end of it, or powers of two.
  std::optional<SizeMap> Anchor() const {
    for (const SizeMap& sizes : {free_.Largest(), free_.Smallest()}) {
      if (Fits(sizes)) return sizes;
    }
    std::optional<SizeMap> last;
    for (int64_t size = 1; size <= int64_t{1} << 30; size *= 2) {
      SizeMap sizes;
      for (const auto& [symbol, range] : free_.ranges()) {
        sizes[symbol] = std::clamp(size, range.first, range.second);
      }
      if (last == sizes) continue;
      if (Fits(sizes)) return sizes;
      last = std::move(sizes);
    }
    return std::nullopt;
  }

  // The size nearest to `end` that the model can have, if all between it and the anchor's are
  // possible.
  int64_t Nearest(const SizeMap& anchor, const std::string& symbol, int64_t end) const {
    SizeMap sizes = anchor;
    sizes[symbol] = end;
    if (Fits(sizes)) return end;
    int64_t good = anchor.at(symbol), bad = end;
    while (std::abs(good - bad) > 1) {
      const int64_t middle = sizes[symbol] = good + (bad - good) / 2;
      (Fits(sizes) ? good : bad) = middle;
    }
    return good;
  }

  // The part of the range that the model can have; nullopt if there are gaps in it.
  std::optional<Ranges> Part(const SizeMap& anchor) const {
    Ranges part;
    for (const auto& [symbol, range] : free_.ranges()) {
      part[symbol] = {Nearest(anchor, symbol, range.first), Nearest(anchor, symbol, range.second)};
    }
    const absl::StatusOr<std::optional<Refused>> refused = RefusedOf(part);
    return refused.ok() && !refused->has_value() ? std::optional(part) : std::nullopt;
  }

  // Refused, with what it means for the sizes that were asked for.
  absl::Status Explained(const Refused& refused, const std::string& fitting) const {
    return UsageError(absl::StrCat(refused.why.message(), "; the model cannot have ",
                                   TextOf(refused.sizes), ", which is one of ", free_.Text(),
                                   "; sizes that fit: ", fitting));
  }

  absl::Status ExplainRange(const Refused& refused) const {
    const std::optional<SizeMap> anchor = Anchor();
    if (anchor) {
      if (const std::optional<Ranges> part = Part(*anchor)) {
        return Explained(refused, TextOfRanges(*part));
      }
    }
    absl::Status status = Suggested(refused);
    if (!anchor) return status;
    return UsageError(absl::StrCat(status.message(), "; the model has ", TextOf(*anchor),
                                   ", but not each size of ", free_.Text(),
                                   ": list the sizes with --bucket ", free_.ranges().begin()->first,
                                   "=N,M,..."));
  }

  // With sizes near the refused ones.
  absl::Status Suggested(const Refused& refused) const {
    return ExplainSizes(OptionsAt(refused.sizes), refused.why, import_);
  }

  absl::Status RunList() const {
    std::vector<SizeMap> fitting;
    std::optional<Refused> refused;
    for (const SizeMap& sizes : free_.All()) {
      absl::Status status = At(sizes);
      if (!status.ok() && !absl::IsInvalidArgument(status)) return status;
      if (status.ok()) fitting.push_back(sizes);
      if (!status.ok() && !refused) refused = Refused{sizes, std::move(status)};
    }
    if (!refused) return absl::OkStatus();
    return fitting.empty() ? Suggested(*refused) : Explained(*refused, TextOfList(fitting));
  }

  // Of each symbol the sizes that fit, if all their combinations do; else some combinations.
  static std::string TextOfList(const std::vector<SizeMap>& fitting) {
    std::map<std::string, std::set<int64_t>> each;
    for (const SizeMap& sizes : fitting) {
      for (const auto& [symbol, size] : sizes) each[symbol].insert(size);
    }
    size_t count = 1;
    std::vector<std::string> texts;
    for (const auto& [symbol, sizes] : each) {
      count *= sizes.size();
      texts.push_back(absl::StrCat(symbol, "=", absl::StrJoin(sizes, ",")));
    }
    if (count == fitting.size()) return absl::StrJoin(texts, " ");
    texts.clear();
    for (const SizeMap& sizes : fitting) {
      if (texts.size() < kMostShown) texts.push_back(TextOf(sizes));
    }
    return absl::StrJoin(texts, " or ");
  }

  const FreeSizes& free_;
  const ImportOptions& options_;
  const ImportAgain import_;
};

}  // namespace

absl::Status CheckSizes(const FreeSizes& free, const std::string& path,
                        const ImportOptions& options) {
  return Annotated(SizeCheck(free, path, options).Run(), path);
}

}  // namespace anemone
