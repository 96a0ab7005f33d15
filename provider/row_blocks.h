// provider/row_blocks.h: the rows of a state that a node of kStateDomain (importer/row_writes.h)
// writes in one run, as blocks of one shape in the state's surface.
//
//   ANEMONE_ASSIGN_OR_RETURN(RowBlocks blocks, RowBlocks::Of(node, state, rows, positions));
//   const std::vector<math::Half> old = blocks.Read(surface);
//   blocks.Write(made, surface, nullptr);       // a NaN becomes +infinity, as at a port
//   blocks.Restore(old, surface);               // if the run failed
#ifndef ANEMONE_PROVIDER_ROW_BLOCKS_H_
#define ANEMONE_PROVIDER_ROW_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/surface.h"
#include "importer/graph.h"
#include "math/core/half.h"
#include "math/move/counted_convert.h"

namespace anemone {

// Where the elements of an ONNX tensor are: sizes and strides, in bytes, by its axes.
struct Strided {
  math::Element element = math::Element::kHalf;
  std::vector<int64_t> dims, strides;

  static Strided On(const SurfaceLayout& layout, std::vector<int64_t> dims);
  static Strided Dense(DataType type, std::vector<int64_t> dims);
};

class RowBlocks {
 public:
  // `state` is on a surface. kInvalidArgument: a position is outside of the state, or shapes break
  // ONNX's rules.
  static absl::StatusOr<RowBlocks> Of(const Node& node, const Strided& state, const Strided& rows,
                                      const Tensor& positions);

  // `rows` and `surface` are the first bytes of the two. `tally` may be null
  // (math/move/counted_convert.h).
  void Write(const std::byte* rows, std::byte* surface, math::Tally* tally) const;
  std::vector<math::Half> Read(const std::byte* surface) const;
  void Restore(const std::vector<math::Half>& old, std::byte* surface) const;
  int64_t elements() const { return static_cast<int64_t>(places_.size()) * block_elements_; }

 private:
  struct BlockAxis {
    int64_t extent = 1, from = 0, to = 0;  // strides in bytes
  };
  struct Place {
    int64_t from = 0, to = 0;  // bytes
  };
  struct Maker;

  void SetBlock(std::vector<BlockAxis> axes, math::Element element);

  math::Extents extents_ = {1, 1, 1, 1, 1};
  math::Layout from_, to_;
  int64_t block_elements_ = 1;
  std::vector<Place> places_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ROW_BLOCKS_H_
