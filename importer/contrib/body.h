// importer/contrib/body.h: what the builder of a contrib operator's body
// (importer/contrib/contrib.h) works with: the node's attributes and shapes, checked, and nodes to
// emit.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "importer/opset/opset_lifts.h"

namespace anemone {

using Sizes = std::vector<int64_t>;

class ContribBody : public LiftContext {
 public:
  // The constant behind a value, computed now if need be; null if there is none.
  using Constants = std::function<absl::StatusOr<const Tensor*>(ValueId)>;

  ContribBody(Model& model, Graph& graph, NameScope& names, const Node& node, Constants constants)
      : LiftContext(model, graph, names, node), constants_(std::move(constants)) {}

  // This form stays as it is. kept() says why from here on; the status only ends the builder.
  absl::Status Keep(absl::string_view why);
  // Keep(why) unless `holds`.
  absl::Status Need(bool holds, absl::string_view why);
  const std::optional<std::string>& kept() const { return kept_; }

  // Attributes, each asked for once. One of another type is as good as unknown.
  int64_t Int(absl::string_view name, int64_t fallback);
  float Float(absl::string_view name, float fallback);
  std::string Text(absl::string_view name, absl::string_view fallback);
  Sizes IntList(absl::string_view name);  // empty if it is not set
  std::vector<float> FloatList(absl::string_view name);
  // As if it had been asked for.
  void Ignore(absl::string_view name) { asked_.emplace(name); }
  // Keeps a node that has attributes nobody asked for: those of a later contrib version.
  absl::Status NoneLeft();

  bool Has(size_t index) const { return input(index) != kNone; }
  bool Makes(size_t index) const { return output(index) != kNone; }
  // The sizes of an input that is there; Keep() if they are not all known, or its rank is none of
  // `ranks` (any if that is empty).
  absl::StatusOr<Sizes> DimsOf(size_t index, const std::vector<size_t>& ranks = {});
  // Input `index` as a constant; null if it is none.
  absl::StatusOr<const Tensor*> Known(size_t index) const;
  // float32 or float16, the type of an input; Keep() if it is another.
  absl::StatusOr<DataType> FloatTypeOf(size_t index);

  // While one lives, emitted nodes are of an origin of their own, "<origin>/<what>": they only
  // prepare integers. No engine unit reads integers, so as part of the call they would put all of
  // it on the CPU.
  class Aside {
   public:
    Aside(ContribBody& body, absl::string_view what);
    ~Aside() { body_.set_origins(body_.node().origins); }
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    ContribBody& body_;
  };

  // Makes `value` output `index` of the node, if anybody wants it.
  absl::Status Give(size_t index, ValueId value);

  // Nodes that many bodies need.
  ValueId Reshape(ValueId value, const Sizes& dims);
  ValueId Transpose(ValueId value, const Sizes& perm);
  ValueId Concat(std::vector<ValueId> values, int64_t axis);
  ValueId Slice(ValueId value, int64_t axis, int64_t from, int64_t to);
  std::vector<ValueId> Split(ValueId value, int64_t axis, const Sizes& sizes);
  ValueId Gather(ValueId value, int64_t axis, ValueId indices);
  // [0, 1, ..., count - 1] of an integer type, under other dims.
  ValueId Count(DataType type, int64_t count, const Sizes& dims);
  // A quantized value as the floats it counts in: its zero point and scale are applied after.
  ValueId Widened(ValueId quantized, DataType type);
  // a + b; a if there is no b.
  ValueId Plus(ValueId a, ValueId b);

 private:
  friend class Aside;
  template <class T>
  const T* Find(absl::string_view name);

  Constants constants_;
  std::optional<std::string> kept_;
  std::set<std::string> asked_;  // attributes that were found, and of the type wanted
};

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_CONTRIB_BODY_H_
