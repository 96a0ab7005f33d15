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
#include "engine/math/half.h"
#include "engine/unit.h"
#include "engine/verdict.h"

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

// How one parameter is shown (`check -v`, JSON) and, for kinds with a known netplist form, under
// which key it is written. `get` gives its text; "" where the parameters have no such field.
template <class P>
struct Field {
  const char* key;
  std::string (*get)(const P&);
};

using Permutation = std::array<Axis, kAxisCount>;

// A row. Null functions mean: no rule of its own (validate, codegen), nothing to prepare.
template <class P>
struct UnitRow {
  const char* type;  // the netplist's Type
  // The output's dims; kInvalidArgument if the bottoms do not fit the parameters. A lowering asks
  // it first, so the validator sees dims that make sense.
  absl::StatusOr<Dims> (*shape)(const P&, Bottoms);
  Verdict (*validate)(const P&, Bottoms, const Target&, Route) = nullptr;
  // Refusals of the code generator for what the validator let pass ("attested is not reachable").
  Verdict (*codegen)(const P&, Bottoms, const Target&, Route) = nullptr;
  absl::Span<const Field<P>> fields = {};
  absl::StatusOr<Prepared> (*prepare)(const P&, Bottoms,
                                      absl::Span<const Tensor> weights) = nullptr;
  // One output from the bottoms. Runs inside the device's arena; may use tbb::parallel_for.
  void (*compute)(const P&, const void* prepared, absl::Span<const ConstView> in, View out);
  // The output is the first bottom's bytes under other dims: nothing is computed.
  bool is_view = false;
  // Set by the one kind that only moves axes: output axis i is input axis (*permutation)(p)[i].
  Permutation (*permutation)(const P&) = nullptr;
};

// The row with its parameter type forgotten.
class UnitKind {
 public:
  virtual ~UnitKind() = default;
  virtual const char* type() const = 0;
  virtual bool is_view() const = 0;
  virtual std::optional<Permutation> PermutationOf(const void* params) const = 0;
  virtual absl::StatusOr<Dims> Shape(const void* params, Bottoms in) const = 0;
  virtual Verdict Validate(const void* params, Bottoms in, const Target&, Route) const = 0;
  virtual Verdict Codegen(const void* params, Bottoms in, const Target&, Route) const = 0;
  // "Dimension=Width, ..." in the order of the field table.
  virtual std::vector<std::pair<std::string, std::string>> Fields(const void* params) const = 0;
  virtual absl::StatusOr<Prepared> Prepare(const void* params, Bottoms in,
                                           absl::Span<const Tensor> weights) const = 0;
  virtual void Compute(const void* params, const void* prepared, absl::Span<const ConstView> in,
                       View out) const = 0;
};

template <class P>
class UnitKindOf final : public UnitKind {
 public:
  explicit UnitKindOf(UnitRow<P> row) : row_(row) {}
  const char* type() const override { return row_.type; }
  bool is_view() const override { return row_.is_view; }
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
  std::vector<std::pair<std::string, std::string>> Fields(const void* params) const override {
    std::vector<std::pair<std::string, std::string>> shown;
    for (const Field<P>& f : row_.fields) {
      if (std::string value = f.get(Cast(params)); !value.empty()) shown.emplace_back(f.key, value);
    }
    return shown;
  }
  absl::StatusOr<Prepared> Prepare(const void* params, Bottoms in,
                                   absl::Span<const Tensor> weights) const override {
    if (row_.prepare == nullptr) return Prepared();
    return row_.prepare(Cast(params), in, weights);
  }
  void Compute(const void* params, const void* prepared, absl::Span<const ConstView> in,
               View out) const override {
    row_.compute(Cast(params), prepared, in, out);
  }

 private:
  static const P& Cast(const void* params) { return *static_cast<const P*>(params); }
  UnitRow<P> row_;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_UNIT_KIND_H_
