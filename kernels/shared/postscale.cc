#include "kernels/shared/postscale.h"

#include <vector>

#include "anemone/compressed.h"
#include "math/core/encodings.h"
#include "math/exact/exact_contract.h"

namespace anemone {

bool PostscaledConv(const math::Numerics& n, const math::ConvShape& shape, const Tensor& weight,
                    absl::Span<const float> bias, absl::Span<const math::Half> x,
                    absl::Span<math::Half> y) {
  const Compressed* stored = weight.compressed();
  if (n.cmp_int8 != math::CmpInt8::kPostscale || stored == nullptr ||
      stored->form() != CompressedForm::kAffine || stored->code_bits() != 8) {
    return false;
  }
  const int64_t row = stored->elements() / shape.out_channels;
  const size_t scales = stored->scales().size();
  const ScaleGrid& grid = stored->grid();
  if (scales != 1 && (grid.inner != row || grid.block != 1)) return false;
  std::vector<math::Half> codes(stored->elements());  // fp16 represents all codes exactly
  math::Convert(stored->elements(),
                stored->has_signed_codes() ? math::Element::kInt8 : math::Element::kUInt8,
                stored->codes().bytes().data(), math::Element::kHalf, codes.data());
  for (size_t i = 0; i < codes.size() && !stored->zero_points().empty(); ++i) {
    const int zero = stored->zero_points()[scales == 1 ? 0 : i / row];
    codes[i] = math::ToHalf(math::ToFloat(codes[i]) - static_cast<float>(zero));
  }
  std::vector<math::Half> rounded(scales);
  math::FloatToHalf(stored->scales(), absl::MakeSpan(rounded));
  math::ExactConv(n, shape, x, codes, {}, y);
  math::Postscale(n, shape.out_h() * shape.out_w(), rounded, bias, shape.out_channels, y);
  return true;
}

}  // namespace anemone
