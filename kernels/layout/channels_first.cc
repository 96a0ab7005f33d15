#include "kernels/layout/channels_first.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/disjoint_sets.h"
#include "engine/constant.h"
#include "engine/network_builder.h"
#include "engine/unit_kind.h"
#include "kernels/conv/conv.h"
#include "kernels/layout/layout_cost.h"
#include "kernels/layout/moves.h"
#include "kernels/shared/permuted.h"
#include "kernels/units/linear.h"
#include "kernels/units/matrix_multiplication.h"
#include "kernels/units/reshape.h"
#include "kernels/units/transpose.h"

namespace anemone {
namespace {

// More chains than this are carried together or not at all, which bounds the time.
constexpr size_t kMostChains = 32;

// A value as a batch of matrices of `rows` rows, K = `columns` elements each.
struct Matrices {
  int64_t n = 1, rows = 1, columns = 1;
  bool operator==(const Matrices&) const = default;
  Dims by_row() const { return MakeDims(n, rows, 1, columns); }
  Dims by_column() const { return MakeDims(n, columns, 1, rows); }
};

// The permutation that carries a unit with this output: the width becomes the channels, the other
// axes follow.
Permutation OrderFor(const Dims& out) {
  if (out.h() == 1) return {Axis::kN, Axis::kD, Axis::kW, Axis::kH, Axis::kC};
  return {Axis::kN, Axis::kD, Axis::kW, Axis::kC, Axis::kH};
}

// A linear layer: its matrix, and its bias or null.
struct LinearLayer {
  ConstantMatrix matrix;
  const Tensor* bias = nullptr;
  bool rows_on_batch = false;  // a convolution of (rows, K, 1, 1)
};

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

// A network, and which of its units can be carried.
class Carrier {
 public:
  Carrier(const Network& network, const Target& target, Route route)
      : network_(network), target_(target), route_(route), on_batch_(network.units.size()) {
    for (size_t i = 0; i < network.units.size(); ++i) {
      layers_.push_back(LayerOf(network, network.units[i]));
      if (!layers_[i] || !layers_[i]->rows_on_batch) continue;
      on_batch_[i] = true;
      const Operand& x = network.units[i].bottoms[0];
      if (x.source == Operand::Source::kUnit) on_batch_[x.index] = true;
      if (x.source == Operand::Source::kInput) input_on_batch_.insert(x.index);
    }
    for (size_t i = 0; i < network.units.size(); ++i) {
      std::string why;
      can_.push_back(CanCarry(static_cast<int>(i), why));
      if (layers_[i] && !can_[i]) kept_.push_back({network.units[i].name, why});
    }
  }

  const std::vector<KeptLayer>& kept() const { return kept_; }
  bool is_layer(int unit) const { return layers_[unit].has_value(); }

  // The chains: connected units that can be carried, with at least one linear layer.
  std::vector<std::vector<int>> Chains() const {
    const int count = static_cast<int>(network_.units.size());
    DisjointSets sets(count);
    for (int i = 0; i < count; ++i) {
      for (const Operand& operand : network_.units[i].bottoms) {
        const bool joins =
            operand.source == Operand::Source::kUnit && can_[i] && can_[operand.index];
        if (joins) sets.Join(i, operand.index);
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

  // The chain without the units at its ends that read one value of it, elementwise units aside.
  // Several of them may read the same value, such as the slices of a packed query, key and value:
  // it is then transposed once.
  std::vector<int> Trimmed(const std::vector<int>& chain) const {
    std::vector<bool> inside(network_.units.size());
    for (int i : chain) inside[i] = true;
    std::vector<bool> is_read(network_.units.size());  // by a unit inside
    for (auto i = chain.rbegin(); i != chain.rend(); ++i) {
      const Unit& unit = network_.units[*i];
      const auto is_inside = [&](const Operand& operand) {
        return operand.source == Operand::Source::kUnit && inside[operand.index];
      };
      const Matrices made = MatricesOf({Operand::Source::kUnit, *i});
      const bool moves = made.rows > 1 && made.columns > 1;
      const bool is_elementwise = static_cast<bool>(unit.kind->run.step);
      inside[*i] = is_read[*i] || is_layer(*i) || is_elementwise || !moves ||
                   std::count_if(unit.bottoms.begin(), unit.bottoms.end(), is_inside) != 1;
      if (!inside[*i]) continue;
      for (const Operand& operand : unit.bottoms) {
        if (operand.source == Operand::Source::kUnit) is_read[operand.index] = true;
      }
    }
    std::vector<int> trimmed;
    std::copy_if(chain.begin(), chain.end(), std::back_inserter(trimmed),
                 [&](int i) { return inside[i]; });
    return trimmed;
  }

  // The network with these units carried, cleaned up; nullopt if that fails.
  std::optional<Network> Carry(absl::Span<const int> units) const;

 private:
  friend class Rewriter;

  bool IsOnBatch(const Operand& operand) const {
    if (operand.source == Operand::Source::kUnit) return on_batch_[operand.index];
    return operand.source == Operand::Source::kInput && input_on_batch_.contains(operand.index);
  }

  Matrices MatricesOf(const Operand& operand) const {
    const Dims& dims = network_.DimsOf(operand);
    if (IsOnBatch(operand)) return {1, dims.n(), dims.c()};
    return {dims.n(), dims.c() * dims.h(), dims.w()};
  }

  // The dims of the value when it is carried.
  Dims CarriedDims(const Operand& operand) const {
    const Dims& dims = network_.DimsOf(operand);
    if (IsOnBatch(operand)) return MatricesOf(operand).by_column();
    return Permute(dims, OrderFor(dims));
  }

  // The constant with its axes permuted; nullopt if that is not known.
  std::optional<Constant> Permuted(int index, const Permutation& order) const {
    const Constant& constant = network_.constants[index];
    const Dims to = Permute(constant.dims, order);
    if (!IsEngineConstant(constant.tensor.type())) return std::nullopt;
    if (KeepsOrder(constant.dims, order)) return Constant{constant.tensor, to};
    if (constant.dims.n() * constant.dims.d() != 1) return std::nullopt;
    auto made = turned_.find(index);
    if (made == turned_.end()) {
      const int64_t rows = constant.dims.c() * constant.dims.h();
      made =
          turned_.emplace(index, TransposedMatrix(constant.tensor, rows, constant.dims.w())).first;
    }
    return Constant{made->second, to};
  }

  std::shared_ptr<const void> PermutedParams(const Unit& unit, const Permutation& order) const {
    if (unit.kind->run.step) return unit.weights.empty() ? unit.params : nullptr;
    return unit.kind->permuted.Or(nullptr, unit.params.get(), order);
  }

  bool CanCarry(int index, std::string& why) const {
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

  Verdict JudgeLayer(int index) const {
    NetworkBuilder c(target_, route_);
    Operand x = c.AddInput("x", CarriedDims(network_.units[index].bottoms[0]));
    AddConvolution(c, index, x);
    const Network& made = c.network();
    if (!c.ok()) return OwnRefusal(Layer::kCoverage, "", std::string(c.status().message()), "");
    return CheckUnit(made.units[0], made.BottomsOf(made.units[0]), target_, route_);
  }

  Operand AddConvolution(NetworkBuilder& c, int index, const Operand& x) const {
    const LinearLayer& layer = *layers_[index];
    return PointwiseConv(c, x, layer.matrix.n, layer.matrix.values,
                         layer.matrix.order == math::MatrixOrder::kRowMajor, layer.bias);
  }

  const Network& network_;
  const Target& target_;
  const Route route_;
  std::vector<std::optional<LinearLayer>> layers_;  // by unit
  std::vector<bool> on_batch_;                      // by unit: the rows of the value are on N
  std::set<int> input_on_batch_;
  std::vector<bool> can_;  // by unit
  std::vector<KeptLayer> kept_;
  mutable std::map<int, Tensor> turned_;  // by constant
};

// Makes the network in which some units are carried.
class Rewriter {
 public:
  Rewriter(const Carrier& from, absl::Span<const int> units)
      : from_(from),
        network_(from.network_),
        c_(from.target_, from.route_),
        inside_(network_.units.size()),
        plain_(network_.units.size()),
        carried_(network_.units.size()),
        carried_input_(network_.inputs.size()) {
    for (int i : units) inside_[i] = true;
  }

  std::optional<Network> Rewrite() {
    for (const InputPort& port : network_.inputs) c_.AddInput(port.name, port.dims, port.format);
    for (const Constant& constant : network_.constants) {
      c_.AddConstant(constant.tensor, constant.dims);
    }
    for (int i = 0; i < static_cast<int>(network_.units.size()); ++i) {
      const Unit& unit = network_.units[i];
      if (inside_[i]) {
        carried_[i] = AddCarried(i);
        continue;
      }
      std::vector<Operand> bottoms = unit.bottoms;
      for (Operand& bottom : bottoms) bottom = Plain(bottom);
      plain_[i] = c_.AddUnit(*unit.kind, unit.params, std::move(bottoms), unit.weights, unit.name);
    }
    for (const OutputPort& port : network_.outputs) c_.AddOutput(port.name, Plain(port.from));
    if (!c_.ok()) return std::nullopt;
    Network made = c_.TakeNetwork();
    for (auto& [index, name] : named_) made.units[index].name = name;
    CleanUp(made);
    made = JoinTransposes(made, from_.target_, from_.route_);
    CleanUp(made);
    return made;
  }

 private:
  // The value as it was.
  Operand Plain(const Operand& operand) {
    if (operand.source != Operand::Source::kUnit) return operand;
    std::optional<Operand>& made = plain_[operand.index];
    if (!made) {
      const Matrices matrices = from_.MatricesOf(operand);
      Operand x = ReshapeToDims(c_, *carried_[operand.index], matrices.by_column());
      x = SwapAxes(c_, x, Axis::kC, Axis::kW);
      made = ReshapeToDims(c_, x, network_.DimsOf(operand));
    }
    return *made;
  }

  // The value carried, under CarriedDims().
  Operand Carried(const Operand& operand) {
    const bool is_unit = operand.source == Operand::Source::kUnit;
    std::optional<Operand>& made =
        is_unit ? carried_[operand.index] : carried_input_[operand.index];
    if (!made) {
      Operand x = is_unit ? *plain_[operand.index] : operand;
      x = ReshapeToDims(c_, x, from_.MatricesOf(operand).by_row());
      x = SwapAxes(c_, x, Axis::kC, Axis::kW);
      made = ReshapeToDims(c_, x, from_.CarriedDims(operand));
    }
    return *made;
  }

  Operand AddCarried(int index) {
    const Unit& unit = network_.units[index];
    const Operand self = {Operand::Source::kUnit, index};
    const Dims to = from_.CarriedDims(self);
    if (from_.is_layer(index)) {
      Operand x = CarriedAs(unit.bottoms[0], from_.CarriedDims(unit.bottoms[0]));
      Operand y = from_.AddConvolution(c_, index, x);
      named_.emplace_back(y.index, unit.name);
      return ReshapeToDims(c_, y, to);
    }
    if (unit.kind->run.is_view) return CarriedAs(unit.bottoms[0], to);
    const Permutation order = OrderFor(unit.dims);
    std::vector<Operand> bottoms;
    for (const Operand& operand : unit.bottoms) {
      bottoms.push_back(CarriedAs(operand, Permute(network_.DimsOf(operand), order)));
    }
    return c_.AddUnit(*unit.kind, from_.PermutedParams(unit, order), std::move(bottoms),
                      unit.weights, unit.name);
  }

  // The value carried under these dims, whose elements are in the same order.
  Operand CarriedAs(const Operand& operand, const Dims& dims) {
    if (operand.source != Operand::Source::kConstant) {
      return ReshapeToDims(c_, Carried(operand), dims);
    }
    const Dims& from = network_.DimsOf(operand);
    std::optional<Constant> constant = from_.Permuted(operand.index, OrderFor(from));
    if (!constant) return c_.Fail(absl::InternalError("a constant that cannot be permuted"));
    return c_.AddConstant(constant->tensor, dims);
  }

  const Carrier& from_;
  const Network& network_;
  NetworkBuilder c_;
  std::vector<bool> inside_;                             // by unit: carried
  std::vector<std::optional<Operand>> plain_, carried_;  // by unit
  std::vector<std::optional<Operand>> carried_input_;
  std::vector<std::pair<int, std::string>> named_;  // new units that replace one
};

std::optional<Network> Carrier::Carry(absl::Span<const int> units) const {
  return Rewriter(*this, units).Rewrite();
}

struct Trial {
  std::optional<Network> network;  // if it is better
  std::string why_not;
};

class Decision {
 public:
  Decision(const Network& network, const Target& target, Route route)
      : target_(target),
        route_(route),
        costs_(LayoutCost::For(target)),
        units_(CountUnits(network)),
        cost_(costs_ ? costs_->Of(network) : 0) {}

  Trial Try(const Carrier& carrier, absl::Span<const int> chain) const {
    std::optional<Network> made = carrier.Carry(chain);
    if (!made) return {std::nullopt, "the chain cannot be written in that layout"};
    const NetworkVerdict judged = CheckNetwork(*made, target_, route_);
    if (!judged.verdict.accepted) {
      const char* type = judged.unit < 0 ? "port" : made->units[judged.unit].kind->type;
      return {std::nullopt,
              absl::StrCat("in that layout, ", type, " is refused: ", judged.verdict.message)};
    }
    const int64_t more = CountUnits(*made) - units_;
    if (more > 0) {
      return {std::nullopt, absl::StrCat("with transposes, its chain would have ", more,
                                         more == 1 ? " unit more" : " units more")};
    }
    if (costs_ && costs_->Of(*made) >= cost_) {
      return {std::nullopt, "by the target's rates, its chain would take longer"};
    }
    return {std::move(made), ""};
  }

 private:
  const Target& target_;
  const Route route_;
  const std::optional<LayoutCost> costs_;
  const int64_t units_;
  const double cost_;
};

// Names the units that have no name, after the next unit that has one, as JoinNetwork() does
// (partitioner/segments.h): the name of a value, '#' and a number.
void NameUnits(Network& network) {
  absl::flat_hash_set<std::string> used;
  for (const Unit& unit : network.units) used.insert(unit.name);
  std::string base;
  int number = 0;
  const auto visit = [&](Unit& unit) {
    if (!unit.name.empty()) {
      base = unit.name.substr(0, unit.name.rfind('#'));
      number = 0;
      return;
    }
    if (base.empty()) return;
    while (!used.insert(absl::StrCat(base, "#", number)).second) ++number;
    unit.name = absl::StrCat(base, "#", number);
  };
  std::for_each(network.units.rbegin(), network.units.rend(), visit);
  std::for_each(network.units.begin(), network.units.end(), visit);
}

// Carries the chains that are better carried. False if there are none; then `kept` has all linear
// layers that are products.
bool CarrySome(Network& network, const Target& target, Route route, std::vector<KeptLayer>& kept) {
  const Carrier carrier(network, target, route);
  std::vector<std::vector<int>> chains = carrier.Chains();
  kept = carrier.kept();
  if (chains.size() > kMostChains) {
    std::vector<int> all;
    for (const std::vector<int>& chain : chains) all.insert(all.end(), chain.begin(), chain.end());
    std::sort(all.begin(), all.end());
    chains = {std::move(all)};
  }
  const Decision decision(network, target, route);
  const auto keep = [&](absl::Span<const int> chain, const std::string& why) {
    for (int i : chain) {
      if (carrier.is_layer(i)) kept.push_back({network.units[i].name, why});
    }
  };
  std::vector<int> carried;
  std::optional<Network> made;
  for (const std::vector<int>& chain : chains) {
    std::vector<int> taken = carrier.Trimmed(chain);
    Trial trial = decision.Try(carrier, taken);
    if (!trial.network && taken != chain) {
      taken = chain;
      trial = decision.Try(carrier, taken);
    }
    if (!trial.network) {
      keep(chain, trial.why_not);
      continue;
    }
    carried.insert(carried.end(), taken.begin(), taken.end());
    made = std::move(trial.network);
  }
  if (carried.empty()) return false;
  if (chains.size() > 1) {
    std::sort(carried.begin(), carried.end());
    Trial trial = decision.Try(carrier, carried);
    if (!trial.network) {
      keep(carried, trial.why_not);
      return false;
    }
    made = std::move(trial.network);
  }
  network = *std::move(made);
  NameUnits(network);
  return true;
}

}  // namespace

std::vector<KeptLayer> CarryChannelsFirst(Network& network, const Target& target, Route route) {
  const auto is_layer = [&](const Unit& unit) { return LayerOf(network, unit).has_value(); };
  if (std::none_of(network.units.begin(), network.units.end(), is_layer)) return {};
  // What is carried can make the transposes of another chain unnecessary.
  constexpr int kMostRounds = 8;
  std::vector<KeptLayer> kept;
  for (int round = 0; round < kMostRounds; ++round) {
    if (!CarrySome(network, target, route, kept)) break;
  }
  return kept;
}

}  // namespace anemone
