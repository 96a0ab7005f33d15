// engine/hidden_layer.h: the catalog of layers that only a netplist can express and no converter
// emits, with one row for each netplist Type. The texts are those of
// engine/tables/hidden_layers.json.
#ifndef ANEMONE_ENGINE_HIDDEN_LAYER_H_
#define ANEMONE_ENGINE_HIDDEN_LAYER_H_

#include "absl/types/span.h"

namespace anemone {

struct HiddenOperand {
  const char* name;
  const char* layout;  // "" if the table does not give it
};

// Each text is "" if the table does not give it.
struct HiddenLayer {
  const char* type;
  const char* what;  // "fused attention"
  absl::Span<const HiddenOperand> operands;
  const char* output;  // shape of the output
  const char* semantics;
  const char* source;
  const char* status;
};

absl::Span<const HiddenLayer> HiddenLayers();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_HIDDEN_LAYER_H_
