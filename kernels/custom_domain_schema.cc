// ONNX schemas of the operators of the custom domain.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/constant.h"
#include "kernels/custom_domain.h"
#include "onnx/defs/schema.h"
#include "onnx/defs/shape_inference.h"

namespace anemone {
namespace {

using onnx::AttributeProto;
using onnx::InferenceContext;
using onnx::OpSchema;

// A node with the attributes of the node whose shape is inferred, as far as they are keys. An
// attribute of a type that no key has becomes a list of tensors, which KeysOf() rejects.
Node NodeOf(const CustomOp& op, InferenceContext& c) {
  Node node;
  for (const KeyInfo& key : op.keys) {
    const AttributeProto* proto = c.getAttribute(key.key);
    if (proto == nullptr) continue;
    Attribute& attribute = node.attributes.emplace_back();
    attribute.name = key.key;
    attribute.value = std::vector<Tensor>();
    if (proto->type() == AttributeProto::INT) attribute.value = proto->i();
    if (proto->type() == AttributeProto::FLOAT) attribute.value = proto->f();
    if (proto->type() == AttributeProto::STRING) attribute.value = proto->s();
    if (proto->type() == AttributeProto::INTS) {
      attribute.value = std::vector<int64_t>(proto->ints().begin(), proto->ints().end());
    }
  }
  return node;
}

// Reads the shape of input `i`. False if an extent is unknown or the rank is above kMaxRank.
bool ReadShape(InferenceContext& c, size_t i, std::vector<int64_t>& shape) {
  if (!onnx::hasInputShape(c, i)) return false;
  const onnx::TensorShapeProto& proto = onnx::getInputShape(c, i);
  if (proto.dim_size() > kMaxRank) return false;
  for (const auto& dim : proto.dim()) {
    if (!dim.has_dim_value() || dim.dim_value() < 1) return false;
    shape.push_back(dim.dim_value());
  }
  return true;
}

// Infers the output's type and shape. The shape stays unknown if an input's shape is unknown, and
// also if the inputs' shapes do not match: the unit's validator reports that later, with the
// compiler's message. Invalid keys are an error here.
void Infer(const CustomOp& op, InferenceContext& c) {
  onnx::propagateElemTypeFromInputToOutput(c, 0, 0);
  absl::StatusOr<Json> keys = KeysOf(op, NodeOf(op, c));
  if (!keys.ok()) fail_shape_inference(std::string(keys.status().message()));
  std::vector<Bottom> bottoms;
  std::vector<Tensor> weights;
  int rank = 0;
  for (size_t i = 0; i < std::min(c.getNumInputs(), op.inputs.size()); ++i) {
    if (!c.hasInput(i)) continue;
    std::vector<int64_t> shape;
    if (!ReadShape(c, i, shape)) return;
    if (i == 0) rank = static_cast<int>(shape.size());
    if (i < op.bottoms) {
      bottoms.push_back({.dims = PlaceShape(shape)});
    } else if (auto zeros = ZeroFill(DataType::kFloat, shape); zeros.ok()) {
      weights.push_back(*std::move(zeros));  // shapes do not depend on their values
    }
  }
  if (bottoms.size() < op.kind->bottoms.least) return;
  auto params = op.kind->Read(*keys, bottoms, weights);
  if (!params.ok()) fail_shape_inference(std::string(params.status().message()));
  absl::StatusOr<Dims> dims = op.kind->judge.shape(params->get(), bottoms);
  if (!dims.ok() || !ElementCount(dims->extent).ok()) return;
  onnx::TensorShapeProto made;
  for (int64_t extent : OnnxShapeOf(*dims, rank)) {
    if (extent < 1) return;
    made.add_dim()->set_dim_value(extent);
  }
  onnx::updateOutputShape(c, 0, made);
}

std::string Described(const KeyInfo& key) {
  return key.names.empty() ? "" : absl::StrCat("One of ", absl::StrJoin(key.names, ", "), ".");
}

OpSchema SchemaOf(const CustomOp& op) {
  OpSchema schema;
  schema.SetName(op.layer->type).SetDomain(kCustomDomain).SinceVersion(kCustomDomainVersion);
  schema.SetDoc(absl::StrCat(op.layer->what, ". ", op.layer->semantics));
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const CustomInput& input = op.inputs[i];
    schema.Input(static_cast<int>(i), input.name, input.layout, "T",
                 input.optional ? OpSchema::Optional : OpSchema::Single);
  }
  schema.Output(0, "y", op.layer->output, "T");
  schema.TypeConstraint("T", {"tensor(float)", "tensor(float16)"}, "Rounded to fp16.");
  for (const KeyInfo& key : op.keys) {
    AttributeProto::AttributeType type = AttributeProto::UNDEFINED;
    AttributeProto::AttributeType_Parse(AttributeTypeName(key.type), &type);
    schema.Attr(key.key, Described(key), type, key.required);
  }
  schema.TypeAndShapeInferenceFunction([&op](InferenceContext& c) { Infer(op, c); });
  return schema;
}

}  // namespace

void RegisterCustomDomain() {
  static const bool once = [] {
    // The domain and some operators are known if memory ran out the last time that this was tried.
    auto& domains = onnx::OpSchemaRegistry::DomainToVersionRange::Instance();
    if (domains.Map().count(kCustomDomain) == 0) {
      domains.AddDomainToVersion(kCustomDomain, kCustomDomainVersion, kCustomDomainVersion);
    }
    for (const CustomOp& op : CustomOps()) {
      const bool is_known = onnx::OpSchemaRegistry::Schema(op.layer->type, kCustomDomainVersion,
                                                           kCustomDomain) != nullptr;
      if (!is_known) onnx::RegisterSchema(SchemaOf(op));
    }
    return true;
  }();
  static_cast<void>(once);
}

}  // namespace anemone
