// provider/weights/weight_places.h: where programs hold initializers exactly as they are in the
// file. Such an initializer can be replaced without importing and planning the model.
//
//   const WeightPlaces places(as_read, model, plan);
//   const PlacedWeight* weight = places.Find("fc1.weight");   // null: import the model again
//
// An initializer is only here if nothing else follows from its elements, by the rules of Accepts()
// in weight_places.cc:
//   - its readers are the factors and biases of convolutions, products and layer normalizations,
//     all on the engine;
//   - no pass of the importer could fold a neighbor into these nodes, or has;
//   - the constants of their units are initializers, unchanged: no lowering computed one.
// For others the places have the part of the model that computes something from them, as far as it
// is known (derived_parts.h).
// The range of its elements, by which a node may be refused, is for the caller to compare.
#ifndef ANEMONE_PROVIDER_WEIGHTS_WEIGHT_PLACES_H_
#define ANEMONE_PROVIDER_WEIGHTS_WEIGHT_PLACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/formats/json.h"
#include "importer/graph.h"
#include "importer/model_part.h"
#include "partitioner/plan.h"

namespace anemone {

// A unit of a segment's network, or a constant operand.
struct ConstantPlace {
  int segment = 0;
  int index = 0;
  bool operator<(const ConstantPlace& other) const {
    return std::tie(segment, index) < std::tie(other.segment, other.index);
  }
};

struct PlacedWeight {
  std::vector<int64_t> dims;  // in the file; the type is float32
  std::vector<ConstantPlace> units, operands;
};

// Nodes that compute constants from weights.
struct DerivedPart {
  std::vector<std::string> weights;  // initializers that only the part and CPU segments read
  ModelPart nodes;
  std::vector<ConstantPlace> units;  // all, except those that only change layouts
  bool has_bounds = false;           // bounds of other values depend on the weights
};

// What is known of weights that are not plain.
struct DerivedWeights {
  std::vector<DerivedPart> parts;
  // Tables of which CPU segments read rows, by initializer: the segments.
  std::map<std::string, std::vector<int>> tables;
  // The values with numbers beyond fp16's range, by which nodes are refused.
  std::vector<std::string> beyond;
};

class WeightPlaces {
 public:
  WeightPlaces() = default;  // of a model without weights
  // `as_read` is that of ImportOptions. The plan still has the networks' tensors.
  WeightPlaces(const Graph& as_read, const Model& model, const Plan& plan);
  // What ToJson() wrote, of anyone's making, for the same plan. kDataLoss: it does not fit the
  // plan.
  static absl::StatusOr<WeightPlaces> FromJson(const Json& json, const Plan& plan);

  Json ToJson() const;

  const PlacedWeight* Find(const std::string& name) const {
    const auto found = weights_.find(name);
    return found == weights_.end() ? nullptr : &found->second;
  }

  const std::map<std::string, PlacedWeight>& weights() const { return weights_; }  // of Find()

  const DerivedWeights& derived() const { return derived_; }
  // Null: there is none for this initializer.
  const DerivedPart* FindPart(const std::string& name) const {
    const auto found = part_of_.find(name);
    return found == part_of_.end() ? nullptr : &derived_.parts[found->second];
  }
  void SetDerived(DerivedWeights derived);

  struct UnitWeight {
    std::string name;  // of the initializer
    Tensor tensor;     // with the dims that the unit wants
  };
  // All weights of a unit of Find().
  const std::vector<UnitWeight>& WeightsOf(const ConstantPlace& unit) const {
    return units_.at(unit);
  }

 private:
  std::map<std::string, PlacedWeight> weights_;
  std::map<ConstantPlace, std::vector<UnitWeight>> units_;
  DerivedWeights derived_;
  std::map<std::string, size_t> part_of_;  // by initializer
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHTS_WEIGHT_PLACES_H_
