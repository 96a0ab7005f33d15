// SDPA: softmax(Q K^T * scale + mask) V in one unit. Needs A13. Facts: validators.json SDPA;
// hidden_layers.json SDPA; numerics.json sm-sdpa; netplist.md SDPA.
//
// The operands have the sequence on C, the heads on H and the head dimension on W. The scale is a
// constant operand. The mask is one plane (C = queries, W = keys) for all heads.
#include "kernels/units/sdpa.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/formats/mil_emitter.h"
#include "engine/software/part_reads.h"
#include "engine/warning.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"
#include "math/attention/sdpa.h"
#include "math/exact/exact_contract.h"
#include "rule_table.h"     // generated
#include "warning_table.h"  // generated

namespace anemone {
namespace {

// The scale that Core ML's converter uses.
float MilScale(int64_t dim) { return math::RoundToHalf(1 / std::sqrt(static_cast<float>(dim))); }

struct SdpaParams {
  // False is the default of the compiler, but then the unit does not compute a softmax.
  bool subtract_max = false;
};

enum : size_t { kQuery, kKey, kValue, kScale, kMask };

// The scores, and their product with the values.
int64_t UnitMacs(const SdpaParams&, Bottoms in, absl::Span<const Tensor>, const Dims& out) {
  return (in[kQuery].dims.elements() + out.elements()) * in[kKey].dims.c();
}

absl::StatusOr<Dims> Shape(const SdpaParams&, Bottoms in) {
  const Dims &q = in[kQuery].dims, &k = in[kKey].dims;
  if (q.n() != k.n() || q.h() != k.h() || q.d() != 1 || k.d() != 1) {
    return absl::InvalidArgumentError("attention: want the same number of heads in query and key");
  }
  if (in[kScale].dims != Dims()) {
    return absl::InvalidArgumentError("attention: want a scale of one element");
  }
  if (in.size() > kMask && (in[kMask].dims.n() != 1 || in[kMask].dims.h() != 1)) {
    return absl::InvalidArgumentError("attention: want a mask of one plane");
  }
  Dims out = in[kQuery].dims;
  out[Axis::kW] = in[kValue].dims.w();
  return out;
}

Verdict ValidateMask(Bottoms in, Judge& judge) {
  const Bottom& mask = in[kMask];
  if (mask.format != in[kQuery].format) return judge.Reject(rule::kSdpaMaskFormat);
  if (mask.dims.c() != 1 && mask.dims.c() != in[kQuery].dims.c()) {
    return judge.Reject(rule::kSdpaMaskChannel);
  }
  if (mask.dims.w() != in[kKey].dims.c()) return judge.Reject(rule::kSdpaMaskWidth);
  return judge.Accept();
}

Verdict Validate(const SdpaParams&, Bottoms in, const Target& target, Route route) {
  Judge judge(target, route);
  const Bottom &q = in[kQuery], &k = in[kKey], &v = in[kValue];
  if (q.format != k.format || k.format != v.format) return judge.Reject(rule::kSdpaFormats);
  if (k.dims.c() != v.dims.c()) return judge.Reject(rule::kSdpaSequence);
  if (q.dims.w() != k.dims.w()) return judge.Reject(rule::kSdpaEmbedding);
  if (k.dims != v.dims) return judge.Reject(rule::kSdpaKeyValue);
  if (!in[kScale].is_constant()) return judge.Reject(rule::kSdpaScale);
  return in.size() == 5 ? ValidateMask(in, judge) : judge.Accept();
}

constexpr Field<SdpaParams> kFields[] = {Key<&SdpaParams::subtract_max>("SubtractMax")};

absl::StatusOr<Prepared> Prepare(const SdpaParams& p, Bottoms, absl::Span<const Tensor>) {
  constexpr PartRead kInParts{.is_readable = true};
  if (p.subtract_max) return MakePartReads({{}, kInParts, kInParts});
  return absl::UnimplementedError(
      "SDPA without SubtractMax can be checked but not run: its formula is not published");
}

math::SdpaShape ShapeOf(absl::Span<const ConstView> in) {
  const Dims& q = in[kQuery].dims;
  return {.batch = q.n(),
          .heads = q.h(),
          .queries = q.c(),
          .keys = in[kKey].dims.c(),
          .dim = q.w(),
          .value_dim = in[kValue].dims.w()};
}

math::SdpaMask MaskOf(absl::Span<const ConstView> in) {
  if (in.size() <= kMask) return {};
  return {.values = in[kMask].span(), .queries = in[kMask].dims.c()};
}

math::SdpaRows RowsOf(const ConstView& x, bool swapped) {
  const int64_t row = x.dims.w(), plane = x.dims.h() * row;
  return {.data = x.data,
          .rows = swapped ? x.dims.h() : x.dims.c(),
          .row_step = swapped ? row : plane,
          .head_step = swapped ? plane : row,
          .batch_step = x.dims.c() * plane};
}

// The keys or values at the beginning of `in`, which are removed from it.
math::SdpaParts PartsOf(const PartRead& read, absl::Span<const ConstView>& in) {
  math::SdpaParts parts{.first = RowsOf(in[0], read.swapped), .more = {}};
  if (read.split) parts.more = RowsOf(in[1], read.swapped);
  in.remove_prefix(read.split ? 2 : 1);
  return parts;
}

void Compute(const SdpaParams&, const void* prepared, absl::Span<const ConstView> in, View out) {
  const PartReads& reads = *static_cast<const PartReads*>(prepared);
  const ConstView q = in[kQuery];
  in.remove_prefix(1);
  const math::SdpaParts k = PartsOf(reads[kKey], in), v = PartsOf(reads[kValue], in);
  const math::SdpaShape shape{.batch = q.dims.n(),
                              .heads = q.dims.h(),
                              .queries = q.dims.c(),
                              .keys = k.first.rows + k.more.rows,
                              .dim = q.dims.w(),
                              .value_dim = out.dims.w()};
  math::SdpaMask mask;  // after the scale
  if (in.size() > 1) mask = {.values = in[1].span(), .queries = in[1].dims.c()};
  math::Sdpa(shape, math::ToFloat(in[0].data[0]), q.span(), k, v, mask, out.span());
}

void Exact(const SdpaParams&, const ExactUnit& unit, absl::Span<const ConstView> in, View out) {
  math::ExactSdpa(unit.numerics, ShapeOf(in), math::ToFloat(in[kScale].data[0]), in[kQuery].span(),
                  in[kKey].span(), in[kValue].span(), MaskOf(in), out.span());
}

// In MIL the heads come before the sequence. Its operation computes the scale and ignores its mask
// (compiler_texts.json lowering_recipes, SDPA; conflicts.md C-sdpa-mask).
absl::Status WriteMil(const SdpaParams& p, const Unit& unit, MilEmitter& e) {
  if (!p.subtract_max) return absl::UnimplementedError("SDPA without SubtractMax");
  if (unit.bottoms.size() > kMask) {
    return absl::UnimplementedError("MIL's attention ignores its mask");
  }
  const Tensor* scale = e.BottomOf(kScale).constant;
  if (scale == nullptr || RoundedFloats(*scale)[0] != MilScale(e.DimsOf(kQuery).w())) {
    return absl::UnimplementedError(
        "MIL's attention supports only the scale 1 / sqrt(head dimension)");
  }
  auto heads_first = [](const Dims& dims) {
    return std::vector<int64_t>{dims.n(), dims.h(), dims.c(), dims.w()};
  };
  std::vector<MilArgument> arguments;
  for (auto [name, i] : {std::pair("query", kQuery), {"key", kKey}, {"value", kValue}}) {
    ANEMONE_ASSIGN_OR_RETURN(std::string x, WriteFlatBottom(e, i));
    arguments.push_back({name, {WriteSwapped(e, std::move(x), heads_first(e.DimsOf(i)))}});
  }
  std::string y =
      e.Emit("scaled_dot_product_attention", std::move(arguments), heads_first(unit.dims));
  WriteFlatResult(e, WriteSwapped(e, std::move(y), FlatShape(unit.dims)), unit.dims);
  return absl::OkStatus();
}

void Warn(const SdpaParams&, const Unit&, Bottoms in, const Target&, Route route,
          WarningList& list) {
  if (route == Route::kMil && in.size() > kMask) list.Add(warning::kOrionSdpaMask);
  const int64_t queries = in[kQuery].dims.c(), keys = in[kKey].dims.c();
  if (!SdpaIsReliable(queries, keys)) list.Add(warning::kSdpaLength, queries, keys);
}

const UnitKindOf<SdpaParams>& Kind() {
  static const UnitKindOf<SdpaParams> kind({
      .type = "SDPA",
      .family = &rule::kUnitFamily,
      .bottoms = {4, 5, &rule::kSdpaBottoms},
      .macs = UnitMacs,
      .judge = {.shape = Shape, .validate = Validate, .warn = Warn},
      .spell = {.fields = kFields, .mil = WriteMil},
      .run = {.prepare = Prepare, .compute = Compute},
      .exact = {.compute = Exact},
  });
  return kind;
}

constexpr SdpaParams kSoftmax{.subtract_max = true};

// An argument of rank 3 (N, sequence, dim), which needs no change, or of rank 4 with the heads on
// axis 1.
Operand ReadHeads(MilContext& c, size_t i) {
  Operand x = c.In(i);
  if (c.rank(i) == kMaxRank) {
    if (c.route() == Route::kMil) return c.Refuse(rule::kSdpaMilRank);
    return c.NotLowered("attention of rank 5");
  }
  if (c.rank(i) < 3 || c.rank(i) != c.rank(0)) {
    return c.Fail(absl::InvalidArgumentError(
        "scaled_dot_product_attention: want query, key and value of rank 3 or 4"));
  }
  return c.rank(i) == 3 ? x : SwapAxes(c, x, Axis::kC, Axis::kH);
}

// A mask compiles, but devices ignore it (conflicts.md C-sdpa-mask), so there is a warning.
Operand ReadMask(MilContext& c) {
  std::vector<int64_t> shape;
  Operand mask;
  if (c.arguments() > kScale) {
    shape = c.ShapeOf(kScale);
    mask = c.In(kScale);
  } else {
    ANEMONE_ASSIGN_OR_FAIL(c, std::optional<MilTensor> constant, c.Constant("attn_mask"));
    if (!constant) return c.Fail(absl::InvalidArgumentError("'attn_mask': want a constant"));
    shape = constant->shape;
    ANEMONE_ASSIGN_OR_FAIL(c, Tensor zeros, ZerosOf(*constant));
    mask = c.AddConstant(std::move(zeros), constant->dims());
  }
  const size_t rank = shape.size();
  if (rank < 2 || shape[rank - 2] * shape[rank - 1] != c.DimsOf(mask).elements()) {
    return c.NotLowered("attention with a mask that is not one plane for all heads");
  }
  return ReshapeToDims(c, mask, MakeDims(1, shape[rank - 2], 1, shape[rank - 1]));
}

absl::Status Build(MilContext& c) {
  if (c.arguments() < 3) {
    return absl::InvalidArgumentError("scaled_dot_product_attention: want query, key and value");
  }
  std::vector<Operand> bottoms(4);
  for (size_t i : {kQuery, kKey, kValue}) {
    bottoms[i] = ReadHeads(c, i);
  }
  if (c.route() == Route::kMil && c.ShapeOf(kKey) != c.ShapeOf(kValue)) {
    return c.Refuse(rule::kSdpaMilKeyValue);
  }
  bottoms[kScale] = ScalarConstant(c, MilScale(c.ShapeOf(kQuery).back()));
  if (c.arguments() > kScale || c.Has("attn_mask")) {
    bottoms.emplace_back() = ReadMask(c);
  }
  const std::vector<Bottom> in = c.BottomsOf(bottoms);
  // Validated here, because heads that do not fit have no output dims.
  Verdict verdict = Validate(kSoftmax, in, c.target(), c.route());
  if (!verdict.accepted) return c.Refuse(std::move(verdict));
  Operand y = c.Add(Kind(), kSoftmax, std::move(bottoms));
  if (c.rank(0) == 4) {
    y = SwapAxes(c, y, Axis::kC, Axis::kH);
  }
  return c.Out(y, c.ShapeOf(kQuery));
}

constexpr MilOperation kOperations[] = {{"scaled_dot_product_attention", Build}};

}  // namespace

bool SdpaIsReliable(int64_t queries, int64_t keys) {
  // At most the first for the longer of the two, below the second for the shorter.
  const absl::Span<const int64_t> lengths = warning::kSdpaLength.values;
  return std::max(queries, keys) <= lengths[0] && std::min(queries, keys) < lengths[1];
}

bool SdpaHasMilForm(const SdpaOperands& in, int64_t dim) {
  return !in.mask && math::RoundToHalf(in.scale) == MilScale(dim);
}

Operand Attended(NetworkBuilder& c, const SdpaOperands& in) {
  std::vector<Operand> bottoms = {in.query, in.key, in.value, ScalarConstant(c, in.scale)};
  if (in.mask) bottoms.push_back(*in.mask);
  return c.Add(Kind(), kSoftmax, std::move(bottoms));
}

KernelRows SdpaRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
