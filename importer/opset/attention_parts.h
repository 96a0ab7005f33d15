// importer/opset/attention_parts.h: nodes that the operators of ONNX (opset_attention.cc) and of
// com.microsoft (importer/contrib) become alike.
#ifndef ANEMONE_IMPORTER_OPSET_ATTENTION_PARTS_H_
#define ANEMONE_IMPORTER_OPSET_ATTENTION_PARTS_H_

#include <cstdint>
#include <vector>

#include "importer/opset/opset_lifts.h"

namespace anemone {

// Of booleans, queries x keys behind axes of size 1: true where a query, which stands behind `past`
// keys, attends to a key by causality.
Tensor CausalMask(std::vector<int64_t> dims, int64_t past);

// batch x sequence x (heads * size) to batch x heads x sequence x size.
ValueId ToHeads(LiftContext& c, ValueId value, const std::vector<int64_t>& dims, int64_t heads);

// batch x heads x sequence x size with each head repeated `repeats` times.
ValueId RepeatHeads(LiftContext& c, ValueId value, const std::vector<int64_t>& dims,
                    int64_t repeats);

// x / sqrt(mean(x^2) + epsilon) over `axes`, in the form that
// kernels/rewrites/rms_normalization.cc matches.
ValueId DividedByRms(LiftContext& c, DataType type, ValueId x, const std::vector<int64_t>& axes,
                     float epsilon);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_OPSET_ATTENTION_PARTS_H_
