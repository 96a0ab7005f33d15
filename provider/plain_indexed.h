// provider/plain_indexed.h: rules of plain steps (plain_steps.h) that fill arrays, read or write
// elements by index, and cut and transpose arrays.
#ifndef ANEMONE_PROVIDER_PLAIN_INDEXED_H_
#define ANEMONE_PROVIDER_PLAIN_INDEXED_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "provider/plain_moves.h"
#include "provider/plain_node.h"

namespace anemone {

// Elements of input 0 at other places.
PlainStep MovedStep(const PlainNode& node, std::vector<int64_t> dims, StridedView view);

std::optional<PlainStep> ConstantOfShapeStep(const PlainNode& node);
std::optional<PlainStep> GatherStep(const PlainNode& node);
std::optional<PlainStep> GatherElementsStep(const PlainNode& node);
std::optional<PlainStep> PadStep(const PlainNode& node);
std::optional<PlainStep> ScatterElementsStep(const PlainNode& node);
std::optional<PlainStep> ScatterNDStep(const PlainNode& node);
std::optional<PlainStep> SplitStep(const PlainNode& node);
std::optional<PlainStep> TransposeStep(const PlainNode& node);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PLAIN_INDEXED_H_
