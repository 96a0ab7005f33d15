// engine/unit_kind.h: the row that declares a unit kind. Everything the engine knows of a kind is
// reached through it: a Unit points to its row, and CheckNetwork, Compile and the software device
// call through the row. The rows stand in kernels/, one file a kind:
//
//   struct SoftmaxParams { Axis axis; };
//   ... Shape, Validate, Compute ...
//   const UnitKind& SoftmaxUnit() {
//     static const UnitKindOf<SoftmaxParams> kRow({
//         .type = "Softmax", .shape = Shape, .validate = Validate,
//         .fields = kFields, .compute = Compute});
//     return kRow;
//   }
#ifndef ANEMONE_ENGINE_UNIT_KIND_H_
#define ANEMONE_ENGINE_UNIT_KIND_H_

#include <array>
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

// One of the operations that run several at a time, element by element, and the bottoms it is of.
struct UnitStep {
  math::ElementStep step;
  int x = 0, z = -1;  // z of a binary operation: -1 is the number zero
};

// A scale and an addend, one for all channels or one for each.
struct GainOffset {
  std::vector<float> gain, offset;
};

// What a unit computes with in `exact` mode. Behind `prepared` is what a step over the network
// found (engine/software/exact_plan.h).
struct ExactUnit {
  const math::Numerics& numerics;
  absl::Span<const Tensor> weights;  // plain
  const void* prepared;
  const GainOffset* epilogue = nullptr;  // to be done before the result is rounded
  bool squares = false;                  // the first bottom is to be squared, unrounded
  bool is_image = false;                 // the first bottom is a uint8 port
  const math::Half* port = nullptr;      // the first bottom as it came to its port, NaN and all
};

// The first bottom's elements as they came to its port; empty: no port.
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

// A row. Null functions mean: no rule of its own (validate, codegen), nothing to prepare.
template <class P>
struct UnitRow {
  const char* type;    // the netplist's Type
  int min_family = 0;  // index of the first family that has the kind (hidden_layers.json); 0: all
  BottomCount bottoms = {};
  // What a set of keys leaves open is read from the bottoms and weights: a kernel's extents, the
  // output channels. kInvalidArgument if they cannot be those of such a unit. Asked when a unit is
  // read; a lowering fills its parameters itself.
  absl::Status (*complete)(P&, Bottoms, absl::Span<const Tensor> weights) = nullptr;
  // The output's dims; kInvalidArgument if the bottoms do not fit the parameters.
  absl::StatusOr<Dims> (*shape)(const P&, Bottoms);
  // Asked with as many bottoms as the row allows, whatever their dims: a unit that somebody wrote
  // by hand is judged before its shape is made.
  Verdict (*validate)(const P&, Bottoms, const Target&, Route) = nullptr;
  // Refusals of the code generator for what the validator let pass ("attested is not reachable").
  Verdict (*codegen)(const P&, Bottoms, const Target&, Route) = nullptr;
  // Design rules of the kind's own, for a unit that was accepted (engine/warning.h).
  void (*warn)(const P&, Bottoms, const Dims& out, const Target&, Route, WarningList&) = nullptr;
  absl::Span<const Field<P>> fields = {};
  // For a kind whose netplist stores a kernel in a weights file: the kernel's dims by the keys
  // alone (empty: these keys want none); and the weight in the file's order of elements.
  absl::StatusOr<std::vector<int64_t>> (*kernel_dims)(const P&, Bottoms) = nullptr;
  absl::StatusOr<Tensor> (*stored_kernel)(const P&, const Tensor& weight) = nullptr;
  // Writes the unit as statements of MIL (engine/formats/mil_emitter.h). Null, or kUnimplemented
  // for some parameters: no operation is known that does this.
  absl::Status (*mil)(MilEmitter&, const P&, const Unit&) = nullptr;
  // Appends units with a netplist form that compute what this one does, to the bit, for parameters
  // or weights that have none. kUnimplemented: there is no such way.
  absl::StatusOr<Operand> (*compose)(NetworkBuilder&, const P&, const Unit&) = nullptr;
  // The bottom that is a constant for each channel, which this unit only adds; -1: it does not.
  int (*added_constant)(const P&, Bottoms) = nullptr;
  // The kind takes a constant for each channel as a second weight, before it rounds.
  bool takes_bias = false;
  absl::StatusOr<Prepared> (*prepare)(const P&, Bottoms,
                                      absl::Span<const Tensor> weights) = nullptr;
  // One output from the bottoms. Runs inside the device's arena; may use math::ParallelFor. Null:
  // the kind is judged but not run yet (and not a view).
  void (*compute)(const P&, const void* prepared, absl::Span<const ConstView> in,
                  View out) = nullptr;
  // In place of `compute`, for a kind that hands over runs of its output as they are finished.
  void (*compute_then)(const P&, const void* prepared, absl::Span<const ConstView> in, View out,
                       const math::Epilogue&) = nullptr;
  // An element of the output depends on the bottoms' elements at its place alone: the unit is a
  // step that may run with others, in the place of a bottom.
  UnitStep (*step)(const P&, const void* prepared) = nullptr;
  // The same by the target's rules of arithmetic. Null: `compute` only moves, compares or chooses.
  void (*exact)(const P&, const ExactUnit&, absl::Span<const ConstView> in, View out) = nullptr;
  // What fuses in exact mode where the rules say that nothing is rounded in between: a kind that
  // only scales and adds, behind one that takes it as its epilogue (numerics.json mac-epilogue); a
  // kind that squares its first bottom, in front of one that sums squares (red-l2, nrm-rms).
  std::optional<GainOffset> (*epilogue)(const P&, absl::Span<const Tensor> weights) = nullptr;
  bool (*takes_epilogue)(const P&, const math::Numerics&) = nullptr;
  bool (*squares)(const P&, absl::Span<const Operand> bottoms) = nullptr;
  bool (*takes_squares)(const P&, const math::Numerics&) = nullptr;
  // The kind tells a NaN at a port from the infinity that others see (numerics.json st-nan-lnvar).
  bool reads_port = false;
  // The output is the first bottom's bytes under other dims: nothing is computed.
  bool is_view = false;
  // Whether the output is the bottoms one after the other in memory: `compute` then leaves those
  // alone that lie there already.
  bool (*joins)(const P&, Bottoms) = nullptr;
  // Set by the one kind that only moves axes: output axis i is input axis (*permutation)(p)[i].
  Permutation (*permutation)(const P&) = nullptr;
};

// A key as a list of the kind's keys shows it.
struct KeyInfo {
  const char* key;
  bool required;
  ValueType type;
  absl::Span<const char* const> names;  // Field::names
  Json fallback;                        // what a key left out means; null: not a value of its own
};

// The row with its parameter type forgotten.
class UnitKind {
 public:
  virtual ~UnitKind() = default;
  virtual const char* type() const = 0;
  virtual int min_family() const = 0;
  virtual const BottomCount& bottoms() const = 0;
  virtual bool is_view() const = 0;
  virtual bool computes() const = 0;  // the software device can run it
  virtual std::optional<Permutation> PermutationOf(const void* params) const = 0;
  virtual absl::StatusOr<Dims> Shape(const void* params, Bottoms in) const = 0;
  virtual Verdict Validate(const void* params, Bottoms in, const Target&, Route) const = 0;
  virtual Verdict Codegen(const void* params, Bottoms in, const Target&, Route) const = 0;

  virtual void Warn(const void* params, Bottoms in, const Dims& out, const Target&, Route,
                    WarningList&) const = 0;

  // The keys, in the order of the field table; and those that must be there.
  virtual std::vector<std::string> Keys(bool required_only) const = 0;
  virtual std::vector<KeyInfo> ListKeys() const = 0;
  virtual Json Write(const void* params) const = 0;
  // What Write() wrote. kNotFound: a required key is missing. kInvalidArgument: a value that is
  // none of its key's, or a key that the kind has not.
  virtual absl::StatusOr<std::shared_ptr<const void>> Read(
      const Json& keys, Bottoms in, absl::Span<const Tensor> weights) const = 0;

  // Of a kind that keeps a kernel in a weights file (UnitRow's kernel_dims, stored_kernel).
  virtual bool stores_kernel() const = 0;
  virtual absl::StatusOr<std::vector<int64_t>> KernelDims(const Json& keys, Bottoms in) const = 0;
  virtual absl::StatusOr<Tensor> StoredKernel(const void* params, const Tensor& weight) const = 0;

  virtual absl::Status WriteMil(MilEmitter& e, const Unit& unit) const = 0;
  virtual bool composes() const = 0;
  virtual absl::StatusOr<Operand> Compose(NetworkBuilder& c, const Unit& unit) const = 0;
  virtual int AddedConstant(const void* params, Bottoms in) const = 0;
  virtual bool takes_bias() const = 0;

  virtual absl::StatusOr<Prepared> Prepare(const void* params, Bottoms in,
                                           absl::Span<const Tensor> weights) const = 0;
  virtual void Compute(const void* params, const void* prepared, absl::Span<const ConstView> in,
                       View out) const = 0;
  virtual void ComputeThen(const void* params, const void* prepared, absl::Span<const ConstView> in,
                           View out, const math::Epilogue& epilogue) const = 0;
  virtual bool Joins(const void* params, Bottoms in) const = 0;
  virtual bool finishes_runs() const = 0;
  virtual bool by_element() const = 0;  // StepOf() can be asked
  virtual UnitStep StepOf(const void* params, const void* prepared) const = 0;
  virtual bool has_exact() const = 0;
  virtual std::optional<GainOffset> EpilogueOf(const void* params,
                                               absl::Span<const Tensor> weights) const = 0;
  virtual bool TakesEpilogue(const void* params, const math::Numerics& n) const = 0;
  virtual bool Squares(const void* params, absl::Span<const Operand> bottoms) const = 0;
  virtual bool TakesSquares(const void* params, const math::Numerics& n) const = 0;
  virtual bool reads_port() const = 0;
  virtual void Exact(const void* params, const ExactUnit&, absl::Span<const ConstView> in,
                     View out) const = 0;
};

// kInvalidArgument naming the first key of `keys` that is not in `known`.
absl::Status CheckKeys(const Json& keys, const std::string& type,
                       const std::vector<std::string>& known);

template <class P>
class UnitKindOf final : public UnitKind {
 public:
  explicit UnitKindOf(UnitRow<P> row) : row_(row) {}
  const char* type() const override { return row_.type; }
  int min_family() const override { return row_.min_family; }
  const BottomCount& bottoms() const override { return row_.bottoms; }
  bool is_view() const override { return row_.is_view; }
  bool computes() const override {
    return row_.is_view || row_.compute != nullptr || row_.compute_then != nullptr;
  }
  std::optional<Permutation> PermutationOf(const void* params) const override {
    if (row_.permutation == nullptr) return std::nullopt;
    return row_.permutation(Cast(params));
  }
  absl::StatusOr<Dims> Shape(const void* params, Bottoms in) const override {
    return row_.shape(Cast(params), in);
  }
  Verdict Validate(const void* params, Bottoms in, const Target& t, Route r) const override {
    return row_.validate == nullptr ? Judge(t, r).Accept() : row_.validate(Cast(params), in, t, r);
  }
  Verdict Codegen(const void* params, Bottoms in, const Target& t, Route r) const override {
    return row_.codegen == nullptr ? Judge(t, r).Accept() : row_.codegen(Cast(params), in, t, r);
  }
  void Warn(const void* params, Bottoms in, const Dims& out, const Target& t, Route r,
            WarningList& list) const override {
    if (row_.warn != nullptr) row_.warn(Cast(params), in, out, t, r, list);
  }
  std::vector<std::string> Keys(bool required_only) const override {
    std::vector<std::string> keys;
    for (const Field<P>& f : row_.fields) {
      if (f.required || !required_only) keys.emplace_back(f.key);
    }
    return keys;
  }
  std::vector<KeyInfo> ListKeys() const override {
    std::vector<KeyInfo> list;
    for (const Field<P>& f : row_.fields) {
      P params{};
      Json fallback = f.required ? Json() : f.get(params);
      if (f.set != nullptr && !f.set(params, fallback).ok()) fallback = nullptr;
      list.push_back({f.key, f.required, f.type,
                      f.names == nullptr ? absl::Span<const char* const>() : f.names(),
                      std::move(fallback)});
    }
    return list;
  }
  Json Write(const void* params) const override {
    Json keys = Json::object();
    for (const Field<P>& f : row_.fields) {
      if (Json value = f.get(Cast(params)); !value.is_null()) keys[f.key] = std::move(value);
    }
    return keys;
  }
  absl::StatusOr<std::shared_ptr<const void>> Read(
      const Json& keys, Bottoms in, absl::Span<const Tensor> weights) const override {
    P params{};
    if (absl::Status status = Set(params, keys); !status.ok()) return status;
    if (row_.complete != nullptr) {
      if (absl::Status status = row_.complete(params, in, weights); !status.ok()) return status;
    }
    return std::make_shared<const P>(std::move(params));
  }
  bool stores_kernel() const override { return row_.stored_kernel != nullptr; }
  absl::StatusOr<std::vector<int64_t>> KernelDims(const Json& keys, Bottoms in) const override {
    if (row_.kernel_dims == nullptr) return std::vector<int64_t>();
    P params{};
    if (absl::Status status = Set(params, keys); !status.ok()) return status;
    return row_.kernel_dims(params, in);
  }
  absl::StatusOr<Tensor> StoredKernel(const void* params, const Tensor& weight) const override {
    return row_.stored_kernel(Cast(params), weight);
  }
  absl::Status WriteMil(MilEmitter& e, const Unit& unit) const override {
    if (row_.mil == nullptr) {
      return absl::UnimplementedError(std::string(row_.type) + " has no MIL operation");
    }
    return row_.mil(e, Cast(unit.params.get()), unit);
  }
  bool composes() const override { return row_.compose != nullptr; }
  absl::StatusOr<Operand> Compose(NetworkBuilder& c, const Unit& unit) const override {
    if (row_.compose == nullptr) {
      return absl::UnimplementedError(std::string(row_.type) + " is composed of no other units");
    }
    return row_.compose(c, Cast(unit.params.get()), unit);
  }
  int AddedConstant(const void* params, Bottoms in) const override {
    return row_.added_constant == nullptr ? -1 : row_.added_constant(Cast(params), in);
  }
  bool takes_bias() const override { return row_.takes_bias; }
  absl::StatusOr<Prepared> Prepare(const void* params, Bottoms in,
                                   absl::Span<const Tensor> weights) const override {
    if (row_.prepare == nullptr) return Prepared();
    return row_.prepare(Cast(params), in, weights);
  }
  void Compute(const void* params, const void* prepared, absl::Span<const ConstView> in,
               View out) const override {
    if (row_.compute_then != nullptr) return ComputeThen(params, prepared, in, out, {});
    row_.compute(Cast(params), prepared, in, out);
  }
  void ComputeThen(const void* params, const void* prepared, absl::Span<const ConstView> in,
                   View out, const math::Epilogue& epilogue) const override {
    row_.compute_then(Cast(params), prepared, in, out, epilogue);
  }
  bool Joins(const void* params, Bottoms in) const override {
    return row_.joins != nullptr && row_.joins(Cast(params), in);
  }
  bool finishes_runs() const override { return row_.compute_then != nullptr; }
  bool by_element() const override { return row_.step != nullptr; }
  UnitStep StepOf(const void* params, const void* prepared) const override {
    return row_.step(Cast(params), prepared);
  }
  bool has_exact() const override { return row_.exact != nullptr; }
  std::optional<GainOffset> EpilogueOf(const void* params,
                                       absl::Span<const Tensor> weights) const override {
    if (row_.epilogue == nullptr) return std::nullopt;
    return row_.epilogue(Cast(params), weights);
  }
  bool TakesEpilogue(const void* params, const math::Numerics& n) const override {
    return row_.takes_epilogue != nullptr && row_.takes_epilogue(Cast(params), n);
  }
  bool Squares(const void* params, absl::Span<const Operand> bottoms) const override {
    return row_.squares != nullptr && row_.squares(Cast(params), bottoms);
  }
  bool TakesSquares(const void* params, const math::Numerics& n) const override {
    return row_.takes_squares != nullptr && row_.takes_squares(Cast(params), n);
  }
  bool reads_port() const override { return row_.reads_port; }
  void Exact(const void* params, const ExactUnit& unit, absl::Span<const ConstView> in,
             View out) const override {
    row_.exact(Cast(params), unit, in, out);
  }

 private:
  absl::Status Set(P& params, const Json& keys) const {
    for (const Field<P>& f : row_.fields) {
      const auto found = keys.find(f.key);
      if (found == keys.end()) {
        if (f.required) return absl::NotFoundError(f.key);
        continue;
      }
      absl::Status status = f.set == nullptr ? absl::OkStatus() : f.set(params, *found);
      if (!status.ok()) {
        return absl::InvalidArgumentError(std::string(f.key) + ": " +
                                          std::string(status.message()));
      }
    }
    return CheckKeys(keys, row_.type, Keys(false));
  }
  static const P& Cast(const void* params) { return *static_cast<const P*>(params); }
  UnitRow<P> row_;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_UNIT_KIND_H_
