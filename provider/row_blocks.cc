#include "provider/row_blocks.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/dims.h"
#include "importer/edit.h"
#include "importer/row_writes.h"

namespace anemone {

Strided Strided::On(const SurfaceLayout& layout, std::vector<int64_t> dims) {
  const math::Layout bytes = MathLayout(layout);
  Strided made{bytes.element, std::move(dims), {}};
  const int rank = static_cast<int>(made.dims.size());
  for (int i = 0; i < rank; ++i) {
    made.strides.push_back(bytes.byte_strides[static_cast<int>(ToEngineAxis(rank, i))]);
  }
  return made;
}

Strided Strided::Dense(DataType type, std::vector<int64_t> dims) {
  Strided made{ElementOf(type), std::move(dims), {}};
  made.strides.resize(made.dims.size());
  int64_t stride = math::SizeOf(made.element);
  for (size_t i = made.dims.size(); i-- > 0;) {
    made.strides[i] = stride;
    stride *= made.dims[i];
  }
  return made;
}

// Finds the blocks, by the operator.
struct RowBlocks::Maker {
  const Node& node;
  const Strided& data;  // with the operator's axes
  const Strided& rows;
  const std::vector<int64_t>& shape;  // of the positions
  const std::vector<int64_t>& positions;
  RowBlocks& made;

  absl::StatusOr<int64_t> Normal(int64_t position, size_t axis) const {
    const int64_t size = data.dims[axis];
    if (position < -size || position >= size) return Outside(position, axis);
    return position < 0 ? position + size : position;
  }
  absl::Status Outside(int64_t position, size_t axis) const {
    return absl::InvalidArgumentError(absl::StrCat("position ", position, " is outside of the ",
                                                   data.dims[axis], " rows of the state"));
  }
  absl::StatusOr<size_t> AxisOf(int64_t fallback) const {
    const auto rank = static_cast<int64_t>(data.dims.size());
    const int64_t axis = IntOr(node, "axis", fallback);
    if (axis < -rank || axis >= rank) return WrongShapes();
    return static_cast<size_t>(axis < 0 ? axis + rank : axis);
  }
  static absl::Status WrongShapes() {
    return absl::InvalidArgumentError(
        "the shapes of data, positions and rows do not fit; run the ONNX checker on the model");
  }
  BlockAxis Of(size_t axis, size_t of_rows) const {
    return {data.dims[axis], rows.strides[of_rows], data.strides[axis]};
  }

  absl::Status Blocks();    // ScatterND: positions of whole blocks
  absl::Status Elements();  // ScatterElements: a position for each element
  absl::Status Steps();     // TensorScatter: the first position of each item of a batch
};

// Row i of the positions has the first coordinates of a block, which is element i of the rows.
absl::Status RowBlocks::Maker::Blocks() {
  if (shape.empty()) return WrongShapes();
  const auto known = static_cast<size_t>(shape.back());
  const size_t outer = shape.size() - 1;
  if (known < 1 || known > data.dims.size() ||
      rows.dims.size() != outer + data.dims.size() - known ||
      !std::equal(shape.begin(), shape.end() - 1, rows.dims.begin()) ||
      !std::equal(data.dims.begin() + static_cast<int64_t>(known), data.dims.end(),
                  rows.dims.begin() + static_cast<int64_t>(outer))) {
    return WrongShapes();
  }
  std::vector<BlockAxis> block;
  for (size_t axis = known; axis < data.dims.size(); ++axis) {
    block.push_back(Of(axis, outer + axis - known));
  }
  made.SetBlock(std::move(block), rows.element);
  const size_t count = positions.size() / known;
  for (size_t i = 0; i < count; ++i) {
    Place place;
    for (size_t axis = 0; axis < known; ++axis) {
      ANEMONE_ASSIGN_OR_RETURN(const int64_t at, Normal(positions[i * known + axis], axis));
      place.to += at * data.strides[axis];
    }
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = outer; axis-- > 0;) {
      place.from += rest % shape[axis] * rows.strides[axis];
      rest /= shape[axis];
    }
    made.places_.push_back(place);
  }
  return absl::OkStatus();
}

// Positions along the last axis are mostly equal: a head's elements are then one block.
absl::Status RowBlocks::Maker::Elements() {
  ANEMONE_ASSIGN_OR_RETURN(const size_t along, AxisOf(0));
  const size_t rank = data.dims.size();
  if (rows.dims != shape || shape.size() != rank) return WrongShapes();
  for (size_t axis = 0; axis < rank; ++axis) {
    if (axis != along && shape[axis] > data.dims[axis]) return WrongShapes();
  }
  const int64_t last = shape.back();
  bool is_block = along + 1 < rank;
  for (size_t i = 0; is_block && i < positions.size(); ++i) {
    is_block = positions[i] == positions[i - i % last];
  }
  std::vector<BlockAxis> block;
  if (is_block) block.push_back({last, rows.strides.back(), data.strides.back()});
  made.SetBlock(std::move(block), rows.element);
  for (size_t i = 0; i < positions.size(); i += is_block ? last : 1) {
    Place place;
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = rank; axis-- > 0;) {
      int64_t at = rest % shape[axis];
      rest /= shape[axis];
      place.from += at * rows.strides[axis];
      if (axis == along) {
        ANEMONE_ASSIGN_OR_RETURN(at, Normal(positions[i], axis));
      }
      place.to += at * data.strides[axis];
    }
    made.places_.push_back(place);
  }
  return absl::OkStatus();
}

absl::Status RowBlocks::Maker::Steps() {
  ANEMONE_ASSIGN_OR_RETURN(const size_t along, AxisOf(-2));
  const size_t rank = data.dims.size();
  if (along == 0 || rows.dims.size() != rank || shape.size() != 1 || shape[0] != data.dims[0]) {
    return WrongShapes();
  }
  std::vector<BlockAxis> block;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (axis != along && rows.dims[axis] != data.dims[axis]) return WrongShapes();
    if (axis != along && axis != 0) block.push_back(Of(axis, axis));
  }
  made.SetBlock(std::move(block), rows.element);
  const bool circular = StringOr(node, "mode", "linear") == "circular";
  for (int64_t item = 0; item < data.dims[0]; ++item) {
    const int64_t most = std::numeric_limits<int64_t>::max() - rows.dims[along];
    if (positions[item] < 0 || positions[item] > most) return Outside(positions[item], along);
    for (int64_t step = 0; step < rows.dims[along]; ++step) {
      const int64_t wanted = positions[item] + step;
      ANEMONE_ASSIGN_OR_RETURN(const int64_t at,
                               Normal(circular ? wanted % data.dims[along] : wanted, along));
      made.places_.push_back({item * rows.strides[0] + step * rows.strides[along],
                              item * data.strides[0] + at * data.strides[along]});
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RowBlocks> RowBlocks::Of(const Node& node, const Strided& state, const Strided& rows,
                                        const Tensor& positions) {
  const auto values = IntsOf(positions, std::numeric_limits<int64_t>::max());
  if (!values) return Maker::WrongShapes();
  Strided data{state.element, {}, {}};
  for (const int64_t axis : RowWriteOf(node).order) {
    data.dims.push_back(state.dims[axis]);
    data.strides.push_back(state.strides[axis]);
  }
  RowBlocks blocks;
  Maker maker{node, data, rows, positions.dims(), *values, blocks};
  ANEMONE_RETURN_IF_ERROR(node.op_type == "ScatterND"         ? maker.Blocks()
                          : node.op_type == "ScatterElements" ? maker.Elements()
                                                              : maker.Steps());
  return blocks;
}

// The axis that is contiguous in both goes to W, the others before it.
void RowBlocks::SetBlock(std::vector<BlockAxis> axes, math::Element element) {
  from_.element = element;
  const int64_t size = math::SizeOf(element), half = sizeof(math::Half);
  std::sort(axes.begin(), axes.end(),
            [](const BlockAxis& a, const BlockAxis& b) { return a.to > b.to; });
  int next = math::kAxisW;
  const auto last = std::find_if(axes.begin(), axes.end(), [&](const BlockAxis& axis) {
    return axis.from == size && axis.to == half;
  });
  const auto add = [&](const BlockAxis& axis) {
    extents_[next] = axis.extent;
    from_.byte_strides[next] = axis.from;
    to_.byte_strides[next] = axis.to;
    block_elements_ *= axis.extent;
    --next;
  };
  add(last == axes.end() ? BlockAxis{1, size, half} : *last);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (last == axes.end() || &*axis != &*last) add(*axis);
  }
}

void RowBlocks::Write(const std::byte* rows, std::byte* surface, math::Tally* tally) const {
  for (const Place& place : places_) {
    math::ConvertStrided(extents_, rows + place.from, from_, surface + place.to, to_,
                         math::NanRule::kToInfinity, tally);
  }
}

std::vector<math::Half> RowBlocks::Read(const std::byte* surface) const {
  std::vector<math::Half> old(elements());
  const math::Layout dense = math::DenseLayout(math::Element::kHalf, extents_);
  math::Half* to = old.data();
  for (const Place& place : places_) {
    math::ConvertStrided(extents_, surface + place.to, to_, to, dense);
    to += block_elements_;
  }
  return old;
}

void RowBlocks::Restore(const std::vector<math::Half>& old, std::byte* surface) const {
  const math::Layout dense = math::DenseLayout(math::Element::kHalf, extents_);
  const math::Half* from = old.data();
  for (const Place& place : places_) {
    math::ConvertStrided(extents_, from, dense, surface + place.to, to_);
    from += block_elements_;
  }
}

}  // namespace anemone
