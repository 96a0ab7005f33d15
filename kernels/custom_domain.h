// kernels/custom_domain.h: the ONNX domain ai.anemone, by which a model names the engine's hidden
// layers directly: one operator for each row of the catalogue (engine/hidden_layer.h), made of the
// unit's own row (docs/custom_domain.md).
//
//   y = ai.anemone.TopK<Type = "Max", K = 2, SortDimension = "Width", ...>(x)
//
// The operator's name is the unit's Type. Its inputs are the unit's bottoms, then its weights; its
// attributes are the unit's keys; its output is what the unit makes, of the inputs' type: indices
// are numbers too.
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
  size_t bottoms;  // so many inputs, the first; the others are weights
  std::vector<KeyInfo> keys;
};

// In the catalogue's order.
const std::vector<CustomOp>& CustomOps();

// Null: the domain has no such operator.
const CustomOp* FindCustomOp(absl::string_view type);

// "INT", "FLOAT", "STRING", "INTS": the type of a key's attribute, as ONNX spells it. A bool is an
// INT of 0 or 1; a list of names, or what holds several values, is a STRING of JSON.
const char* AttributeTypeName(ValueType type);

// A node's attributes as the unit's keys. kInvalidArgument, naming the attribute: one that must be
// there is missing, or is of another type than its key's.
absl::StatusOr<Json> KeysOf(const CustomOp& op, const Node& node);

// The ONNX shape of an output that lies on these axes: of rank `like`, the first input's, if that
// rank has them; else of rank 4, else 5.
std::vector<int64_t> OnnxShapeOf(const Dims& dims, int like);

// Tells ONNX's registry of the domain, so that the importer checks and types its nodes. To be
// called before a model is imported; again it does nothing.
void RegisterCustomDomain();

}  // namespace anemone

#endif  // ANEMONE_KERNELS_CUSTOM_DOMAIN_H_
