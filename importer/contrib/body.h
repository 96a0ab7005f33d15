// importer/contrib/body.h: the helper class for builders of contrib operators' bodies
// (importer/contrib/contrib.h). It reads and checks the node's attributes and shapes, and emits
// nodes.
//
//   absl::Status ExpandFastGelu(ContribBody& b) {
//     ANEMONE_RETURN_IF_ERROR(b.NoneLeft());
//     const ValueId x = b.Has(1) ? b.Emit("Add", {b.input(0), b.input(1)}) : b.input(0);
//     return b.Give(0, b.Emit("Gelu", {x}, {{"approximate", std::string("tanh")}}));
//   }
#ifndef ANEMONE_IMPORTER_CONTRIB_BODY_H_
#define ANEMONE_IMPORTER_CONTRIB_BODY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {

using Sizes = std::vector<int64_t>;

class ContribBody : public LiftContext {
 public:
  // Returns the constant of a value, computed on demand, or null if it is not constant.
  using Constants = std::function<absl::StatusOr<const Tensor*>(ValueId)>;

  // What the Asides of a graph have computed, by how they did it.
  using AsideValues = absl::flat_hash_map<std::string, ValueId>;

  // `asides` are those of the bodies in this graph so far.
  ContribBody(Model& model, Graph& graph, NameScope& names, const Node& node, Constants constants,
              bool gap_in_caches, const AsideValues& asides)
      : LiftContext(model, graph, names, node),
        constants_(std::move(constants)),
        gap_in_caches_(gap_in_caches),
        earlier_asides_(asides) {}

  bool gap_in_caches() const { return gap_in_caches_; }  // ImportOptions

  // Declares that this form is not expanded. kept() returns the reason from then on; the returned
  // error status only ends the builder.
  absl::Status Keep(absl::string_view why);
  // Keep(why) unless `holds`.
  absl::Status Need(bool holds, absl::string_view why);
  const std::optional<std::string>& kept() const { return kept_; }

  // Attributes. An attribute of another type counts as unknown.
  int64_t Int(absl::string_view name, int64_t fallback);
  float Float(absl::string_view name, float fallback);
  std::string Text(absl::string_view name, absl::string_view fallback);
  Sizes IntList(absl::string_view name);  // empty if it is not set
  std::vector<float> FloatList(absl::string_view name);
  // Marks an attribute as read.
  void Ignore(absl::string_view name) { asked_.emplace(name); }
  // Keep() if the node has attributes that were not read: those of a later contrib version.
  absl::Status NoneLeft();

  bool Has(size_t index) const { return input(index) != kNone; }
  bool Makes(size_t index) const { return output(index) != kNone; }
  // The sizes of an input that is present. Keep() if they are not all known, or if the rank is not
  // in `ranks` (if that is empty, any rank is accepted).
  absl::StatusOr<Sizes> DimsOf(size_t index, const std::vector<size_t>& ranks = {});
  // Input `index` as a constant; null if it is not constant.
  absl::StatusOr<const Tensor*> Known(size_t index) const;
  // The type of an input, float32 or float16; Keep() if it is another type.
  absl::StatusOr<DataType> FloatTypeOf(size_t index);

  // While an Aside exists, emitted nodes have a separate origin, "<origin>/<what>". Use it for
  // nodes that only prepare integers: no engine unit reads integers, so with the origin of the call
  // they would put the whole call on the CPU. What an earlier Aside of the graph has computed is
  // not emitted again: every layer of a model may ask for the same mask and the same positions.
  class Aside {
   public:
    Aside(ContribBody& body, absl::string_view what);
    ~Aside();
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    ContribBody& body_;
  };

  ValueId Constant(Tensor tensor) override;

  // What the Asides of this body have computed besides `asides`.
  AsideValues& new_asides() { return new_asides_; }

  // Makes `value` output `index` of the node, if the node has that output.
  absl::Status Give(size_t index, ValueId value);

  // Common nodes.
  ValueId Concat(std::vector<ValueId> values, int64_t axis);
  ValueId Slice(ValueId value, int64_t axis, int64_t from, int64_t to);
  std::vector<ValueId> Split(ValueId value, int64_t axis, const Sizes& sizes);
  ValueId Gather(ValueId value, int64_t axis, ValueId indices);
  // An input with rows of a table of `count`, int32 or int64. Gather counts negative indices from
  // the end, and the operators of com.microsoft refuse them: `count` less, Gather refuses them too.
  ValueId RefusedIfNegative(size_t input, int64_t count);
  // [0, 1, ..., count - 1] of an integer type, with the given dims.
  ValueId Count(DataType type, int64_t count, const Sizes& dims);
  // A quantized value converted to floats; its zero point and scale are not applied.
  ValueId Widened(ValueId quantized, DataType type);
  // a + b, or a if b is kNone.
  ValueId Plus(ValueId a, ValueId b);

 protected:
  ValueId Append(absl::string_view op_type, std::vector<ValueId> inputs,
                 std::vector<Attribute> attributes) override;

 private:
  friend class Aside;
  template <class T>
  const T* Find(absl::string_view name);

  // The value that has this key, or the one that `make` makes.
  ValueId Once(std::string key, absl::FunctionRef<ValueId()> make);

  Constants constants_;
  const bool gap_in_caches_;
  const AsideValues& earlier_asides_;
  AsideValues new_asides_;
  bool is_aside_ = false;
  std::optional<std::string> kept_;
  std::set<std::string> asked_;  // attributes that were read, with the right type
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_CONTRIB_BODY_H_
