// provider/weights/weight_places.h: where programs hold initializers exactly as they are in the
// file. Such an initializer can be replaced without importing and planning the model.
//
//   const WeightPlaces places(as_read, model, plan);
//   const PlacedWeight* weight = places.Find("fc1.weight");   // null: import the model again
//
// An initializer is only here if nothing else follows from its elements, by the rules of Accepts()
// in weight_places.cc:
//   - its readers are the factors and biases of convolutions and products, all on the engine;
//   - no pass of the importer could fold a neighbor into these nodes, or has;
//   - the constants of their units are initializers, unchanged: no lowering computed one.
// The range of its elements, by which a node may be refused, is for the caller to compare.
#ifndef ANEMONE_PROVIDER_WEIGHTS_WEIGHT_PLACES_H_
#define ANEMONE_PROVIDER_WEIGHTS_WEIGHT_PLACES_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/formats/json.h"
#include "importer/graph.h"
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

class WeightPlaces {
 public:
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

  struct UnitWeight {
    std::string name;  // of the initializer
    Tensor tensor;     // with the dims that the unit wants
  };
  // All weights of a unit of Find().
  const std::vector<UnitWeight>& WeightsOf(const ConstantPlace& unit) const {
    return units_.at(unit);
  }

 private:
  WeightPlaces() = default;

  std::map<std::string, PlacedWeight> weights_;
  std::map<ConstantPlace, std::vector<UnitWeight>> units_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_WEIGHTS_WEIGHT_PLACES_H_
