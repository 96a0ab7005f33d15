// kernels/custom_domain.h: the ONNX domain ai.anemone, with which a model uses the engine's hidden
// layers directly. The domain has one operator for each row of the catalogue
// (engine/hidden_layer.h) that has a unit kind. The operators are generated from the unit kinds
// (docs/custom_domain.md). A node as ONNX text:
//
//   y = ai.anemone.TopK<Type = "Max", K = 2, SortDimension = "Width", VectorDimension = "Channel",
//                       SortIndices = [0]>(x)
//
// The operator's name is the unit's Type. Its inputs are the unit's bottoms, then its weights. Its
// attributes are the unit's keys. Its output is the unit's output and has the element type of the
// inputs; indices are therefore floats too.
#ifndef ANEMONE_KERNELS_CUSTOM_DOMAIN_H_
#define ANEMONE_KERNELS_CUSTOM_DOMAIN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/dims.h"
#include "engine/hidden_layer.h"
#include "engine/unit_kind.h"
#include "importer/graph.h"

namespace anemone {

inline constexpr char kCustomDomain[] = "ai.anemone";
inline constexpr int kCustomDomainVersion = 1;

struct CustomInput {
  std::string name;
  std::string layout;  // HiddenOperand's
  bool optional = false;
};

struct CustomOp {
  const HiddenLayer* layer;
  const UnitKind* kind;
  std::vector<CustomInput> inputs;
  size_t bottoms;  // the first `bottoms` inputs; the other inputs are weights
  std::vector<KeyInfo> keys;
};

// In the catalogue's order.
const std::vector<CustomOp>& CustomOps();

// The operator named `type`, or null if the domain has no such operator.
const CustomOp* FindCustomOp(absl::string_view type);

// The ONNX attribute type of a key: "INT", "FLOAT", "STRING" or "INTS". A bool is an INT of 0 or 1.
// A list of names and a nested value are a STRING that contains JSON.
const char* AttributeTypeName(ValueType type);

// The node's attributes as the unit's keys. kInvalidArgument, naming the attribute, if a required
// one is missing or one has a type other than that of its key.
absl::StatusOr<Json> KeysOf(const CustomOp& op, const Node& node);

// The ONNX shape of an output with these dims. Its rank is `like`, the rank of the first input, if
// that rank has all axes that are not 1; else it is 4, or 5 if 4 is not enough.
std::vector<int64_t> OnnxShapeOf(const Dims& dims, int like);

// Registers the domain's schemas with ONNX, so that the importer can check its nodes and infer
// their types and shapes. Call it before a model is imported. Further calls have no effect.
void RegisterCustomDomain();

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CUSTOM_DOMAIN_H_
