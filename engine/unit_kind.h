// engine/unit_kind.h: the row that declares a unit kind. Everything the engine knows of a kind
// stands in its row: a Unit points to it, and CheckNetwork, Compile, the writers and the software
// device call the row's functions. The rows are in kernels/, one file per kind:
//
//   struct SoftmaxParams { Axis axis; };
//   ... Shape, Validate, Compute ...
//   const UnitKindOf<SoftmaxParams>& Kind() {
//     static const UnitKindOf<SoftmaxParams>& kind = *new UnitKindOf<SoftmaxParams>({
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

// What `prepare` makes of a unit's constants, once per program: packed weights, index tables.
using Prepared = std::shared_ptr<const void>;

// One operation of those that run together, element by element, and the bottoms it reads.
struct UnitStep {
  math::ElementStep step;
  int x = 0, z = -1;  // z of a binary operation: -1 is the number zero
};

// A scale and an addend, one for all channels or one for each.
struct GainOffset {
  std::vector<float> gain, offset;
};

// What a unit computes with in `exact` mode. `epilogue` and the members after it are what a pass
// over the network found (engine/software/exact_plan.h).
struct ExactUnit {
  const math::Numerics& numerics;
  absl::Span<const Tensor> weights;  // plain
  const void* prepared;
  const GainOffset* epilogue = nullptr;  // to be applied before the result is rounded
  bool squares = false;                  // the first bottom is to be squared, unrounded
  bool is_image = false;                 // the first bottom is a uint8 port
  const math::Half* port = nullptr;      // the first bottom as it came to its port, NaN included
};

// The first bottom's elements as they came to its port; empty if it is not a port.
inline absl::Span<const math::Half> PortOf(const ExactUnit& unit, const ConstView& in) {
  if (unit.port == nullptr) return {};
  return {unit.port, static_cast<size_t>(in.dims.elements())};
}

using Permutation = std::array<Axis, kAxisCount>;

class MilEmitter;
class NetworkBuilder;
class WarningList;

inline constexpr size_t kAnyNumber = static_cast<size_t>(-1);

// How many bottoms a kind takes, and the refusal of another number.
struct BottomCount {
  size_t least = 1, most = 1;
  const Rule* rule = nullptr;  // null: no text is known
};

// What a unit multiplies and adds. Overflow, cancellation and flushed subnormals depend on it
// (engine/software/hazards.h, engine/warning.h).
struct Arithmetic {
  enum class Kind : uint8_t {
    kContraction,  // a sum of products, on the multiply-accumulate array
    kProduct,      // of two operands, or of an operand and constants, element by element
    kSum,          // of two operands
    kDifference,   // of two operands
    kReduction,    // the sum or the mean of one operand over axes
  };
  Kind kind;
  bool has_ceiling = kind == Kind::kContraction;  // numerics.json mac-ceiling
  bool sums() const { return kind != Kind::kProduct; }
  bool multiplies() const { return kind == Kind::kContraction || kind == Kind::kProduct; }
};

// A row: what the engine knows of a kind whose parameters are a P. A function left null means that
// the kind has no rule of its own. UnitRow<void> is a row with its parameter type forgotten: its
// functions take a pointer to the parameters.
template <class P>
struct UnitRow {
  template <class Signature>
  using Reads = Hook<std::add_const_t<P>, Signature>;
  template <class Signature>
  using Fills = Hook<P, Signature>;  // may change the parameters
  using Weights = absl::Span<const Tensor>;
  using Views = absl::Span<const ConstView>;

  const char* type;    // the netplist's Type
  int min_family = 0;  // index of the first family that has the kind (hidden_layers.json); 0: all
  BottomCount bottoms = {};
  // Null, or nullopt for these parameters: the unit neither multiplies nor adds.
  Reads<std::optional<Arithmetic>(Bottoms, Weights)> arithmetic;

  // Whether a target takes the unit.
  struct Judging {
    // The output's dims; kInvalidArgument if the bottoms do not fit the parameters.
    Reads<absl::StatusOr<Dims>(Bottoms)> shape;
    // Called with as many bottoms as the row allows, whatever their dims: a unit that somebody
    // wrote by hand is judged before its shape is known.
    Reads<Verdict(Bottoms, const Target&, Route)> validate;
    // What the code generator refuses although the validator accepts it.
    Reads<Verdict(Bottoms, const Target&, Route)> codegen;
    // The kind's own design rules, for a unit that was accepted.
    Reads<void(const Unit&, Bottoms, const Target&, Route, WarningList&)> warn;
  } judge;

  // How the unit is written in a netplist, in JSON and in MIL, and read back.
  struct Spelling {
    FieldsOf<P> fields;
    // Fills in what the keys leave to the bottoms and weights: a kernel's extents, the number of
    // output channels. kInvalidArgument if they cannot be those of such a unit. Called when a unit
    // is read; a lowering fills in its parameters itself.
    Fills<absl::Status(Bottoms, Weights)> complete;
    // For a kind whose netplist stores a kernel in a weights file: the kernel's dims, which the
    // keys give (empty: no kernel for these keys); and the weight in the file's order of elements.
    Reads<absl::StatusOr<std::vector<int64_t>>(Bottoms)> kernel_dims;
    Reads<absl::StatusOr<Tensor>(const Tensor& weight)> stored_kernel;
    // Writes the unit as statements of MIL (engine/formats/mil_emitter.h). Null, or kUnimplemented
    // with the reason: no MIL operation is known for the unit.
    Reads<absl::Status(const Unit&, MilEmitter&)> mil;
    // Appends units that have a netplist form and compute the same bits, for a unit that has none.
    // nullopt: there are no such units.
    Reads<std::optional<Operand>(const Unit&, NetworkBuilder&)> compose;
  } spell;

  // How the software engine runs the unit in `fast` mode.
  struct Running {
    Reads<absl::StatusOr<Prepared>(Bottoms, Weights)> prepare;
    // Computes the output from the bottoms, inside the device's arena; may use math::ParallelFor.
    // A kind with neither `compute` nor `compute_then` that is not a view is judged but not run.
    Reads<void(const void* prepared, Views in, View out)> compute;
    // In place of `compute`, for a kind that hands over runs of its output as they are finished.
    Reads<void(const void* prepared, Views in, View out, const math::Epilogue&)> compute_then;
    // For a kind whose output elements depend on the same element of each bottom alone: the
    // operation, which may run together with others and in a bottom's place.
    Reads<UnitStep(const void* prepared)> step;
    // The output is the first bottom's bytes with other dims: nothing is computed.
    bool is_view = false;
    // Whether the output is the bottoms one after the other in memory. `compute` then leaves
    // alone those that lie there already.
    Reads<bool(Bottoms)> joins;
    // Set by the one kind that only moves axes: output axis i is input axis result[i].
    Reads<Permutation()> permutation;
  } run;

  // How the software engine runs the unit in `exact` mode.
  struct Exact {
    // Computes by the target's rules of arithmetic. Null: run.compute only moves, compares or
    // chooses, so it is exact.
    Reads<void(const ExactUnit&, Views in, View out)> compute;
    // The kind tells a NaN at a port from the infinity that other kinds see (numerics.json
    // st-nan-lnvar).
    bool reads_port = false;
    // The unit takes a part of the width that does not begin at 0 (numerics.json sat-wslice).
    Reads<bool()> slices_width;
  } exact;

  // What becomes part of a neighbouring unit.
  struct Fusing {
    // The bottom that is a constant for each channel, which the unit only adds; -1 if it does not.
    Reads<int(Bottoms)> added_constant;
    // The kind takes a constant for each channel as a second weight, added before it rounds.
    bool takes_bias = false;
    // In exact mode, what is not rounded between two units. A kind that only scales and adds may
    // be the epilogue of the unit before it (numerics.json mac-epilogue); a kind that squares its
    // first bottom may be part of a sum of squares after it (red-l2, nrm-rms).
    Reads<std::optional<GainOffset>(Weights)> epilogue;
    Reads<bool(const math::Numerics&)> takes_epilogue;
    Reads<bool(absl::Span<const Operand> bottoms)> squares;
    Reads<bool(const math::Numerics&)> takes_squares;
  } fuse;
};

// A key as a list of the kind's keys shows it.
struct KeyInfo {
  const char* key;
  bool required;
  ValueType type;
  absl::Span<const char* const> names;  // Field::names
  Json fallback;                        // the value of a key left out; null if it has none
};

// A row with its parameter type forgotten, and what follows from a row.
struct UnitKind : UnitRow<void> {
  std::shared_ptr<void> (*make_params)();  // parameters with their default values

  bool computes() const { return run.is_view || run.compute || run.compute_then; }
  Verdict Validate(const void* params, Bottoms in, const Target&, Route) const;
  Verdict Codegen(const void* params, Bottoms in, const Target&, Route) const;

  // The keys, in the order of the field table; or only the required ones.
  std::vector<std::string> Keys(bool required_only) const;
  std::vector<KeyInfo> ListKeys() const;
  Json Write(const void* params) const;
  // The first required key that `keys` lacks; null if there is none.
  const char* MissingKey(const Json& keys) const;
  // What Write() wrote. kInvalidArgument: a required key is missing, a value is not one of its
  // key's, or the kind does not have the key.
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

// kInvalidArgument naming the first key of `keys` that is not in `known`.
absl::Status CheckKeys(const Json& keys, const std::string& type,
                       const std::vector<std::string>& known);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_UNIT_KIND_H_
