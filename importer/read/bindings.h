// importer/read/bindings.h: sizes for a model's symbolic dimensions, as the user gives them with
// --dim and --shape.
//
// A name stands for one size wherever the model has it ("batch" of two inputs). A name without a
// letter in it ("?", "-1") is none: each such dimension stands for itself. So does a name that
// --shape gives several sizes to. An input's declared size of 0 or less means unknown, too; one
// that --shape or --dim gives is meant.
#ifndef ANEMONE_IMPORTER_READ_BINDINGS_H_
#define ANEMONE_IMPORTER_READ_BINDINGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "importer/graph.h"
#include "importer/importer.h"

namespace anemone {

// Applies `options.dims` and `options.shapes` (a negative size leaves its dimension as it is) to
// the inputs, and to everything the file declares with the same names. Goes before inference.
// Errors: kInvalidArgument: no such input or name, wrong rank, a size that is not positive or
// contradicts the model or another option.
absl::Status BindDimensions(Model& model, const ImportOptions& options);

// A dimension of an input that has no size yet.
struct UnboundDim {
  std::string input;
  int axis = 0;        // kNone: the input's rank is not known
  std::string symbol;  // "" if it has no name
};

std::vector<UnboundDim> UnboundDims(const Model& model);

// "batchx3x48x?", as --shape has it.
std::string ShapeText(const Shape& shape);

// Whether the model can be run: OK if every dimension of every tensor input has a size, else
// kInvalidArgument:
//   input 'x': dimensions 0 ('batch'), 3 ('width') have no size; give --dim 'batch=1'
//   --dim 'width=1', or --shape 'x=?x3x48x?' with a number for each '?'
absl::Status RequireBound(const Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_BINDINGS_H_
