// importer/read/free_dimensions.h: the dimensions of a model's inputs that have no size yet, and
// the options that bind them.
#ifndef ANEMONE_IMPORTER_READ_FREE_DIMENSIONS_H_
#define ANEMONE_IMPORTER_READ_FREE_DIMENSIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// One size that is not known yet. Dimensions of one name are equal, so they are one item.
struct FreeDimension {
  struct Place {
    std::string input;
    int axis = 0;  // kNone if the input's rank is not known
  };
  std::string name;           // "" if it has no name; it then has one place
  std::vector<Place> places;  // at least one
  int64_t typical = 1;        // a size for examples, guessed from the name and the place
};

// In the order of the model's inputs.
std::vector<FreeDimension> FreeDimensionsOf(const Model& model);

// "batch, height, dimension 2 of 'x'"; "" if all dimensions have a size.
std::string FreeDimensionNames(const Model& model);

// One option that binds free dimensions: ImportOptions has both.
struct Binding {
  enum Option { kDim, kShape };
  Option option = kDim;
  std::string name;            // of the dimension, or of the input
  std::vector<int64_t> sizes;  // the dimension's only one, or all of the input's
};

// Bind them all to typical sizes; an input of unknown rank is an image.
std::vector<Binding> TypicalBindings(const Model& model);

// The same as flags, each quoted for a shell if needed: {"--dim batch=1", "--shape
// x=1x3x224x224"}. Empty if all dimensions have a size.
std::vector<std::string> BindingFlags(const Model& model);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_READ_FREE_DIMENSIONS_H_
