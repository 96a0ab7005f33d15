#include "importer/not_finite.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/float_scan.h"
#include "base/known_limits.h"
#include "importer/elements.h"
#include "importer/operators/operators.h"

namespace anemone {
namespace {

void Count(double element, NotFinite& found) {
  if (std::isnan(element)) ++found.nans;
  if (std::isinf(element)) ++found.infinities;
}

}  // namespace

NotFinite CountNotFinite(std::string name, const Tensor& tensor) {
  NotFinite found{std::move(name)};
  if (tensor.compressed() == nullptr && tensor.type() == DataType::kFloat) {
    const FloatLimits limits = KnownOrReadLimits(tensor);
    if (!limits.has_nan && !std::isinf(limits.low) && !std::isinf(limits.high)) return found;
  }
  if (const Compressed* stored = tensor.compressed()) {
    for (float scale : stored->scales()) Count(scale, found);
    for (float entry : stored->values()) Count(entry, found);
  } else if (IsFloating(tensor.type()) && tensor.elements() > 0) {
    const int64_t count = tensor.is_fill() ? 1 : tensor.elements();
    for (int64_t i = 0; i < count; ++i) Count(ElementAsDouble(tensor, i), found);
  }
  return found;
}

std::vector<NotFinite> FindNotFinite(const Graph& graph) {
  absl::flat_hash_set<ValueId> of_products;
  for (const Node& node : graph.nodes) {
    if (OperatorOf(node).weight_axes == nullptr) continue;
    of_products.insert(node.inputs.begin(), node.inputs.end());
  }
  std::vector<NotFinite> found;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (!graph.values[i].constant.has_value()) continue;
    NotFinite counted = CountNotFinite(graph.values[i].name, *graph.values[i].constant);
    const bool is_wrong = counted.nans > 0 ||
                          (counted.infinities > 0 && of_products.contains(static_cast<ValueId>(i)));
    if (is_wrong) found.push_back(std::move(counted));
  }
  return found;
}

std::string NotFiniteText(const std::vector<NotFinite>& found) {
  const NotFinite& first = found.front();
  std::string text = absl::StrCat("initializer '", first.name, "' has ");
  if (first.nans > 0) absl::StrAppend(&text, first.nans, " NaN");
  if (first.nans > 0 && first.infinities > 0) text += " and ";
  if (first.infinities > 0) absl::StrAppend(&text, first.infinities, " infinite");
  text += first.nans + first.infinities == 1 ? " element" : " elements";
  if (found.size() > 1) {
    absl::StrAppend(&text, "; ", found.size() - 1, " more initializer",
                    found.size() == 2 ? " has some" : "s have some");
  }
  return text;
}

}  // namespace anemone
