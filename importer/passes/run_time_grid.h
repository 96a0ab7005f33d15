// importer/passes/run_time_grid.h: finds quantizers that are written out as several nodes.
#ifndef ANEMONE_IMPORTER_PASSES_RUN_TIME_GRID_H_
#define ANEMONE_IMPORTER_PASSES_RUN_TIME_GRID_H_

#include "importer/edit.h"

namespace anemone {

// True if `quantize`, a QuantizeLinear, computes its scale and zero point from the least and the
// largest element of its input, so that no element is clipped: in uint8 as DynamicQuantizeLinear
// does, or in int8 with the zero point 0. ONNX Runtime's quantizer writes these nodes for opset 10,
// which does not have DynamicQuantizeLinear, and for int8.
bool HasRunTimeGrid(GraphEditor& g, const Node& quantize);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PASSES_RUN_TIME_GRID_H_
