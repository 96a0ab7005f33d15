#include "provider/weights/derived_parts.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/compressed.h"
#include "base/fp16.h"
#include "base/memory_limit.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "importer/elements.h"
#include "importer/operators/beyond_ranges.h"
#include "importer/operators/float_ranges.h"
#include "importer/operators/intervals.h"
#include "partitioner/planner.h"
#include "partitioner/unit_names.h"
#include "provider/loaded_model.h"
#include "provider/weight_check.h"
#include "provider/weights/part_finder.h"
#include "provider/weights/same_plan.h"

namespace anemone {
namespace {

bool IsWeight(const Tensor& tensor) {
  return tensor.elements() > 0 && (IsFloating(tensor.type()) || IsCodeType(tensor.type()));
}

// Units that only change the layout of computed values depend on what is around a part.
bool Counts(const Unit& unit) {
  const bool is_layout = unit.kind->run.is_view || unit.kind->run.permutation;
  return !is_layout ||
         std::any_of(unit.bottoms.begin(), unit.bottoms.end(), [](const Operand& bottom) {
           return bottom.source == Operand::Source::kConstant;
         });
}

// The parts together.
ModelPart Joined(absl::Span<const DerivedPart* const> parts) {
  ModelPart all;
  std::set<NodeId> nodes;
  std::map<std::string, const ModelPart::Input*> inputs;
  std::set<std::string> outputs;
  for (const DerivedPart* part : parts) {
    nodes.insert(part->nodes.nodes.begin(), part->nodes.nodes.end());
    for (const ModelPart::Input& input : part->nodes.inputs) inputs.emplace(input.name, &input);
    outputs.insert(part->nodes.outputs.begin(), part->nodes.outputs.end());
  }
  all.nodes.assign(nodes.begin(), nodes.end());
  for (const auto& [name, input] : inputs) {
    if (outputs.count(name) == 0) all.inputs.push_back(*input);
  }
  all.outputs.assign(outputs.begin(), outputs.end());
  return all;
}

absl::StatusOr<Planned> PlanParts(absl::Span<const DerivedPart* const> parts,
                                  const PartImporter& importer) {
  Planned made;
  const ModelPart joined = Joined(parts);
  ANEMONE_ASSIGN_OR_RETURN(made.model, importer.import(&joined));
  ANEMONE_ASSIGN_OR_RETURN(made.plan, MakePlan(made.model, importer.planning));
  return made;
}

std::vector<std::string> ValuesBeyond(const Graph& graph) {
  const FloatFacts facts = FloatFactsOf(graph, IntegerRangesOf(graph));
  const BeyondFacts beyond(graph, facts);
  std::vector<std::string> names;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (!value.constant && IsFloating(value.type) && beyond.IsBeyond(static_cast<ValueId>(v))) {
      names.push_back(value.name);
    }
  }
  return names;
}

struct NamedUnit {
  const Network* network = nullptr;
  const Unit* unit = nullptr;
};
using NamedUnits = absl::flat_hash_map<absl::string_view, NamedUnit>;

NamedUnits UnitsOf(const Plan& plan) {
  NamedUnits units;
  for (const Segment& segment : plan.segments) {
    for (const Unit& unit : segment.network.units) {
      if (Counts(unit)) units.emplace(unit.name, NamedUnit{&segment.network, &unit});
    }
  }
  return units;
}

// The units differ in the elements of constants, and in the names of what they read.
bool IsAlike(const NamedUnit& a, const NamedUnit& b) {
  const std::vector<Operand>&x = a.unit->bottoms, &y = b.unit->bottoms;
  if (!CheckSameParams(*a.unit, *b.unit).ok() || x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    const bool is_constant = x[i].source == Operand::Source::kConstant;
    if (is_constant != (y[i].source == Operand::Source::kConstant)) return false;
    if (a.network->DimsOf(x[i]) != b.network->DimsOf(y[i])) return false;
  }
  return true;
}

bool HasEqualConstants(const NamedUnit& a, const NamedUnit& b) {
  const std::vector<Tensor>&x = a.unit->weights, &y = b.unit->weights;
  if (!std::equal(x.begin(), x.end(), y.begin(), y.end(), SameTensor)) return false;
  for (size_t i = 0; i < a.unit->bottoms.size(); ++i) {
    const Operand &of_a = a.unit->bottoms[i], &of_b = b.unit->bottoms[i];
    if (of_a.source != Operand::Source::kConstant) continue;
    if (!SameTensor(a.network->constants[of_a.index].tensor,
                    b.network->constants[of_b.index].tensor)) {
      return false;
    }
  }
  return true;
}

NamedUnit UnitAt(const Plan& plan, const ConstantPlace& place) {
  const Network& network = plan.segments[place.segment].network;
  return {&network, &network.units[place.index]};
}

// Whether a plain weight can have this value, with the plan as it is: the rule fp16-range
// (kernels/fp16_range.h) says nothing about a float32 constant of a layer that is neither too large
// for fp16 nor has only very small elements.
bool FitsInPlace(const PlacedWeight& placed, const Tensor& tensor) {
  if (tensor.type() != DataType::kFloat || tensor.dims() != placed.dims) return false;
  const FloatLimits limits = LimitsOf(tensor);
  const float magnitude = std::max(-limits.low, limits.high);
  return !limits.has_nan && magnitude <= fp16::kLargest && magnitude >= fp16::kSmallestNormal;
}

// Constants of the networks, each with the units that read it.
using ConstantReaders = std::map<ConstantPlace, std::set<ConstantPlace>>;
ConstantReaders ReadersOfConstants(const Plan& plan) {
  ConstantReaders readers;
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Network& network = plan.segments[s].network;
    for (size_t i = 0; i < network.units.size(); ++i) {
      for (const Operand& bottom : network.units[i].bottoms) {
        if (bottom.source != Operand::Source::kConstant) continue;
        readers[{static_cast<int>(s), bottom.index}].insert(
            {static_cast<int>(s), static_cast<int>(i)});
      }
    }
  }
  return readers;
}

bool AreClosed(const std::vector<ConstantPlace>& units, const Plan& plan,
               const ConstantReaders& readers) {
  const std::set<ConstantPlace> own(units.begin(), units.end());
  return std::all_of(own.begin(), own.end(), [&](const ConstantPlace& place) {
    const std::vector<Operand>& bottoms = UnitAt(plan, place).unit->bottoms;
    return std::all_of(bottoms.begin(), bottoms.end(), [&](const Operand& bottom) {
      if (bottom.source != Operand::Source::kConstant) return true;
      const std::set<ConstantPlace>& read = readers.at({place.segment, bottom.index});
      return std::includes(own.begin(), own.end(), read.begin(), read.end());
    });
  });
}

// Makes parts of nodes around weights, and takes those that are proven.
class PartMaker {
 public:
  PartMaker(const Graph& as_read, const Model& model, const Plan& plan, const WeightPlaces& plain)
      : file_(as_read), plan_(plan), finder_(as_read, model, plan) {
    AddParts(plain, UnitsByEntry(model, plain));
  }

  // The CPU segments that read rows of weights, of which all else is in proven parts.
  std::map<std::string, std::vector<int>> TablesFor(const std::vector<DerivedPart>& proven) const {
    std::set<absl::string_view> in_parts;
    for (const DerivedPart& part : proven) {
      in_parts.insert(part.weights.begin(), part.weights.end());
    }
    std::map<std::string, std::vector<int>> tables;
    for (const Table& table : tables_) {
      if (table.is_all || in_parts.count(table.weight) > 0) tables[table.weight] = table.segments;
    }
    return tables;
  }

  std::vector<DerivedPart> Proven(const PartImporter& importer) {
    std::vector<const DerivedPart*> all;
    for (const auto& [nodes, part] : parts_) all.push_back(&part);
    if (all.empty()) return {};
    const absl::StatusOr<Planned> made = PlanParts(all, importer);
    if (!made.ok()) return {};
    const NamedUnits before = UnitsOf(plan_), now = UnitsOf(made->plan);
    const UnitNames names(made->model, made->plan);
    std::set<OriginId> wrong;  // of nodes that have other constants in the parts
    for (const auto& [name, unit] : now) {
      const auto same = before.find(name);
      if (same != before.end() && IsAlike(unit, same->second) &&
          HasEqualConstants(unit, same->second)) {
        continue;
      }
      const Origin* origin = names.Find(name);
      if (origin == nullptr) return {};
      wrong.insert(static_cast<OriginId>(origin - made->model.origins.data()));
    }
    const auto is_wrong = [&](NodeId id) {
      const std::vector<OriginId>& origins = file_.nodes[id].origins;
      return std::any_of(origins.begin(), origins.end(),
                         [&](OriginId origin) { return wrong.count(origin) > 0; });
    };
    const ConstantReaders readers = ReadersOfConstants(plan_);
    std::vector<DerivedPart> proven;
    for (auto& [nodes, part] : parts_) {
      const bool is_proven =
          AreClosed(part.units, plan_, readers) &&
          std::none_of(nodes.begin(), nodes.end(), is_wrong) &&
          std::all_of(part.units.begin(), part.units.end(), [&](const ConstantPlace& place) {
            return now.contains(UnitAt(plan_, place).unit->name);
          });
      if (is_proven) proven.push_back(std::move(part));
    }
    return proven;
  }

 private:
  struct Table {
    std::string weight;
    std::vector<int> segments;
    bool is_all = false;  // nothing else reads it
  };

  // By entry of the plan: the units whose constants are not plain.
  std::map<int, std::vector<ConstantPlace>> UnitsByEntry(const Model& model,
                                                         const WeightPlaces& plain) const {
    std::map<int, std::vector<ConstantPlace>> units;
    std::set<ConstantPlace> held, operands;
    for (const auto& [name, weight] : plain.weights()) {
      held.insert(weight.units.begin(), weight.units.end());
      operands.insert(weight.operands.begin(), weight.operands.end());
    }
    const auto is_plain = [&](const ConstantPlace& place) {
      const std::vector<Operand>& bottoms = UnitAt(plan_, place).unit->bottoms;
      return held.count(place) > 0 ||
             std::any_of(bottoms.begin(), bottoms.end(), [&](const Operand& bottom) {
               return bottom.source == Operand::Source::kConstant &&
                      operands.count({place.segment, bottom.index}) > 0;
             });
    };
    const UnitNames names(model, plan_);
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      const Network& network = plan_.segments[s].network;
      for (size_t i = 0; i < network.units.size(); ++i) {
        const ConstantPlace place{static_cast<int>(s), static_cast<int>(i)};
        if (!Counts(network.units[i]) || is_plain(place)) continue;
        const Origin* origin = names.Find(network.units[i].name);
        if (origin == nullptr) continue;
        const auto id = static_cast<OriginId>(origin - model.origins.data());
        units[finder_.EntryOf(id)].push_back(place);
      }
    }
    return units;
  }

  void AddParts(const WeightPlaces& plain,
                const std::map<int, std::vector<ConstantPlace>>& units_of) {
    for (size_t v = 0; v < file_.values.size(); ++v) {
      const Value& value = file_.values[v];
      if (!value.constant || !IsWeight(*value.constant)) continue;
      if (plain.Find(value.name) != nullptr) continue;
      std::optional<PartFinder::Around> around = finder_.Find(static_cast<ValueId>(v));
      if (!around) continue;
      const std::vector<NodeId>& nodes = around->nodes.nodes;
      if (!around->tables.empty()) {
        tables_.push_back({value.name, std::move(around->tables), nodes.empty()});
      }
      if (nodes.empty()) continue;
      DerivedPart& part = parts_[nodes];
      part.weights.push_back(value.name);
      if (part.weights.size() > 1) continue;
      part.has_bounds = around->has_bounds;
      std::set<int> entries;
      for (NodeId id : nodes) {
        for (OriginId origin : file_.nodes[id].origins) entries.insert(finder_.EntryOf(origin));
      }
      for (int entry : entries) {
        const auto found = units_of.find(entry);
        if (found == units_of.end()) continue;
        part.units.insert(part.units.end(), found->second.begin(), found->second.end());
      }
      part.nodes = std::move(around->nodes);
    }
  }

  const Graph& file_;
  const Plan& plan_;
  const PartFinder finder_;
  std::map<std::vector<NodeId>, DerivedPart> parts_;  // by their nodes
  std::vector<Table> tables_;
};

}  // namespace

PartImporter PartImporterOf(const LoadSetup& setup, const ImportOptions& importing,
                            std::shared_ptr<const Model>& as_read) {
  PartImporter importer{.import = {}, .planning = setup.planning};
  importer.planning.policy.aim = Policy::Aim::kMaxEngine;  // the nodes were put on the engine
  importer.import = [&setup, &as_read, importing](const ModelPart* part) -> absl::StatusOr<Model> {
    const MemoryLimit memory(setup.settings.memory_limit);
    const ModelLimits limits(setup.settings.limits);
    ImportOptions options = importing;
    options.find_sizes = false;
    if (part == nullptr) return setup.import(options);
    if (as_read == nullptr) {
      ImportOptions reading = options;
      reading.only_read = true;
      ANEMONE_ASSIGN_OR_RETURN(Model read, setup.import(reading));
      as_read = std::make_shared<const Model>(std::move(read));
    }
    options.weights = setup.new_weights;
    return ImportPart(*as_read, *part, options);
  };
  return importer;
}

DerivedWeights FindDerivedWeights(const Graph& as_read, const Model& model, const Plan& plan,
                                  const WeightPlaces& plain, const PartImporter& importer) {
  DerivedWeights derived;
  if (HasLoops(plan)) return derived;
  PartMaker maker(as_read, model, plan, plain);
  derived.parts = maker.Proven(importer);
  derived.tables = maker.TablesFor(derived.parts);
  derived.beyond = ValuesBeyond(model.graph);
  return derived;
}

bool HasUnitsOf(const Plan& plan, const std::vector<DerivedPart>& parts) {
  const auto is_there = [&](const ConstantPlace& place) {
    return place.segment < static_cast<int>(plan.segments.size()) &&
           place.index < static_cast<int>(plan.segments[place.segment].network.units.size());
  };
  const ConstantReaders readers = ReadersOfConstants(plan);
  return std::all_of(parts.begin(), parts.end(), [&](const DerivedPart& part) {
    return std::all_of(part.units.begin(), part.units.end(), is_there) &&
           AreClosed(part.units, plan, readers);
  });
}

std::optional<DerivedConstants> DeriveConstants(const NewWeights& changed,
                                                const WeightPlaces& places,
                                                const PartImporter& importer, const Plan& plan) {
  DerivedConstants derived;
  std::set<const DerivedPart*> found;
  bool has_bounds = false;
  for (const auto& [name, tensor] : changed) {
    if (const PlacedWeight* placed = places.Find(name)) {
      if (!FitsInPlace(*placed, tensor)) return std::nullopt;
      continue;
    }
    const DerivedPart* part = places.FindPart(name);
    const bool is_table = places.derived().tables.count(name) > 0;
    if (part == nullptr && !is_table) return std::nullopt;
    if (part != nullptr) found.insert(part);
    if (is_table) derived.tables.insert(name);
    has_bounds = has_bounds || is_table || part->has_bounds;
  }
  if (has_bounds) {
    const absl::StatusOr<Model> whole = importer.import(nullptr);
    if (!whole.ok() || ValuesBeyond(whole->graph) != places.derived().beyond) return std::nullopt;
  }
  if (found.empty()) return derived;
  const std::vector<const DerivedPart*> parts(found.begin(), found.end());
  const absl::StatusOr<Planned> made = PlanParts(parts, importer);
  if (!made.ok()) return std::nullopt;
  const NamedUnits before = UnitsOf(plan), now = UnitsOf(made->plan);
  for (const auto& [name, unit] : now) {
    const auto same = before.find(name);
    if (same == before.end() || !IsAlike(unit, same->second)) return std::nullopt;
  }
  std::set<ConstantPlace> units;
  for (const DerivedPart* part : parts) units.insert(part->units.begin(), part->units.end());
  for (const ConstantPlace& place : units) {
    const Unit& unit = *UnitAt(plan, place).unit;
    const auto found = now.find(unit.name);
    if (found == now.end()) return std::nullopt;
    const auto& [network, made_unit] = found->second;
    if (!made_unit->weights.empty()) {
      derived.of_units[place.segment].units.push_back({place.index, made_unit->weights});
    }
    for (size_t i = 0; i < unit.bottoms.size(); ++i) {
      if (unit.bottoms[i].source != Operand::Source::kConstant) continue;
      derived.of_units[place.segment].operands.push_back(
          {unit.bottoms[i].index, network->constants[made_unit->bottoms[i].index].tensor});
    }
  }
  return derived;
}

}  // namespace anemone
