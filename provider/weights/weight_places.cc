#include "provider/weights/weight_places.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "partitioner/unit_names.h"
#include "provider/weights/derived_parts.h"

namespace anemone {
namespace {

// Where the elements of a tensor are. Two tensors with the same storage are the same initializer.
using Storage = std::pair<const std::byte*, size_t>;

std::optional<Storage> StorageOf(const Tensor& tensor) {
  if (tensor.compressed() != nullptr || tensor.is_fill() || tensor.elements() == 0) {
    return std::nullopt;
  }
  return Storage(tensor.bytes().data(), tensor.bytes().size());
}

bool IsAny(const Node& node, std::initializer_list<absl::string_view> ops) {
  return node.domain.empty() && std::find(ops.begin(), ops.end(), node.op_type) != ops.end();
}

class Finder {
 public:
  Finder(const Graph& as_read, const Model& model, const Plan& plan)
      : file_(as_read),
        graph_(model.graph),
        plan_(plan),
        file_readers_(ConsumersOf(as_read)),
        readers_(ConsumersOf(model.graph)),
        on_engine_(graph_.nodes.size()) {
    for (const Segment& segment : plan.segments) {
      for (NodeId id : segment.nodes) on_engine_[id] = segment.placement == Placement::kEngine;
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (OriginId origin : graph_.nodes[i].origins) {
        nodes_of_[origin].push_back(static_cast<NodeId>(i));
      }
    }
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      values_.emplace(graph_.values[v].name, static_cast<ValueId>(v));
    }
    PlaceTensors(UnitNames(model, plan), model);
  }

  std::map<std::string, PlacedWeight> Find() const {
    std::map<std::string, PlacedWeight> found;
    for (size_t v = 0; v < file_.values.size(); ++v) {
      const Value& value = file_.values[v];
      if (!value.constant || !Accepts(static_cast<ValueId>(v))) continue;
      const Places& places = places_.at(*StorageOf(*value.constant));
      found[value.name] = {value.constant->dims(), places.units, places.operands};
    }
    return found;
  }

  // The name of the initializer with this storage.
  const std::string& NameOf(const Tensor& tensor) const {
    return file_.values[places_.at(*StorageOf(tensor)).initializer].name;
  }

 private:
  struct Places {
    ValueId initializer = kNone;  // of the file
    bool is_shared = false;       // by several initializers
    std::vector<ConstantPlace> units, operands;
  };

  // Finds the initializers in the networks, and the nodes for which something was computed.
  void PlaceTensors(const UnitNames& names, const Model& model) {
    for (size_t v = 0; v < file_.values.size(); ++v) {
      if (!file_.values[v].constant) continue;
      const auto storage = StorageOf(*file_.values[v].constant);
      if (!storage) continue;
      const auto [place, is_new] = places_.try_emplace(*storage);
      place->second.is_shared = !is_new;
      place->second.initializer = static_cast<ValueId>(v);
    }
    for (size_t s = 0; s < plan_.segments.size(); ++s) {
      const Network& network = plan_.segments[s].network;
      std::vector<int> reads(network.constants.size());
      for (size_t i = 0; i < network.units.size(); ++i) {
        const Unit& unit = network.units[i];
        const ConstantPlace here{static_cast<int>(s), static_cast<int>(i)};
        bool is_plain = true;
        for (const Tensor& weight : unit.weights) {
          Places* places = PlacesOf(weight);
          is_plain = is_plain && places != nullptr;
          if (places != nullptr) places->units.push_back(here);
        }
        size_t operands = 0;
        for (const Operand& bottom : unit.bottoms) {
          if (bottom.source != Operand::Source::kConstant) continue;
          ++operands;
          const ConstantPlace operand{static_cast<int>(s), bottom.index};
          Places* places = PlacesOf(network.constants[bottom.index].tensor);
          is_plain = is_plain && places != nullptr && ++reads[bottom.index] == 1;
          if (places != nullptr) places->operands.push_back(operand);
        }
        if (operands > 1 || (operands == 1 && !unit.weights.empty())) is_plain = false;
        if (is_plain) continue;
        const Origin* origin = names.Find(unit.name);
        if (origin != nullptr) {
          computed_.insert(static_cast<OriginId>(origin - model.origins.data()));
        } else {
          is_unknown_ = true;
        }
      }
      for (const OutputPort& port : network.outputs) {
        if (port.from.source == Operand::Source::kConstant) is_unknown_ = true;
      }
    }
    // What is true of the origin that names an entry is true of all its nodes.
    for (const PlanEntry& entry : plan_.entries) {
      if (!computed_.contains(entry.shown)) continue;
      computed_.insert(entry.origins.begin(), entry.origins.end());
    }
  }

  Places* PlacesOf(const Tensor& tensor) {
    const auto storage = StorageOf(tensor);
    if (!storage) return nullptr;
    const auto found = places_.find(*storage);
    return found == places_.end() ? nullptr : &found->second;
  }

  bool IsConstant(ValueId v) const { return v != kNone && graph_.values[v].constant.has_value(); }

  // An operation with a constant that a pass folds into a layer beside it, for some elements of
  // their constants (importer/passes/fold_affine.cc).
  bool MayFold(const Node& node) const {
    return IsAny(node, {"BatchNormalization", "Mul", "Div", "Add", "Sub"}) &&
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return IsConstant(v); });
  }

  const Node* ProducerOf(ValueId v) const {
    if (v == kNone || graph_.values[v].producer == kNone) return nullptr;
    return &graph_.nodes[graph_.values[v].producer];
  }

  bool IsAlone(const Node& layer) const {
    const Node* before = ProducerOf(layer.inputs[0]);
    if (before != nullptr && MayFold(*before)) return false;
    const std::vector<NodeId>& after = readers_[layer.outputs[0]];
    return std::none_of(after.begin(), after.end(),
                        [&](NodeId id) { return MayFold(graph_.nodes[id]); });
  }

  // The node reads the constant as a factor or bias of a layer.
  bool IsLayer(const Node& node, ValueId constant) const {
    const auto is_at = [&](size_t i) { return InputOr(node, i) == constant; };
    if (std::count(node.inputs.begin(), node.inputs.end(), constant) != 1) return false;
    if (IsAny(node, {"MatMul"})) return is_at(1);
    if (IsAny(node, {"Conv", "ConvTranspose", "Gemm", "LayerNormalization"})) {
      return (is_at(1) || is_at(2)) && IsConstant(InputOr(node, 1)) && IsAlone(node);
    }
    if (!IsAny(node, {"Add"})) return false;
    const Node* product = ProducerOf(node.inputs[is_at(0) ? 1 : 0]);
    return product != nullptr && IsAny(*product, {"MatMul"}) && IsConstant(product->inputs[1]);
  }

  bool Accepts(ValueId initializer) const {
    const Value& value = file_.values[initializer];
    const auto storage = StorageOf(*value.constant);
    if (is_unknown_ || !storage || value.constant->type() != DataType::kFloat) return false;
    const Places& places = places_.at(*storage);
    if (places.is_shared || places.units.size() + places.operands.size() == 0) return false;
    const auto found = values_.find(value.name);
    if (found == values_.end()) return false;
    const ValueId here = found->second;
    const std::optional<Tensor>& constant = graph_.values[here].constant;
    if (!constant || StorageOf(*constant) != storage) return false;
    const auto is_output = [](const Graph& graph, ValueId v) {
      return std::count(graph.outputs.begin(), graph.outputs.end(), v) > 0;
    };
    if (is_output(file_, initializer) || is_output(graph_, here)) return false;
    // ConsumersOf() lists captures too; such a node is no layer.
    for (NodeId id : readers_[here]) {
      if (!on_engine_[id] || !IsLayer(graph_.nodes[id], here)) return false;
    }
    const std::vector<NodeId>& layers = readers_[here];
    for (NodeId reader : file_readers_[initializer]) {
      for (OriginId origin : file_.nodes[reader].origins) {
        const auto nodes = nodes_of_.find(origin);
        if (nodes == nodes_of_.end() || computed_.contains(origin)) return false;
        for (NodeId id : nodes->second) {  // each of them reads the initializer itself
          if (std::count(layers.begin(), layers.end(), id) == 0) return false;
        }
      }
    }
    return std::none_of(layers.begin(), layers.end(), [&](NodeId id) {
      const std::vector<OriginId>& origins = graph_.nodes[id].origins;
      return std::any_of(origins.begin(), origins.end(),
                         [&](OriginId origin) { return computed_.contains(origin); });
    });
  }

  const Graph& file_;
  const Graph& graph_;
  const Plan& plan_;
  const std::vector<std::vector<NodeId>> file_readers_, readers_;
  std::vector<bool> on_engine_;                                  // by node of graph_
  absl::flat_hash_map<OriginId, std::vector<NodeId>> nodes_of_;  // of graph_
  absl::flat_hash_map<absl::string_view, ValueId> values_;       // of graph_, by name
  std::map<Storage, Places> places_;
  // Nodes that have a unit with a constant that is not an initializer, or not the only operand.
  absl::flat_hash_set<OriginId> computed_;
  bool is_unknown_ = false;  // such a unit whose node is not known
};

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("the places of weights: ", what, "; they are damaged, compile the model again"));
}

Json PlacesJson(const std::vector<ConstantPlace>& places) {
  Json json = Json::array();
  for (const ConstantPlace& place : places) json.push_back({place.segment, place.index});
  return json;
}

// A whole number from 0 to INT_MAX.
absl::StatusOr<int> IndexOf(const Json& json) {
  if (!json.is_number_unsigned() || json.get<uint64_t>() > INT_MAX) {
    return Damaged("want an index");
  }
  return json.get<int>();
}

absl::StatusOr<ConstantPlace> PlaceOf(const Json& json) {
  if (!json.is_array() || json.size() < 2) return Damaged("want a segment and an index");
  ConstantPlace place;
  ANEMONE_ASSIGN_OR_RETURN(place.segment, IndexOf(json[0]));
  ANEMONE_ASSIGN_OR_RETURN(place.index, IndexOf(json[1]));
  return place;
}

absl::StatusOr<std::string> NameOf(const Json& json) {
  if (!json.is_string()) return Damaged("want a name");
  return json.get<std::string>();
}

// A list, each element by `read`.
template <class Read>
auto ListOf(const Json& json, Read read)
    -> absl::StatusOr<std::vector<typename decltype(read(json))::value_type>> {
  if (!json.is_array()) return Damaged("want a list");
  std::vector<typename decltype(read(json))::value_type> list;
  list.reserve(json.size());
  for (const Json& each : json) {
    ANEMONE_ASSIGN_OR_RETURN(auto read_one, read(each));
    list.push_back(std::move(read_one));
  }
  return list;
}

absl::StatusOr<std::vector<int64_t>> SizesOf(const Json& json) {
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<int> read, ListOf(json, IndexOf));
  std::vector<int64_t> sizes(read.begin(), read.end());
  if (!ElementCount(sizes).ok()) return Damaged("a shape is too large");
  return sizes;
}

// Null if there is no such segment of the engine.
const Network* NetworkAt(const Plan& plan, const ConstantPlace& place) {
  if (place.segment >= static_cast<int>(plan.segments.size())) return nullptr;
  const Segment& segment = plan.segments[place.segment];
  return segment.placement == Placement::kEngine ? &segment.network : nullptr;
}

bool IsFloats(const Tensor& tensor, int64_t elements) {
  return tensor.type() == DataType::kFloat && tensor.compressed() == nullptr &&
         tensor.elements() == elements;
}

// A weight of the document: its name, dims, units and operands.
absl::StatusOr<std::pair<std::string, PlacedWeight>> WeightOf(const Json& json, const Plan& plan) {
  if (!json.is_array() || json.size() != 4 || !json[0].is_string()) {
    return Damaged("want a name, dims, units and operands");
  }
  PlacedWeight weight;
  ANEMONE_ASSIGN_OR_RETURN(weight.dims, SizesOf(json[1]));
  const int64_t elements = *ElementCount(weight.dims);
  ANEMONE_ASSIGN_OR_RETURN(weight.units, ListOf(json[2], PlaceOf));
  ANEMONE_ASSIGN_OR_RETURN(weight.operands, ListOf(json[3], PlaceOf));
  for (const ConstantPlace& operand : weight.operands) {
    const Network* network = NetworkAt(plan, operand);
    if (network == nullptr || operand.index >= static_cast<int>(network->constants.size()) ||
        !IsFloats(network->constants[operand.index].tensor, elements)) {
      return Damaged("a constant is not there");
    }
  }
  return std::pair(json[0].get<std::string>(), std::move(weight));
}

Json PartJson(const DerivedPart& part) {
  Json inputs = Json::array();
  for (const ModelPart::Input& input : part.nodes.inputs) {
    inputs.push_back({input.name, static_cast<int>(input.type), input.dims});
  }
  return {{"weights", part.weights},         {"nodes", part.nodes.nodes},
          {"inputs", std::move(inputs)},     {"outputs", part.nodes.outputs},
          {"units", PlacesJson(part.units)}, {"has_bounds", part.has_bounds}};
}

absl::StatusOr<ModelPart::Input> InputOf(const Json& json) {
  if (!json.is_array() || json.size() != 3 || !json[0].is_string()) return Damaged("want an input");
  ANEMONE_ASSIGN_OR_RETURN(const int type, IndexOf(json[1]));
  if (type > kLastDataType) return Damaged("want a type");
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> dims, SizesOf(json[2]));
  return ModelPart::Input{json[0].get<std::string>(), static_cast<DataType>(type), std::move(dims)};
}

absl::StatusOr<DerivedPart> PartOf(const Json& json) {
  constexpr const char* kKeys[] = {"weights", "nodes", "inputs", "outputs", "units", "has_bounds"};
  const bool has_all = json.is_object() &&
                       std::all_of(std::begin(kKeys), std::end(kKeys),
                                   [&](const char* key) { return json.contains(key); }) &&
                       json["has_bounds"].is_boolean();
  if (!has_all) return Damaged("want a part");
  DerivedPart part;
  ANEMONE_ASSIGN_OR_RETURN(part.weights, ListOf(json["weights"], NameOf));
  ANEMONE_ASSIGN_OR_RETURN(part.nodes.nodes, ListOf(json["nodes"], IndexOf));
  ANEMONE_ASSIGN_OR_RETURN(part.nodes.inputs, ListOf(json["inputs"], InputOf));
  ANEMONE_ASSIGN_OR_RETURN(part.nodes.outputs, ListOf(json["outputs"], NameOf));
  ANEMONE_ASSIGN_OR_RETURN(part.units, ListOf(json["units"], PlaceOf));
  part.has_bounds = json["has_bounds"].get<bool>();
  return part;
}

Json DerivedJson(const DerivedWeights& derived) {
  Json parts = Json::array();
  for (const DerivedPart& part : derived.parts) parts.push_back(PartJson(part));
  return {
      {"parts", std::move(parts)}, {"tables", Json(derived.tables)}, {"beyond", derived.beyond}};
}

absl::StatusOr<DerivedWeights> DerivedOf(const Json& json, const Plan& plan) {
  if (!json.is_object() || !json.contains("parts") || !json.contains("tables") ||
      !json.contains("beyond") || !json["tables"].is_object()) {
    return Damaged("want parts and tables");
  }
  DerivedWeights derived;
  ANEMONE_ASSIGN_OR_RETURN(derived.parts, ListOf(json["parts"], PartOf));
  if (!HasUnitsOf(plan, derived.parts)) return Damaged("a part has other units");
  for (const auto& [name, segments] : json["tables"].items()) {
    ANEMONE_ASSIGN_OR_RETURN(const std::vector<int> read, ListOf(segments, IndexOf));
    const bool are_there = std::all_of(read.begin(), read.end(), [&](int segment) {
      return segment < static_cast<int>(plan.segments.size()) &&
             plan.segments[segment].placement == Placement::kCpu;
    });
    if (!are_there) return Damaged("a CPU segment is not there");
    derived.tables[name] = read;
  }
  ANEMONE_ASSIGN_OR_RETURN(derived.beyond, ListOf(json["beyond"], NameOf));
  return derived;
}

}  // namespace

WeightPlaces::WeightPlaces(const Graph& as_read, const Model& model, const Plan& plan) {
  const bool has_initializers =
      std::any_of(as_read.values.begin(), as_read.values.end(),
                  [](const Value& value) { return value.constant.has_value(); });
  if (!has_initializers) return;
  const Finder finder(as_read, model, plan);
  weights_ = finder.Find();
  for (const auto& [name, weight] : weights_) {
    for (const ConstantPlace& place : weight.units) {
      std::vector<UnitWeight>& all = units_[place];
      if (!all.empty()) continue;
      for (const Tensor& tensor : plan.segments[place.segment].network.units[place.index].weights) {
        all.push_back({finder.NameOf(tensor), tensor});
      }
    }
  }
}

void WeightPlaces::SetDerived(DerivedWeights derived) {
  derived_ = std::move(derived);
  for (size_t i = 0; i < derived_.parts.size(); ++i) {
    for (const std::string& name : derived_.parts[i].weights) part_of_[name] = i;
  }
}

Json WeightPlaces::ToJson() const {
  Json weights = Json::array(), units = Json::array();
  for (const auto& [name, weight] : weights_) {
    weights.push_back({name, weight.dims, PlacesJson(weight.units), PlacesJson(weight.operands)});
  }
  for (const auto& [place, of_unit] : units_) {
    Json names = Json::array();
    for (const UnitWeight& weight : of_unit) names.push_back(weight.name);
    units.push_back({place.segment, place.index, std::move(names)});
  }
  return {{"weights", std::move(weights)},
          {"units", std::move(units)},
          {"derived", DerivedJson(derived_)}};
}

absl::StatusOr<WeightPlaces> WeightPlaces::FromJson(const Json& json, const Plan& plan) {
  if (!json.is_object() || !json.contains("weights") || !json.contains("units") ||
      !json.contains("derived") || !json["weights"].is_array() || !json["units"].is_array()) {
    return Damaged("want weights, units and what is derived");
  }
  WeightPlaces made;
  for (const Json& unit : json["units"]) {
    ANEMONE_ASSIGN_OR_RETURN(const ConstantPlace place, PlaceOf(unit));
    const Network* network = NetworkAt(plan, place);
    if (network == nullptr || place.index >= static_cast<int>(network->units.size()) ||
        unit.size() != 3 || !unit[2].is_array()) {
      return Damaged("a unit is not there");
    }
    const std::vector<Tensor>& tensors = network->units[place.index].weights;
    if (unit[2].size() != tensors.size()) return Damaged("a unit has other weights");
    std::vector<UnitWeight>& weights = made.units_[place];
    weights.clear();
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!unit[2][i].is_string()) return Damaged("want the name of a weight");
      weights.push_back({unit[2][i].get<std::string>(), tensors[i]});
    }
  }
  for (const Json& each : json["weights"]) {
    ANEMONE_ASSIGN_OR_RETURN(auto weight, WeightOf(each, plan));
    const auto& [name, placed] = weight;
    const int64_t elements = *ElementCount(placed.dims);
    for (const ConstantPlace& unit : placed.units) {
      const auto found = made.units_.find(unit);
      if (found == made.units_.end()) return Damaged("a unit is not listed");
      const bool fits = std::all_of(found->second.begin(), found->second.end(),
                                    [&, &of = name](const UnitWeight& held) {
                                      return held.name != of || IsFloats(held.tensor, elements);
                                    });
      if (!fits) return Damaged("a unit has a weight of another size");
    }
    made.weights_.insert(std::move(weight));
  }
  ANEMONE_ASSIGN_OR_RETURN(DerivedWeights derived, DerivedOf(json["derived"], plan));
  made.SetDerived(std::move(derived));
  return made;
}

}  // namespace anemone
