// importer/gradients/window_form.h: the window of a convolution or pool, with all defaults
// resolved.
#ifndef ANEMONE_IMPORTER_GRADIENTS_WINDOW_FORM_H_
#define ANEMONE_IMPORTER_GRADIENTS_WINDOW_FORM_H_

#include <functional>

#include "importer/gradients/gradient.h"

namespace anemone {

// One number for each spatial axis.
struct WindowForm {
  Sizes kernel, strides, dilations, before, after;  // before, after: the padding
  size_t axes() const { return kernel.size(); }
};

// Of a node that reads spatial axes of sizes `in` and writes `out`. `after` is what the last window
// needs, whatever the node pads.
WindowForm WindowFormOf(const Node& node, const Sizes& kernel, const Sizes& in, const Sizes& out);

// Calls `visit` with each place in the kernel, row-major.
void ForEachPlace(const Sizes& kernel, const std::function<void(const Sizes&)>& visit);

// The elements that the windows see at `place` of the kernel: of N x C x in, padded already, the
// part N x C x out.
ValueId PatchOf(GraphWriter& w, ValueId padded, const Sizes& outer, const WindowForm& form,
                const Sizes& out, const Sizes& place);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_GRADIENTS_WINDOW_FORM_H_
