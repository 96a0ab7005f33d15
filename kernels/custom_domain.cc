#include "kernels/custom_domain.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "engine/formats/parse_json.h"
#include "kernels/lowering.h"

namespace anemone {
namespace {

// Inputs that become weights of the unit instead of bottoms.
constexpr struct {
  const char* type;
  const char* weight;
} kWeights[] = {{"GOC", "scale"}, {"GOC", "bias"}};

CustomOp MakeOp(const HiddenLayer& layer, const UnitKind& kind) {
  CustomOp op{&layer, &kind, {}, kind.bottoms.most, kind.ListKeys()};
  for (size_t i = 0; i < op.bottoms; ++i) {
    CustomInput& input = op.inputs.emplace_back();
    const bool named = i < layer.operands.size();
    input.name = named ? layer.operands[i].name : absl::StrCat("bottom_", i);
    if (named) input.layout = layer.operands[i].layout;
    input.optional = i >= kind.bottoms.least;
  }
  for (const auto& row : kWeights) {
    if (absl::string_view(row.type) != kind.type) continue;
    op.inputs.push_back({row.weight, "constant, one number for each channel", true});
  }
  return op;
}

absl::StatusOr<Json> ValueOf(ValueType type, const Attribute::Variant& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    if (type == ValueType::kInt) return Json(*number);
    if (type == ValueType::kBool) {
      if (*number == 0 || *number == 1) return Json(*number == 1);
      return absl::InvalidArgumentError(absl::StrCat("want 0 or 1, got ", *number));
    }
  } else if (const auto* fraction = std::get_if<float>(&value)) {
    if (type == ValueType::kFloat) return Json(*fraction);
  } else if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value)) {
    if (type == ValueType::kInts) return Json(*numbers);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    const bool nested = !text->empty() && (text->front() == '[' || text->front() == '{');
    if (type == ValueType::kName) return Json(*text);
    if (type == ValueType::kNames) return nested ? ParseJson(*text) : Json(*text);
    if (type == ValueType::kNested) return ParseJson(*text);
  }
  return absl::InvalidArgumentError(absl::StrCat("want ", AttributeTypeName(type)));
}

absl::Status LowerCustomOp(const Match& match, LowerContext& c) {
  const Node& node = c.anchor(match);
  const CustomOp* op = FindCustomOp(node.op_type);
  if (op == nullptr) return c.NotLowered("hidden layer without a unit kind in Anemone");
  ANEMONE_ASSIGN_OR_RETURN(Json keys, KeysOf(*op, node));
  std::vector<Operand> bottoms;
  std::vector<Tensor> weights;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!HasInput(node, i)) continue;
    if (i < op->bottoms) {
      bottoms.emplace_back() = c.In(node.inputs[i]);
    } else if (const Tensor* weight = c.view().Constant(node.inputs[i])) {
      weights.push_back(*weight);
    } else {
      return c.NotLowered(absl::StrCat("input '", op->inputs[i].name,
                                       "' computed at run time; make it a constant"));
    }
  }
  Operand y = AddAuthoredUnit(c, *op->kind, keys, std::move(bottoms), std::move(weights));
  return c.Out(node.outputs[0], y);
}

}  // namespace

const std::vector<CustomOp>& CustomOps() {
  static const std::vector<CustomOp>& ops = *new std::vector<CustomOp>([] {
    std::vector<CustomOp> made;
    for (const HiddenLayer& layer : HiddenLayers()) {
      const UnitKind* kind = FindUnitKind(layer.type);
      if (kind != nullptr) made.push_back(MakeOp(layer, *kind));
    }
    return made;
  }());
  return ops;
}

const CustomOp* FindCustomOp(absl::string_view type) {
  for (const CustomOp& op : CustomOps()) {
    if (type == op.layer->type) return &op;
  }
  return nullptr;
}

const char* AttributeTypeName(ValueType type) {
  switch (type) {
    case ValueType::kInt:
    case ValueType::kBool:
      return "INT";
    case ValueType::kFloat:
      return "FLOAT";
    case ValueType::kInts:
      return "INTS";
    case ValueType::kName:
    case ValueType::kNames:
    case ValueType::kNested:
      break;
  }
  return "STRING";
}

absl::StatusOr<Json> KeysOf(const CustomOp& op, const Node& node) {
  Json keys = Json::object();
  for (const KeyInfo& key : op.keys) {
    const Attribute* attribute = node.FindAttribute(key.key);
    if (attribute != nullptr) {
      absl::StatusOr<Json> value = ValueOf(key.type, attribute->value);
      if (!value.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("attribute '", key.key, "': ", value.status().message()));
      }
      keys[key.key] = *std::move(value);
    } else if (key.required) {
      return absl::InvalidArgumentError(absl::StrCat("attribute '", key.key, "' is missing"));
    }
  }
  return keys;
}

std::vector<int64_t> OnnxShapeOf(const Dims& dims, int like) {
  std::vector<int64_t> shape;
  for (int rank : {like, 4, kMaxRank}) {
    shape.clear();
    for (int i = 0; i < rank; ++i) shape.push_back(dims[ToEngineAxis(rank, i)]);
    if (PlaceShape(shape) == dims) break;
  }
  return shape;
}

// LowerCustomOp serves every operator of the domain.
KernelRows CustomDomainRows() {
  static const std::vector<Lowering>& lowerings = *[] {
    auto* made = new std::vector<Lowering>;
    for (const HiddenLayer& layer : HiddenLayers()) {
      made->push_back({.op = layer.type, .domain = kCustomDomain, .lower = LowerCustomOp});
    }
    return made;
  }();
  return {{}, lowerings, {}};
}

}  // namespace anemone
