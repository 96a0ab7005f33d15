// importer/padding/padding_elementwise.h: the operators that compute each element from the elements
// at the same place, for the proof of importer/padding/padding.h.
#ifndef ANEMONE_IMPORTER_PADDING_PADDING_ELEMENTWISE_H_
#define ANEMONE_IMPORTER_PADDING_PADDING_ELEMENTWISE_H_

#include "absl/strings/string_view.h"
#include "anemone/tensor.h"
#include "importer/padding/padding_flow.h"

namespace anemone {

// nullptr: it is none of them (Cast and Clip have rules of their own).
const Elementwise* FindElementwise(absl::string_view op_type);

Bounds BoundsOfCast(DataType to, Bounds from);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PADDING_PADDING_ELEMENTWISE_H_
