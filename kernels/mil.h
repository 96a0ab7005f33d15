// kernels/mil.h: MIL operations (the conversion route), by name, and the units they become.
//
//   absl::Status BuildSoftmax(MilContext& c) {
//     ANEMONE_ASSIGN_OR_RETURN(int axis, c.AxisAt("axis", -1));
//     Operand x = c.In(0);
//     x = c.Add(Kind(), SoftmaxParams{ToEngineAxis(c.rank(0), axis)}, {x});
//     return c.Out(x, c.ShapeOf(0));
//   }
//   constexpr MilOperation kOperations[] = {{"softmax", BuildSoftmax}};
//
// A build function adds the units for a call, and the validators of the units accept or refuse
// them. The checks of the compiler's frontend, which are the same for every operation (ports,
// ranks, extents), run before the build function (kernels/mil.cc).
#ifndef ANEMONE_KERNELS_MIL_H_
#define ANEMONE_KERNELS_MIL_H_

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
#include "absl/types/span.h"
#include "engine/network_builder.h"
#include "kernels/lowering.h"

namespace anemone {

// A tensor argument of a call. A constant without a `value` has unknown elements.
struct MilTensor {
  std::string name;
  std::vector<int64_t> shape;  // -1: symbolic
  std::string dtype = "fp16";  // MIL's name: fp16, fp32, uint8, int32, bool, bf16, ...
  bool constant = false;
  std::optional<Tensor> value;   // of a constant whose elements are known
  bool in_engine_order = false;  // a shape of rank 5 is N, D, C, H, W instead of MIL's order

  Dims dims() const;
};

// One call of a MIL operation. On route netplist `op` may also be a unit's Type.
struct MilCall {
  std::string op;
  std::vector<MilTensor> arguments;  // in the operation's order
  // Attributes by name; a constant tensor is {"shape": [...], "dtype": "fp16"}.
  Json attributes = Json::object();
};

// Reads a call in the format of `anemone confirm --probe`: {"op": ..., "inputs": [{"name", "shape",
// "dtype", "role", "layout"}], "attrs": {...}}. Other keys are ignored. kInvalidArgument, naming
// the key, if a value is invalid.
absl::Status ReadMilCall(const Json& from, MilCall& call);

// The tensor's value, or zeros of its type if the value is unknown. kInvalidArgument if the type is
// unknown or an extent is below 1.
absl::StatusOr<Tensor> ZerosOf(const MilTensor& tensor);

class MilContext : public NetworkBuilder {
 public:
  MilContext(const MilCall& call, const Target& target, Route route, bool rewrites)
      : NetworkBuilder(target, route), call_(call), rewrites_(rewrites) {}

  const MilCall& call() const { return call_; }
  // Whether rewrites are allowed (`--rewrites`).
  bool rewrites() const { return rewrites_; }

  size_t arguments() const { return call_.arguments.size(); }
  // If argument `i` is missing, the builder fails and the shape is all ones.
  const std::vector<int64_t>& ShapeOf(size_t i);
  int rank(size_t i) { return static_cast<int>(ShapeOf(i).size()); }

  // Argument `i`, a port or a constant, with the dims of PlaceShape. If the argument is missing,
  // the builder fails with kInvalidArgument.
  Operand In(size_t i);
  // The same with leading axes of extent 1 added until it has the rank of `shape`.
  Operand Aligned(size_t i, absl::Span<const int64_t> shape);
  // The shape that all arguments broadcast to. kInvalidArgument if they are not compatible.
  absl::StatusOr<std::vector<int64_t>> CommonShape();
  // The constant `name` from the attributes or the arguments, or nullopt if there is none.
  absl::StatusOr<std::optional<MilTensor>> Constant(absl::string_view name);

  bool Has(absl::string_view key) const { return call_.attributes.contains(key); }
  // The attribute, or the fallback if it is omitted. kInvalidArgument if its type differs.
  absl::StatusOr<int64_t> Int(absl::string_view key, int64_t fallback);
  absl::StatusOr<bool> Bool(absl::string_view key, bool fallback);
  absl::StatusOr<float> Number(absl::string_view key, float fallback);
  absl::StatusOr<std::string> Text(absl::string_view key, std::string fallback);
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view key, std::vector<int64_t> fallback);
  // An attribute that is an axis of argument 0, converted to 0..rank-1.
  absl::StatusOr<int> AxisAt(absl::string_view key, int64_t fallback);

  // Marks an attribute as read, although it has no effect here.
  void Ignore(absl::string_view key) { read_.emplace(key); }
  // Refuses an output_dtype that ports do not have, unless the operation reads it itself.
  absl::Status CheckOutputType();
  // kInvalidArgument, naming an attribute or argument that was not read.
  absl::Status NoneLeft() const;

  // Declares the result of the call. kInternal unless the operand's dims are PlaceShape(shape).
  absl::Status Out(const Operand& from, absl::Span<const int64_t> shape);
  // Marks the call as rewritten: its units are not the operation's own kind.
  void SetRewritten() { rewritten_ = true; }
  bool rewritten() const { return rewritten_; }

 private:
  template <class T>
  absl::StatusOr<T> Get(absl::string_view key, T fallback);

  const MilCall& call_;
  bool rewrites_;
  bool rewritten_ = false;
  std::vector<std::optional<Operand>> operands_;  // by argument
  std::set<std::string, std::less<>> read_;       // attributes
  std::set<size_t> seen_;                         // arguments whose shape or elements were read
};

struct MilOperation {
  const char* op;
  absl::Status (*build)(MilContext&);
};

// The operation `op`, or null if it is unknown.
const MilOperation* FindMilOperation(absl::string_view op);

// The answer to "does this target take this one operation?"
struct OperationVerdict {
  Verdict verdict;
  bool rewritten = false;
  std::vector<std::string> units;
  Network network;  // the validated network; empty if the call was refused before it was built
};

// `call.op` is a MIL operation, on either route. On route netplist it may also be a netplist Type,
// with the Type's keys as attributes and its bottoms as arguments. Errors: kNotFound (there is no
// such operation; the message lists similar names), kInvalidArgument (the call is malformed, for
// example an argument is missing or the operation does not have an attribute).
absl::StatusOr<OperationVerdict> JudgeOperation(const MilCall& call, const Target& target,
                                                Route route, bool rewrites);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_H_
