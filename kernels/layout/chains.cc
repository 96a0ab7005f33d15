#include "kernels/layout/chains.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/disjoint_sets.h"
#include "engine/constant.h"
#include "kernels/conv/conv.h"
#include "kernels/shared/permuted.h"
#include "kernels/units/matrix_multiplication.h"

namespace anemone {
namespace {

constexpr int kOutput = -1;  // among readers

bool IsUnit(const Operand& operand) { return operand.source == Operand::Source::kUnit; }

bool Transposes(const Unit& unit) { return static_cast<bool>(unit.kind->run.permutation); }

}  // namespace

Permutation OrderFor(const Dims& out) {
  if (out.h() == 1) return {Axis::kN, Axis::kD, Axis::kW, Axis::kH, Axis::kC};
  return {Axis::kN, Axis::kD, Axis::kW, Axis::kC, Axis::kH};
}

std::optional<LinearLayer> LayerOf(const Network& network, const Unit& unit) {
  std::optional<LinearLayer> layer;
  if (auto factor = FactorOfProduct(unit)) {
    layer = LinearLayer{*std::move(factor)};
  } else if (auto weight = FactorOfLinear(unit)) {
    layer = LinearLayer{*std::move(weight)};
  } else if (const PointwiseKernel kernel = PointwiseKernelOf(unit); kernel.matrix != nullptr) {
    const Dims& x = network.DimsOf(unit.bottoms[0]);
    if (x.n() == 1 || x.d() * x.h() * x.w() != 1) return std::nullopt;
    const auto order =
        kernel.in_major ? math::MatrixOrder::kRowMajor : math::MatrixOrder::kColumnMajor;
    layer = LinearLayer{{*kernel.matrix, kernel.in, kernel.out, order}, nullptr, true};
  }
  if (layer && unit.weights.size() > 1) layer->bias = &unit.weights[1];
  return layer;
}

Chains::Chains(const Network& network, const Target& target, Route route)
    : network_(network),
      target_(target),
      route_(route),
      on_batch_(network.units.size()),
      readers_(network.units.size()) {
  const int count = static_cast<int>(network.units.size());
  layers_.reserve(count);
  for (int i = 0; i < count; ++i) {
    const Unit& unit = network.units[i];
    for (const Operand& operand : unit.bottoms) {
      if (IsUnit(operand)) readers_[operand.index].push_back(i);
    }
    layers_.push_back(LayerOf(network, unit));
    if (!layers_[i] || !layers_[i]->rows_on_batch) continue;
    on_batch_[i] = true;
    const Operand& x = unit.bottoms[0];
    if (IsUnit(x)) on_batch_[x.index] = true;
    if (x.source == Operand::Source::kInput) input_on_batch_.insert(x.index);
  }
  for (const OutputPort& port : network.outputs) {
    if (IsUnit(port.from)) readers_[port.from.index].push_back(kOutput);
  }
  can_.reserve(count);
  for (int i = 0; i < count; ++i) {
    std::string why;
    can_.push_back(CanCarry(i, why));
    if (layers_[i] && !can_[i]) kept_.push_back({network.units[i].name, why});
  }
  FindMoves();
}

void Chains::FindMoves() {
  const int count = static_cast<int>(network_.units.size());
  origin_.reserve(count);
  std::vector<int> transposes(count);  // of a move: those on the way to it
  for (int i = 0; i < count; ++i) {
    const Unit& unit = network_.units[i];
    if (!unit.kind->run.is_view && !Transposes(unit)) {
      origin_.emplace_back(i);
      continue;
    }
    const Operand& x = unit.bottoms[0];
    origin_.push_back(OriginOf(x));
    if (!origin_[i]) continue;
    moves_[*origin_[i]].push_back(i);
    transposes[i] = (Transposes(unit) ? 1 : 0) + (IsUnit(x) ? transposes[x.index] : 0);
    if (transposes[i] > 1) twice_.insert(*origin_[i]);
  }
}

// The key of moves_; nullopt: the value is a constant.
std::optional<int> Chains::OriginOf(const Operand& operand) const {
  if (IsUnit(operand)) return origin_[operand.index];
  if (operand.source == Operand::Source::kInput) return -1 - operand.index;
  return std::nullopt;
}

// The moves of each value that the units make and read.
std::vector<absl::Span<const int>> Chains::MovesAround(absl::Span<const int> units) const {
  std::set<int> origins;
  for (int i : units) {
    if (origin_[i]) origins.insert(*origin_[i]);
    for (const Operand& operand : network_.units[i].bottoms) {
      if (const auto origin = OriginOf(operand)) origins.insert(*origin);
    }
  }
  std::vector<absl::Span<const int>> around;
  for (int origin : origins) {
    const auto moves = moves_.find(origin);
    if (moves != moves_.end()) around.emplace_back(moves->second);
  }
  return around;
}

std::vector<std::vector<int>> Chains::Find() const {
  const int count = static_cast<int>(network_.units.size());
  DisjointSets sets(count);
  for (int i = 0; i < count; ++i) {
    for (const Operand& operand : network_.units[i].bottoms) {
      if (IsUnit(operand) && can_[i] && can_[operand.index]) sets.Join(i, operand.index);
    }
  }
  std::map<int, std::vector<int>> by_root;
  for (int i = 0; i < count; ++i) {
    if (can_[i]) by_root[sets.Find(i)].push_back(i);
  }
  std::vector<std::vector<int>> chains;
  for (auto& [root, units] : by_root) {
    if (std::any_of(units.begin(), units.end(), [&](int i) { return is_layer(i); })) {
      chains.push_back(std::move(units));
    }
  }
  return chains;
}

std::vector<int> Chains::Trimmed(const std::vector<int>& chain) const {
  absl::flat_hash_set<int> inside(chain.begin(), chain.end());
  absl::flat_hash_set<int> read;  // by a unit inside
  for (auto i = chain.rbegin(); i != chain.rend(); ++i) {
    const Unit& unit = network_.units[*i];
    const auto is_inside = [&](const Operand& operand) {
      return IsUnit(operand) && inside.contains(operand.index);
    };
    const Matrices made = MatricesOf({Operand::Source::kUnit, *i});
    const bool moves = made.rows > 1 && made.columns > 1;
    const bool is_elementwise = static_cast<bool>(unit.kind->run.step);
    const bool stays = read.contains(*i) || is_layer(*i) || is_elementwise || !moves ||
                       std::count_if(unit.bottoms.begin(), unit.bottoms.end(), is_inside) != 1;
    if (!stays) {
      inside.erase(*i);
      continue;
    }
    for (const Operand& operand : unit.bottoms) {
      if (IsUnit(operand)) read.insert(operand.index);
    }
  }
  std::vector<int> trimmed;
  std::copy_if(chain.begin(), chain.end(), std::back_inserter(trimmed),
               [&](int i) { return inside.contains(i); });
  return trimmed;
}

std::vector<int> Chains::TouchedBy(absl::Span<const int> units) const {
  std::vector<int> touched(units.begin(), units.end());
  for (absl::Span<const int> moves : MovesAround(units)) {
    touched.insert(touched.end(), moves.begin(), moves.end());
  }
  std::sort(touched.begin(), touched.end());
  touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
  return touched;
}

std::vector<int> Chains::JoinableOf(absl::Span<const int> units) const {
  std::vector<int> joinable;
  std::copy_if(units.begin(), units.end(), std::back_inserter(joinable), [&](int i) {
    return origin_[i] && *origin_[i] != i && twice_.contains(*origin_[i]);
  });
  return joinable;
}

size_t Chains::CountTouched(absl::Span<const int> units) const {
  size_t count = units.size();
  for (absl::Span<const int> moves : MovesAround(units)) count += moves.size();
  return count;
}

bool Chains::IsReadOutside(int unit, absl::Span<const int> inside) const {
  return std::any_of(readers_[unit].begin(), readers_[unit].end(), [&](int reader) {
    return !std::binary_search(inside.begin(), inside.end(), reader);
  });
}

bool Chains::IsOnBatch(const Operand& operand) const {
  if (IsUnit(operand)) return on_batch_[operand.index];
  return operand.source == Operand::Source::kInput && input_on_batch_.contains(operand.index);
}

Matrices Chains::MatricesOf(const Operand& operand) const {
  const Dims& dims = network_.DimsOf(operand);
  if (IsOnBatch(operand)) return {1, dims.n(), dims.c()};
  return {dims.n(), dims.c() * dims.h(), dims.w()};
}

Dims Chains::CarriedDims(const Operand& operand) const {
  const Dims& dims = network_.DimsOf(operand);
  if (IsOnBatch(operand)) return MatricesOf(operand).by_column();
  return Permute(dims, OrderFor(dims));
}

std::optional<Constant> Chains::Permuted(int index, const Permutation& order) const {
  const Constant& constant = network_.constants[index];
  const Dims to = Permute(constant.dims, order);
  if (!IsEngineConstant(constant.tensor.type())) return std::nullopt;
  if (KeepsOrder(constant.dims, order)) return Constant{constant.tensor, to};
  if (constant.dims.n() * constant.dims.d() != 1) return std::nullopt;
  auto made = turned_.find(index);
  if (made == turned_.end()) {
    const int64_t rows = constant.dims.c() * constant.dims.h();
    made = turned_.emplace(index, TransposedMatrix(constant.tensor, rows, constant.dims.w())).first;
  }
  return Constant{made->second, to};
}

std::shared_ptr<const void> Chains::PermutedParams(const Unit& unit,
                                                   const Permutation& order) const {
  if (unit.kind->run.step) return unit.weights.empty() ? unit.params : nullptr;
  return unit.kind->permuted.Or(nullptr, unit.params.get(), order);
}

bool Chains::CanCarry(int index, std::string& why) const {
  const Unit& unit = network_.units[index];
  const Operand self = {Operand::Source::kUnit, index};
  std::vector<Operand> values = unit.bottoms;
  values.push_back(self);
  for (const Operand& value : values) {
    const Dims& dims = network_.DimsOf(value);
    const bool is_image = value.source == Operand::Source::kInput &&
                          network_.inputs[value.index].format != Format::kFloat16;
    if (dims.d() != 1 || is_image) return false;
  }
  if (layers_[index]) {
    const Verdict verdict = JudgeLayer(index);
    if (!verdict.accepted) why = absl::StrCat("the convolution is refused: ", verdict.message);
    return verdict.accepted;
  }
  if (unit.kind->run.is_view) return MatricesOf(unit.bottoms[0]) == MatricesOf(self);
  const Permutation order = OrderFor(unit.dims);
  const std::shared_ptr<const void> params = PermutedParams(unit, order);
  if (params == nullptr) return false;
  std::vector<Bottom> bottoms;
  for (const Operand& operand : unit.bottoms) {
    if (IsOnBatch(operand)) return false;
    Bottom bottom = network_.BottomOf(operand);
    bottom.dims = Permute(bottom.dims, order);
    if (bottom.is_constant() && !Permuted(operand.index, order)) return false;
    bottoms.push_back(bottom);
  }
  if (IsOnBatch(self)) return false;
  Unit carried = unit;
  carried.params = params;
  carried.dims = Permute(unit.dims, order);
  return CheckUnit(carried, bottoms, target_, route_).accepted;
}

Verdict Chains::JudgeLayer(int index) const {
  NetworkBuilder c(target_, route_);
  Operand x = c.AddInput("x", CarriedDims(network_.units[index].bottoms[0]));
  AddConvolution(c, index, x);
  const Network& made = c.network();
  if (!c.ok()) return OwnRefusal(Layer::kCoverage, "", std::string(c.status().message()), "");
  return CheckUnit(made.units[0], made.BottomsOf(made.units[0]), target_, route_);
}

Operand Chains::AddConvolution(NetworkBuilder& c, int index, const Operand& x) const {
  const LinearLayer& layer = *layers_[index];
  return PointwiseConv(c, x, layer.matrix.n, layer.matrix.values,
                       layer.matrix.order == math::MatrixOrder::kRowMajor, layer.bias);
}

}  // namespace anemone
