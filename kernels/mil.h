// kernels/mil.h: operations of the conversion route (MIL), by name, and the units they become.
//
//   absl::Status BuildSoftmax(MilContext& c) {
//     ASSIGN_OR_RETURN(int axis, c.Axis("axis", -1));
//     ASSIGN_OR_RETURN(Operand x, c.In(0));
//     ASSIGN_OR_RETURN(x, c.Add(Kind(), SoftmaxParams{ToEngineAxis(c.rank(0), axis)}, {x}));
//     return c.Out(x, c.ShapeOf(0));
//   }
//   constexpr MilOperation kOperations[] = {{"softmax", BuildSoftmax}};
//
// A builder writes the units that the call asks for; their validators judge. What the frontend sees
// of any call (ports, ranks, extents) is judged before the builder is asked (mil.cc).
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

// A tensor of a call. The elements of a constant are those of `value`, or any.
struct MilTensor {
  std::string name;
  std::vector<int64_t> shape;  // -1: symbolic
  std::string dtype = "fp16";  // as MIL spells it: fp16, fp32, uint8, int32, bool, bf16, ...
  bool constant = false;
  std::optional<Tensor> value;   // of a constant whose elements are known
  bool in_engine_order = false;  // five extents are N, D, C, H, W, not placed as MIL's (PlaceShape)

  Dims dims() const;
};

// On route netplist `op` may be a unit's type.
struct MilCall {
  std::string op;
  std::vector<MilTensor> arguments;  // in the operation's order
  // Attributes by name; a constant tensor is {"shape": [...], "dtype": "fp16"}.
  Json attributes = Json::object();
};

// A call as `anemone confirm --probe` takes it: {"op": ..., "inputs": [{"name", "shape", "dtype",
// "role", "layout"}], "attrs": {...}}; other keys are the caller's. kInvalidArgument names the key.
absl::Status ReadMilCall(const Json& from, MilCall& call);

// Its value, or zeros of its type where that is not known. kInvalidArgument: no such type, an axis
// without elements.
absl::StatusOr<Tensor> ZerosOf(const MilTensor& tensor);

class MilContext : public NetworkBuilder {
 public:
  MilContext(const MilCall& call, const Target& target, Route route, bool rewrites)
      : NetworkBuilder(target, route), call_(call), rewrites_(rewrites) {}

  const MilCall& call() const { return call_; }
  // Rewrites are allowed (`--rewrites`).
  bool rewrites() const { return rewrites_; }

  size_t arguments() const { return call_.arguments.size(); }
  // If there is no such argument, the builder fails, and the shape is ones.
  const std::vector<int64_t>& ShapeOf(size_t i);
  int rank(size_t i) { return static_cast<int>(ShapeOf(i).size()); }

  // Argument `i`, a port or a constant, laid out by PlaceShape. If there is no such argument, the
  // builder fails with kInvalidArgument.
  Operand In(size_t i);
  // The same with ones put in front of its axes, so that its rank is that of `shape`.
  Operand Aligned(size_t i, absl::Span<const int64_t> shape);
  // What the arguments are broadcast to. kInvalidArgument if they do not go together.
  absl::StatusOr<std::vector<int64_t>> CommonShape();
  // A constant named `name`, among the attributes or the arguments.
  absl::StatusOr<std::optional<MilTensor>> Constant(absl::string_view name);

  bool Has(absl::string_view key) const { return call_.attributes.contains(key); }
  // An attribute, or the fallback. kInvalidArgument if it is of another type.
  absl::StatusOr<int64_t> Int(absl::string_view key, int64_t fallback);
  absl::StatusOr<bool> Bool(absl::string_view key, bool fallback);
  absl::StatusOr<float> Number(absl::string_view key, float fallback);
  absl::StatusOr<std::string> Text(absl::string_view key, std::string fallback);
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view key, std::vector<int64_t> fallback);
  // An axis of argument 0, made 0..rank-1.
  absl::StatusOr<int> AxisAt(absl::string_view key, int64_t fallback);

  // Marks an attribute as known and without meaning here.
  void Ignore(absl::string_view key) { read_.emplace(key); }
  // Refuses an output_dtype that no port has, unless the operation reads it itself.
  absl::Status CheckOutputType();
  // kInvalidArgument naming an attribute or argument that nobody read.
  absl::Status NoneLeft() const;

  // The call's result. kInternal if the operand does not lie as PlaceShape has the shape.
  absl::Status Out(const Operand& from, absl::Span<const int64_t> shape);
  // The units are other than the operation's own.
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
  std::set<size_t> seen_;  // arguments whose shape or elements were asked for
};

struct MilOperation {
  const char* op;
  absl::Status (*build)(MilContext&);
};

// Null if MIL has no such operation, or none that is known here.
const MilOperation* FindMilOperation(absl::string_view op);

// The answer to "does this target take this one operation?"
struct OperationVerdict {
  Verdict verdict;
  bool rewritten = false;
  std::vector<std::string> units;
  Network network;  // what was judged; empty if refused before there was one
};

// `call.op` is a MIL operation, on both routes; or a netplist Type, on the netplist route, with
// the Type's keys as attributes and its bottoms as arguments. Errors: kNotFound (no such operation;
// lists near names), kInvalidArgument (the call makes no sense: a missing argument, a key that the
// operation has not).
absl::StatusOr<OperationVerdict> JudgeOperation(const MilCall& call, const Target& target,
                                                Route route, bool rewrites);

}  // namespace anemone

#endif  // ANEMONE_KERNELS_MIL_H_
