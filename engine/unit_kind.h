// engine/unit_kind.h: a unit kind is declared by one row, which holds everything that the engine
// knows about the kind. A Unit points to its row; CheckNetwork, Compile, the writers and the
// software device call the row's functions. The rows are in kernels/, in one file for each kind:
//
//   // In kernels/units/softmax.cc, after SoftmaxParams and the functions that the row names:
//   const UnitKindOf<SoftmaxParams>& Kind() {
//     static const UnitKindOf<SoftmaxParams> kind({
//         .type = "Softmax",
//         .judge = {.shape = Shape, .validate = Validate},
//         .spell = {.fields = kFields, .mil = WriteMil},
//         .run = {.compute = Compute},
//         .exact = {.compute = Exact},
//     });
//     return kind;
//   }
#ifndef ANEMONE_ENGINE_UNIT_KIND_H_
#define ANEMONE_ENGINE_UNIT_KIND_H_

#include <array>
#include <bit>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "engine/dims.h"
#include "engine/field.h"
#include "engine/hook.h"
#include "engine/unit.h"
#include "engine/verdict.h"
#include "math/core/epilogue.h"
#include "math/core/half.h"
#include "math/elementwise/element_steps.h"
#include "numerics.h"  // generated

namespace anemone {

// A dense fp16 tensor in N, D, C, H, W order, as the software engine computes on it.
struct ConstView {
  Dims dims;
  const math::Half* data = nullptr;
  absl::Span<const math::Half> span() const { return {data, static_cast<size_t>(dims.elements())}; }
};
struct View {
  Dims dims;
  math::Half* data = nullptr;
  absl::Span<math::Half> span() const { return {data, static_cast<size_t>(dims.elements())}; }
};

// Data that `prepare` computes from a unit's constants once for each program: packed weights, index
// tables.
using Prepared = std::shared_ptr<const void>;

// An elementwise operation that can run together with others, and the bottoms that it reads.
struct UnitStep {
  math::ElementStep step;
  int x = 0, z = -1;  // bottoms; z = -1: the second operand is zero, or there is none
};

// A scale and an addend, one for all channels or one for each.
struct GainOffset {
  std::vector<float> gain, offset;
};

// The inputs of a unit's computation in `exact` mode, besides its bottoms. PlanExact()
// (engine/software/exact_plan.h) sets `epilogue` and the members after it.
struct ExactUnit {
  const math::Numerics& numerics;
  absl::Span<const Tensor> weights;  // not packed
  const void* prepared;
  const GainOffset* epilogue = nullptr;  // apply it before the result is rounded
  bool squares = false;                  // square the first bottom, without rounding
  bool is_image = false;                 // the first bottom is a uint8 port
  const math::Half* port = nullptr;      // the first bottom as the port received it, with its NaNs
};

// The elements of the first bottom as the port received them; empty if it is not a port.
inline absl::Span<const math::Half> PortOf(const ExactUnit& unit, const ConstView& in) {
  if (unit.port == nullptr) return {};
  return {unit.port, static_cast<size_t>(in.dims.elements())};
}

using Permutation = std::array<Axis, kAxisCount>;

class MilEmitter;
class NetworkBuilder;
class WarningList;

inline constexpr size_t kAnyNumber = static_cast<size_t>(-1);

// The numbers of bottoms that a kind takes, and the rule that refuses other numbers.
struct BottomCount {
  size_t least = 1, most = 1;
  const Rule* rule = nullptr;  // null if no text is known
};

// Whether a unit multiplies and adds, and what. The checks for overflow, cancellation and flushed
// subnormals depend on it (engine/software/hazards.h, engine/warning.h).
struct Arithmetic {
  enum class Kind : uint8_t {
    kContraction,  // a sum of products, on the multiply-accumulate array
    kProduct,      // the elementwise product of two operands, or of an operand and constants
    kSum,          // of two operands
    kDifference,   // of two operands
    kReduction,    // the sum or the mean of one operand over axes
  };
  Kind kind;
  bool has_ceiling = kind == Kind::kContraction;  // numerics.json mac-ceiling
  bool sums() const { return kind != Kind::kProduct; }
  bool multiplies() const { return kind == Kind::kContraction || kind == Kind::kProduct; }
};

// The row of a kind whose parameters have type P. A function that is null means that the kind has
// no special rule there. UnitRow<void> is a row with its parameter type erased: its functions take
// a pointer to the parameters.
template <class P>
struct UnitRow {
  template <class Signature>
  using Reads = Hook<std::add_const_t<P>, Signature>;
  template <class Signature>
  using Fills = Hook<P, Signature>;  // may change the parameters
  using Weights = absl::Span<const Tensor>;
  using Views = absl::Span<const ConstView>;

  const char* type;  // the netplist's Type
  // The rule that refuses the kind on targets before the rule's family; null if all have the kind.
  const Rule* family = nullptr;
  BottomCount bottoms = {};
  // Null or nullopt if the unit neither multiplies nor adds.
  Reads<std::optional<Arithmetic>(Bottoms, Weights)> arithmetic;
  // The multiply-accumulates of a unit with this output, for the estimate of its time
  // (engine/cost.h). Null: none on the multiply-accumulate array.
  Reads<int64_t(Bottoms, Weights, const Dims& out)> macs;
  // The parameters of the unit that computes the same, with the same weights, on operands whose
  // axes are permuted: axis i of each bottom and of the output is axis order[i] of before. Null: no
  // such unit is known. An elementwise kind without weights needs no hook: its parameters stay.
  Reads<std::shared_ptr<const void>(const Permutation& order)> permuted;

  // Whether a target accepts the unit.
  struct Judging {
    // The dims of the output; kInvalidArgument if the bottoms do not fit the parameters.
    Reads<absl::StatusOr<Dims>(Bottoms)> shape;
    // Called with a valid number of bottoms, but their dims may be wrong: a unit from a file is
    // validated before its shape is computed.
    Reads<Verdict(Bottoms, const Target&, Route)> validate;
    // The refusals of the code generator, for units that the validator accepts.
    Reads<Verdict(Bottoms, const Target&, Route)> codegen;
    // Adds the warnings of this kind for an accepted unit.
    Reads<void(const Unit&, Bottoms, const Target&, Route, WarningList&)> warn;
  } judge;

  // How the unit is written in a netplist, in JSON and in MIL, and read back.
  struct Spelling {
    FieldsOf<P> fields;
    // Sets the parameters that follow from the bottoms and weights and have no key: a kernel's
    // extents, the number of output channels. kInvalidArgument if the bottoms or weights do not fit
    // the unit. Called when a unit is read from a file; a lowering sets these parameters itself.
    Fills<absl::Status(Bottoms, Weights)> complete;
    // For a kind whose netplist stores a kernel in a weights file: the dims of the kernel, by the
    // keys (empty if these keys have no kernel), and the weight in the element order of the file.
    Reads<absl::StatusOr<std::vector<int64_t>>(Bottoms)> kernel_dims;
    Reads<absl::StatusOr<Tensor>(const Tensor& weight)> stored_kernel;
    // Writes the unit as statements of MIL (engine/formats/mil_emitter.h). Null, or kUnimplemented
    // with a reason, if no MIL operation is known for the unit.
    Reads<absl::Status(const Unit&, MilEmitter&)> mil;
    // For a unit without a netplist form: appends units that have a netplist form and compute the
    // same bits. nullopt if there are no such units.
    Reads<std::optional<Operand>(const Unit&, NetworkBuilder&)> compose;
  } spell;

  // How the software engine runs the unit in `fast` mode.
  struct Running {
    Reads<absl::StatusOr<Prepared>(Bottoms, Weights)> prepare;
    // Computes the output from the bottoms, inside the device's arena; may use math::ParallelFor.
    // A kind that has neither `compute` nor `compute_then` and is not a view can be checked but not
    // run.
    Reads<void(const void* prepared, Views in, View out)> compute;
    // Used instead of `compute` by a kind that passes finished parts of its output to an epilogue.
    Reads<void(const void* prepared, Views in, View out, const math::Epilogue&)> compute_then;
    // For elementwise kinds, whose output elements depend only on the same element of each bottom:
    // the operation. It may run together with others, and may overwrite a bottom.
    Reads<UnitStep(const void* prepared)> step;
    // The output has the bytes of the first bottom with other dims; nothing is computed.
    bool is_view = false;
    // Whether the output is the concatenation of the bottoms in memory. `compute` then skips the
    // bottoms that are already in place.
    Reads<bool(Bottoms)> joins;
    // Set by Transpose only: output axis i is input axis result[i].
    Reads<Permutation()> permutation;
    // Whether every element of the output is one of the first bottom's.
    Reads<bool()> selects;
  } run;

  // How the software engine runs the unit in `exact` mode.
  struct Exact {
    // Computes by the arithmetic rules of the target. Null if run.compute only moves, compares or
    // selects values, and so is exact already.
    Reads<void(const ExactUnit&, Views in, View out)> compute;
    // The kind sees a NaN at a port; other kinds see an infinity there (numerics.json
    // st-nan-lnvar).
    bool reads_port = false;
    // Whether the unit reads a part of the width that does not begin at 0 (numerics.json
    // sat-wslice).
    Reads<bool()> slices_width;
  } exact;

  // How the unit can become part of a neighboring unit.
  struct Fusing {
    // For a unit that only adds one constant per channel: the bottom with the constants. Else -1.
    Reads<int(Bottoms)> added_constant;
    // The kind takes a bias (one constant per channel) as a second weight, added before rounding.
    bool takes_bias = false;
    // In exact mode, some values are not rounded between two units. A kind that only scales and
    // adds may be the epilogue of the unit before it (numerics.json mac-epilogue). A kind that
    // squares its first bottom may be part of a sum of squares after it (red-l2, nrm-rms).
    Reads<std::optional<GainOffset>(Weights)> epilogue;
    Reads<bool(const math::Numerics&)> takes_epilogue;
    Reads<bool(absl::Span<const Operand> bottoms)> squares;
    Reads<bool(const math::Numerics&)> takes_squares;
  } fuse;
};

// A key of a kind, for lists of keys.
struct KeyInfo {
  const char* key;
  bool required;
  ValueType type;
  absl::Span<const char* const> names;  // Field::names
  Json fallback;                        // the default value; null if there is none
};

// A row with its parameter type erased, and functions that use it.
struct UnitKind : UnitRow<void> {
  std::shared_ptr<void> (*make_params)();  // parameters with their default values

  bool computes() const { return run.is_view || run.compute || run.compute_then; }
  Verdict Validate(const void* params, Bottoms in, const Target&, Route) const;
  Verdict Codegen(const void* params, Bottoms in, const Target&, Route) const;

  // The keys, or only the required ones, in the order of the field table.
  std::vector<std::string> Keys(bool required_only) const;
  std::vector<KeyInfo> ListKeys() const;
  Json Write(const void* params) const;
  // The first required key that `keys` lacks; null if there is none.
  const char* MissingKey(const Json& keys) const;
  // Reads what Write() wrote. kInvalidArgument if a required key is missing, if a value is not
  // valid for its key, or if the kind does not have the key.
  absl::StatusOr<std::shared_ptr<const void>> Read(const Json& keys, Bottoms in, Weights) const;
  bool stores_kernel() const { return static_cast<bool>(spell.stored_kernel); }
  bool has_mil_form() const { return static_cast<bool>(spell.mil); }
  absl::StatusOr<std::vector<int64_t>> KernelDims(const Json& keys, Bottoms in) const;
  absl::Status WriteMil(const Unit& unit, MilEmitter& e) const;

  absl::StatusOr<Prepared> Prepare(const void* params, Bottoms in, Weights) const;
  void Compute(const void* params, const void* prepared, Views in, View out) const;
};

template <class P>
struct UnitKindOf : UnitKind {
  explicit UnitKindOf(const UnitRow<P>& row)
      : UnitKind{std::bit_cast<UnitRow<void>>(row),
                 [] { return std::shared_ptr<void>(std::make_shared<P>()); }} {}
};

// kInvalidArgument if `keys` has a key that is not in `known`; the message names the first such
// key.
absl::Status CheckKeys(const Json& keys, const std::string& type,
                       const std::vector<std::string>& known);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_UNIT_KIND_H_
