// tests/kernels/hidden/hidden_examples.h: examples of the layers of the catalogue
// (engine/hidden_layer.h): a unit by its keys, and its expected result by the formula of
// hidden_layers.json in double precision.
#ifndef ANEMONE_TESTS_KERNELS_HIDDEN_HIDDEN_EXAMPLES_H_
#define ANEMONE_TESTS_KERNELS_HIDDEN_HIDDEN_EXAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/hidden/authored.h"

namespace anemone {

// One example for each layer that has a formula. MatrixDecomposition does not have one.
std::vector<Example> HiddenExamples();

// Below: examples of other sizes and forms of the layers that are reached only by direct authoring.
struct Template {
  int64_t height, width, top = 0, bottom = 0, left = 0, right = 0;
};
Example CorrelationExample(const Dims& map, const Template& t, bool flat);

Example CrossProductExample(int64_t vectors);
Example FurthestPointExample(int64_t clouds, int64_t points, int64_t count);
Example RadiusExample(int64_t clouds, int64_t centroids, int64_t points, double radius);
// The planes of `ref` are wider than those of `aux` by `range` and `more`.
Example CostVolumeExample(const Dims& aux, int64_t range, int64_t more);

// A DynamicSlice: each axis of `order` begins at its number in the bottom `index` and has its size
// of `sizes`.
struct Slices {
  std::vector<Axis> order;
  std::vector<int64_t> sizes;
  Input index;
  std::string padding = "Background";
  double background = 0;
};
Json SliceKeys(const Slices& slices);
Example SliceExample(const Input& x, const Slices& slices);

Example FlattenExample(const Dims& dims, bool channels_last);
Example UnflattenExample(const Dims& dims, bool channels_last);
Example DropoutExample(const Dims& dims);
Example DynamicGocExample(const Dims& dims, const Dims& scale, const Dims& bias, bool bias_only);

struct ScaledElementWiseForm {
  std::string type;
  double scale = 1, bias = 0;
  bool negate_first = false, negate_second = false;
};
double ScaledElementWiseValue(const ScaledElementWiseForm& form, double x, double z);
Example ScaledElementWiseExample(const Dims& dims, const ScaledElementWiseForm& form);

Example RasterizedExample(const Dims& dims, int64_t height, int64_t width, int64_t groups);

}  // namespace anemone

#endif  // ANEMONE_TESTS_KERNELS_HIDDEN_HIDDEN_EXAMPLES_H_
