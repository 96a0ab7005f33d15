// importer/read/bindings.h: binds a model's symbolic dimensions to sizes that the user gives with
// --dim and --shape.
//
// Equal names mean equal sizes throughout the model ("batch" of two inputs). Two exceptions: a name
// without a letter ("?", "-1") is not a name, and each such dimension is independent; so is each
// dimension whose name gets several sizes from --shape. A declared input size below 0 also means
// unknown. A declared size of 0 is a size, but --shape may give another one, because some exporters
// write 0 for unknown.
#ifndef ANEMONE_IMPORTER_READ_BINDINGS_H_
#define ANEMONE_IMPORTER_READ_BINDINGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

// Applies `options.dims` and `options.shapes` (a negative size leaves its dimension unchanged) to
// the inputs, and to all other declared shapes that use the same names. Call it before inference.
// Errors: kInvalidArgument: no such input or name, wrong rank, a size that is not positive or that
// contradicts the model or another option.
absl::Status BindDimensions(Model& model, const ImportOptions& options);

// A dimension of an input that has no size yet.
struct UnboundDim {
  std::string input;
  int axis = 0;        // kNone if the input's rank is not known
  std::string symbol;  // "" if it has no name
};

std::vector<UnboundDim> UnboundDims(const Model& model);

// The shape for messages: "(batch)x3x48x?".
std::string ShapeText(const Shape& shape);

// OK if every dimension of every tensor input has a size, so that the model can be run. Otherwise
// kInvalidArgument:
//   input 'x': dimensions 0 ('batch'), 3 ('width') have no size; give --dim 'batch=1'
//   --dim 'width=1', or --shape 'x=?x3x48x?' with a number for each '?'
absl::Status RequireBound(const Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_BINDINGS_H_
