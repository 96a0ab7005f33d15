#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "importer/passes/match.h"
#include "importer/passes/passes.h"

namespace anemone {
namespace {

// The pads of a Pad node with zeros along all axes but the first two: before, then after each.
// nullopt if its mode or value is another, it removes elements, or its pads are not constant.
std::optional<std::vector<int64_t>> SpatialZeroPads(const GraphEditor& g, const Node& pad,
                                                    size_t spatial) {
  if (StringOr(pad, "mode", "constant") != "constant") return std::nullopt;
  if (pad.inputs.size() > 3 && pad.inputs[3] != kNone) return std::nullopt;
  if (pad.inputs.size() > 2 && pad.inputs[2] != kNone) {
    const Tensor* value = g.ConstantOf(pad.inputs[2]);
    if (value == nullptr || value->elements() != 1 || ElementAsDouble(*value, 0) != 0) {
      return std::nullopt;
    }
  }
  const Tensor* pads = pad.inputs.size() > 1 ? g.ConstantOf(pad.inputs[1]) : nullptr;
  std::optional<std::vector<int64_t>> all = pads == nullptr ? std::nullopt : IntsOf(*pads);
  const size_t rank = spatial + 2;
  if (!all.has_value() || all->size() != 2 * rank) return std::nullopt;
  std::vector<int64_t> found;
  for (size_t i = 0; i < all->size(); ++i) {
    const int64_t count = (*all)[i];
    if (i % rank >= 2) {
      found.push_back(count);
    } else if (count != 0) {
      return std::nullopt;
    }
  }
  const bool adds = std::all_of(found.begin(), found.end(), [](int64_t n) { return n >= 0; });
  return adds ? std::optional(found) : std::nullopt;
}

}  // namespace

// Conv(Pad(x)) -> Conv(x) with larger pads. Requires: constant pads with zeros along spatial axes,
// explicit pads of the convolution, and a sum that is less than the extent of its kernel. Keeps:
// origins of both, if the Pad has no other reader.
absl::StatusOr<bool> FusePads(GraphEditor& g, NodeId id) {
  Node& conv = g.node(id);
  if (!Is(&conv, "Conv") || conv.inputs.size() < 2) return false;
  const Node* pad = g.ProducerOf(conv.inputs[0]);
  if (!Is(pad, "Pad") || !g.value(conv.inputs[1]).is_static()) return false;
  const std::vector<int64_t> weight = g.value(conv.inputs[1]).dims();
  if (weight.size() < 3) return false;
  const size_t spatial = weight.size() - 2;
  std::optional<std::vector<int64_t>> pads = SpatialZeroPads(g, *pad, spatial);
  if (!pads.has_value()) return false;
  const std::string auto_pad = StringOr(conv, "auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID") return false;
  if (const auto own = IntsOf(conv, "pads"); own.has_value() && auto_pad == "NOTSET") {
    if (own->size() != pads->size()) return false;
    for (size_t i = 0; i < pads->size(); ++i) (*pads)[i] += (*own)[i];
  }
  const std::vector<int64_t> dilations =
      IntsOf(conv, "dilations").value_or(std::vector<int64_t>(spatial, 1));
  if (dilations.size() != spatial) return false;
  for (size_t i = 0; i < pads->size(); ++i) {
    const size_t axis = i % spatial;
    if ((*pads)[i] > (weight[2 + axis] - 1) * dilations[axis]) return false;
  }
  RemoveAttribute(conv, "auto_pad");
  SetAttribute(conv, "pads", *std::move(pads));
  if (g.HasOneUse(pad->outputs[0])) conv.origins = UnionOfOrigins(*pad, conv);
  g.SetInput(id, 0, pad->inputs[0]);
  return true;
}

}  // namespace anemone
