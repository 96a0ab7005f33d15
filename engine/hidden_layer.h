// engine/hidden_layer.h: the catalogue of layers that no converter emits: one row for each netplist
// Type. Facts: engine/tables/hidden_layers.json.
#ifndef ANEMONE_ENGINE_HIDDEN_LAYER_H_
#define ANEMONE_ENGINE_HIDDEN_LAYER_H_

#include "absl/types/span.h"

namespace anemone {

struct HiddenOperand {
  const char* name;
  const char* layout;  // in the table's words; "" where it says nothing
};

// The texts are the table's; "" where it says nothing.
struct HiddenLayer {
  const char* type;
  const char* what;  // "fused attention"
  absl::Span<const HiddenOperand> operands;
  const char* output;  // its shape
  const char* semantics;
  const char* source;
  const char* status;
};

absl::Span<const HiddenLayer> HiddenLayers();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_HIDDEN_LAYER_H_
