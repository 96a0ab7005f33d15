// tests/fuzz/maker.h: makes random graphs node by node. ONNX Runtime runs each new node, so that
// the shapes and values are known when the next node is chosen; a combination of attributes that
// ONNX Runtime refuses is dropped.
#ifndef ANEMONE_TESTS_FUZZ_MAKER_H_
#define ANEMONE_TESTS_FUZZ_MAKER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/target.h"
#include "tests/fuzz/graph.h"
#include "tests/fuzz/random.h"

namespace anemone::fuzz {

// The number of elements.
int64_t Count(const Dims& dims);

// A node's attributes.
class Attributes {
 public:
  Attributes Int(const std::string& name, int64_t value) &&;
  Attributes Float(const std::string& name, float value) &&;
  Attributes Text(const std::string& name, const std::string& value) &&;
  Attributes Ints(const std::string& name, const Dims& values) &&;
  const std::vector<onnx::AttributeProto>& protos() const { return protos_; }

 private:
  onnx::AttributeProto& Add(const std::string& name, onnx::AttributeProto::AttributeType type);
  std::vector<onnx::AttributeProto> protos_;
};

// The distribution of a graph's float inputs.
enum class Mix {
  kPlain,      // -1 to 1
  kWide,       // -8 to 8
  kIntegers,   // -5 to 5
  kPositive,   // 0.05 to 3
  kTiny,       // around 1e-4
  kSubnormal,  // below fp16's smallest normal number
  kLarge,      // hundreds to 70000
  kSpecial,    // plain, with NaN, infinities, 65504 to 70000 and zeros of both signs
};

class Maker {
 public:
  Maker(Runtime runtime, Random& random, const Target& target, FuzzGraph& graph);

  Random& random;
  const Target& target;

  int opset() const { return graph_.opset; }
  const Values& values() const { return values_; }
  const Dims& DimsOf(const std::string& name) const { return values_.at(name).dims(); }
  int RankOf(const std::string& name) const { return static_cast<int>(DimsOf(name).size()); }

  // Float values: an existing one that fits, or a new one.
  using Fits = std::function<bool(const Dims&)>;
  std::string Any() { return OfRank(0, 6); }
  std::string OfRank(int low, int high);
  // A value with these dims; a new one is a constant with a probability of `constant` percent.
  std::string Of(const Dims& dims, int constant = 30);
  // A value that can be broadcast with a value of these dims.
  std::string BroadcastWith(const Dims& dims);
  // A bool value that can be broadcast with a value of these dims.
  std::string Condition(const Dims& dims);
  // A new weight, mostly constant and plain.
  std::string Weight(const Dims& dims) { return NewFloats(dims, 85, weight_mix_); }
  std::string PositiveWeight(const Dims& dims) { return NewFloats(dims, 85, Mix::kPositive); }
  // New constants.
  std::string Scalar(float value);
  std::string Floats(const std::vector<float>& values);
  std::string Ints(const Dims& values);
  std::string IntsOf(const Dims& dims, absl::Span<const int64_t> values, bool constant);

  Dims RandomDims(int low_rank, int high_rank);
  int64_t Axis(int rank, bool negative = true);
  Dims Axes(int rank, bool negative = true);  // some, sorted if not negative; may be empty

  // Adds the node if ONNX Runtime runs it. Returns the names of its outputs, or an empty list.
  std::vector<std::string> Emit(const std::string& op, const std::vector<std::string>& inputs,
                                const Attributes& attributes = {}, int outputs = 1);

  int refused() const { return refused_; }

 private:
  std::string NewLeaf(Tensor value, bool constant);
  std::string NewFloats(const Dims& dims, int constant, Mix mix);
  std::string Find(const Fits& fits, DataType type);

  const Runtime runtime_;
  FuzzGraph& graph_;
  Values values_;
  Mix mix_, weight_mix_;
  int names_ = 0;
  int refused_ = 0;
};

// Adds one operator, or a pattern of several, to a graph; it may also add nothing.
struct OperatorRow {
  const char* name;
  void (*make)(Maker&);
  int weight = 4;
  int since = 13;  // the first opset of the operator
};
absl::Span<const OperatorRow> ElementwiseRows();
absl::Span<const OperatorRow> MoveRows();
absl::Span<const OperatorRow> ReductionRows();
absl::Span<const OperatorRow> WindowRows();

struct MakeOptions {
  std::vector<std::string> targets;
};

struct Made {
  FuzzGraph graph;
  int refused = 0;  // nodes that ONNX Runtime refused
};

// Graph `number` of this seed; it has at least one node.
Made MakeGraph(const Runtime& runtime, uint64_t seed, uint64_t number, const MakeOptions& options);
// The graph of these random numbers; it may be empty.
Made MakeGraph(const Runtime& runtime, Random random, const MakeOptions& options);

}  // namespace anemone::fuzz

#endif  // ANEMONE_TESTS_FUZZ_MAKER_H_
