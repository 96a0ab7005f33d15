#include "tests/fuzz/maker.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace anemone::fuzz {
namespace {

// The number of elements of a value: usually small, at most enough for shapes at a limit.
constexpr int64_t kUsualElements = 1500;
constexpr int64_t kMostElements = 200000;
constexpr int kMostNodes = 8;
constexpr int kNewestOpset = 23;  // in newer ones few operators have kernels

float Draw(Random& random, Mix mix) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  switch (mix) {
    case Mix::kPlain:
      return random.Uniform(-1, 1);
    case Mix::kWide:
      return random.Uniform(-8, 8);
    case Mix::kIntegers:
      return static_cast<float>(random.Between(-5, 5));
    case Mix::kPositive:
      return random.Uniform(0.05f, 3);
    case Mix::kTiny:
      return random.Uniform(-3e-4f, 3e-4f);
    case Mix::kSubnormal:
      return static_cast<float>(random.Between(-1100, 1100)) * 0x1p-24f;
    case Mix::kLarge:
      return random.Uniform(-1, 1) * random.Pick({300.f, 5000.f, 40000.f, 70000.f});
    case Mix::kSpecial:
      break;
  }
  if (random.Chance(75)) return random.Uniform(-2, 2);
  return random.Pick({kNan, kInfinity, -kInfinity, 65504.f, -65504.f, 65519.f, 65520.f, 70000.f,
                      -70000.f, 0.f, -0.f, 0x1p-24f, -0x1p-25f, 0x1p-14f, 1e-30f});
}

Mix DrawMix(Random& random) {
  const int64_t draw = random.Below(100);
  if (draw < 44) return Mix::kPlain;
  if (draw < 60) return Mix::kWide;
  if (draw < 70) return Mix::kIntegers;
  if (draw < 80) return Mix::kPositive;
  if (draw < 84) return Mix::kTiny;
  if (draw < 87) return Mix::kSubnormal;
  if (draw < 92) return Mix::kLarge;
  return Mix::kSpecial;
}

int64_t LimitOf(const Target& target, Limit limit) {
  const auto known = target.limit(limit);
  return known ? known->value : 0;
}

}  // namespace

int64_t Count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

onnx::AttributeProto& Attributes::Add(const std::string& name,
                                      onnx::AttributeProto::AttributeType type) {
  protos_.emplace_back();
  protos_.back().set_name(name);
  protos_.back().set_type(type);
  return protos_.back();
}
Attributes Attributes::Int(const std::string& name, int64_t value) && {
  Add(name, onnx::AttributeProto::INT).set_i(value);
  return std::move(*this);
}
Attributes Attributes::Float(const std::string& name, float value) && {
  Add(name, onnx::AttributeProto::FLOAT).set_f(value);
  return std::move(*this);
}
Attributes Attributes::Text(const std::string& name, const std::string& value) && {
  Add(name, onnx::AttributeProto::STRING).set_s(value);
  return std::move(*this);
}
Attributes Attributes::Ints(const std::string& name, const Dims& values) && {
  onnx::AttributeProto& proto = Add(name, onnx::AttributeProto::INTS);
  for (int64_t value : values) proto.add_ints(value);
  return std::move(*this);
}

Maker::Maker(Runtime runtime, Random& random, const Target& target, FuzzGraph& graph)
    : random(random),
      target(target),
      runtime_(std::move(runtime)),
      graph_(graph),
      mix_(DrawMix(random)),
      weight_mix_(random.Chance(90) ? Mix::kPlain : mix_) {}

std::string Maker::NewLeaf(Tensor value, bool constant) {
  Leaf leaf{absl::StrCat(constant ? "c" : "x", names_++), std::move(value), constant};
  values_[leaf.name] = leaf.value;
  graph_.leaves.push_back(leaf);
  return leaf.name;
}

std::string Maker::NewFloats(const Dims& dims, int constant, Mix mix) {
  Tensor tensor = Tensor::Zeros(DataType::kFloat, dims);
  {
    const Random::Elements elements(random);
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      tensor.mutable_data<float>()[i] = Draw(random, mix);
    }
  }
  return NewLeaf(std::move(tensor), random.Chance(constant));
}

std::string Maker::Find(const Fits& fits, DataType type) {
  std::vector<std::string> found;
  for (const auto& [name, value] : values_) {
    const Leaf* leaf = graph_.FindLeaf(name);
    if (leaf != nullptr && leaf->constant) continue;
    if (value.type() == type && fits(value.dims())) {
      // Outputs of nodes are chosen more often, so that graphs become deep.
      found.insert(found.end(), leaf == nullptr ? 3 : 1, name);
    }
  }
  return found.empty() ? "" : random.Pick(found);
}

std::string Maker::OfRank(int low, int high) {
  if (random.Chance(85)) {
    std::string found = Find(
        [&](const Dims& dims) {
          const int rank = static_cast<int>(dims.size());
          return rank >= low && rank <= high;
        },
        DataType::kFloat);
    if (!found.empty()) return found;
  }
  return NewFloats(RandomDims(low, high), 8, random.Chance(75) ? mix_ : Mix::kPlain);
}

std::string Maker::Of(const Dims& dims, int constant) {
  if (random.Chance(60)) {
    std::string found = Find([&](const Dims& other) { return other == dims; }, DataType::kFloat);
    if (!found.empty()) return found;
  }
  return NewFloats(dims, constant, mix_);
}

std::string Maker::BroadcastWith(const Dims& dims) {
  if (random.Chance(40)) return Of(dims, 20);
  Dims other = dims;
  for (int64_t& dim : other) {
    if (random.Chance(40)) dim = 1;
  }
  if (!other.empty() && random.Chance(40)) {
    other.erase(other.begin(), other.begin() + random.Between(1, other.size()));
  } else if (other.size() < 5 && random.Chance(10)) {
    other.insert(other.begin(), random.Between(1, 3));
  }
  return Of(other, 50);
}

std::string Maker::Condition(const Dims& dims) {
  std::string found = Find([&](const Dims& other) { return other == dims; }, DataType::kBool);
  if (!found.empty() && random.Chance(80)) return found;
  Dims other = dims;
  for (int64_t& dim : other) {
    if (random.Chance(30)) dim = 1;
  }
  Tensor tensor = Tensor::Zeros(DataType::kBool, other);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.mutable_data<uint8_t>()[i] = random.Chance(50);
  }
  return NewLeaf(std::move(tensor), random.Chance(40));
}

std::string Maker::Scalar(float value) { return NewLeaf(Tensor::Floats({}, {value}), true); }
std::string Maker::Floats(const std::vector<float>& values) {
  return NewLeaf(Tensor::Floats({static_cast<int64_t>(values.size())}, values), true);
}
std::string Maker::Ints(const Dims& values) {
  return IntsOf({static_cast<int64_t>(values.size())}, values, true);
}
std::string Maker::IntsOf(const Dims& dims, absl::Span<const int64_t> values, bool constant) {
  return NewLeaf(Tensor::Int64s(dims, values), constant);
}

Dims Maker::RandomDims(int low_rank, int high_rank) {
  // Four axes are usual on the engine; it does not support six.
  int64_t rank = random.Pick({4, 4, 4, 4, 4, 3, 3, 2, 2, 1, 5, 0, 6});
  rank = std::clamp<int64_t>(rank, low_rank, high_rank);
  Dims dims;
  int64_t left = kUsualElements;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dim =
        random.Chance(15)
            ? 1
            : random.Pick({2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17, 23, 31, 32, 33, 64});
    dims.push_back(dim <= left ? dim : 1);
    left /= dims.back();
  }
  for (size_t i = dims.size(); i > 1; --i) std::swap(dims[i - 1], dims[random.Below(i)]);
  if (rank == 4 && random.Chance(30)) dims[0] = 1;
  if (rank > 0 && random.Chance(2)) dims[random.Below(rank)] = 0;
  if (rank > 1 && random.Chance(2)) {
    constexpr Limit kLimits[] = {Limit::kMaxTensorN, Limit::kMaxTensorC, Limit::kMaxTensorH,
                                 Limit::kMaxTensorW};
    const int64_t axis = random.Below(std::min<int64_t>(rank, 4));
    const int64_t limit = LimitOf(target, kLimits[axis + (rank < 4 ? 4 - rank : 0)]);
    if (limit > 0 && limit < kMostElements / 2) {
      for (int64_t& dim : dims) dim = random.Between(1, 2);
      dims[axis] = limit + random.Below(2);
    }
  }
  while (Count(dims) > kMostElements) *std::max_element(dims.begin(), dims.end()) /= 2;
  return dims;
}

int64_t Maker::Axis(int rank, bool negative) {
  const int64_t axis = random.Below(rank);
  return negative && random.Chance(40) ? axis - rank : axis;
}

Dims Maker::Axes(int rank, bool negative) {
  const int percent = random.Pick({20, 50, 80});
  const bool is_negative = negative && random.Chance(40);
  Dims axes;
  for (int i = 0; i < rank; ++i) {
    if (random.Chance(percent)) axes.push_back(is_negative ? i - rank : i);
  }
  return axes;
}

std::vector<std::string> Maker::Emit(const std::string& op, const std::vector<std::string>& inputs,
                                     const Attributes& attributes, int outputs) {
  if (graph_.nodes.size() >= kMostNodes) return {};
  onnx::NodeProto node;
  node.set_op_type(op);
  node.set_name(absl::StrCat("n", graph_.nodes.size()));
  for (const std::string& name : inputs) node.add_input(name);
  for (const auto& attribute : attributes.protos()) *node.add_attribute() = attribute;
  std::vector<std::string> names;
  for (int i = 0; i < outputs; ++i) {
    names.push_back(absl::StrCat("v", names_++));
    node.add_output(names.back());
  }
  Values trial = values_;
  auto session = OpenNode(runtime_, graph_, node, values_);
  if (!session.ok() || !RunByName(runtime_, **session, trial).ok()) {
    ++refused_;
    return {};
  }
  for (const std::string& name : names) {
    if (trial.at(name).elements() > kMostElements) return {};
  }
  for (const std::string& name : names) values_[name] = trial.at(name);
  graph_.nodes.push_back(node);
  return names;
}

Made MakeGraph(const Runtime& runtime, uint64_t seed, uint64_t number, const MakeOptions& options) {
  return MakeGraph(runtime, Random(seed, number), options);
}

Made MakeGraph(const Runtime& runtime, Random random, const MakeOptions& options) {
  static const std::vector<OperatorRow>& rows = *[] {
    auto* all = new std::vector<OperatorRow>;
    for (const auto& some : {ElementwiseRows(), MoveRows(), ReductionRows(), WindowRows()}) {
      for (const OperatorRow& row : some) all->insert(all->end(), row.weight, row);
    }
    return all;
  }();
  Made made;
  FuzzGraph& graph = made.graph;
  graph.opset = static_cast<int>(random.Between(13, kNewestOpset));
  graph.target = random.Pick(options.targets);
  if (random.Chance(10)) graph.numerics = "exact";
  const Target& target = **FindTarget(graph.target);
  if (random.Chance(15) && target.mil_route()) graph.route = "mil";
  const size_t wanted = random.Between(1, random.Pick({1, 3, 6, kMostNodes}));
  Maker maker(runtime, random, target, graph);
  constexpr int kMostTries = 60;
  for (int i = 0; graph.nodes.size() < wanted && i < kMostTries; ++i) {
    const OperatorRow& row = random.Pick(rows);
    if (row.since <= graph.opset) row.make(maker);
  }
  // Removes leaves of nodes that were dropped.
  std::vector<Leaf> used;
  for (const Leaf& leaf : graph.leaves) {
    const bool is_read = std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
      return std::count(node.input().begin(), node.input().end(), leaf.name) > 0;
    });
    if (is_read) used.push_back(leaf);
  }
  graph.leaves = used;
  for (const auto& node : graph.nodes) {
    if (random.Chance(12)) graph.also_outputs.push_back(node.output(0));
  }
  made.refused = maker.refused();
  return made;
}

}  // namespace anemone::fuzz
