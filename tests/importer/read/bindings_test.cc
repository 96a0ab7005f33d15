#include "importer/read/bindings.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "base/usage_error.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

// An input of float32 whose dimensions are numbers ("3") or names.
void AddInput(onnx::ModelProto& model, const std::string& name,
              const std::vector<std::string>& dims) {
  onnx::ValueInfoProto* input = model.mutable_graph()->add_input();
  input->set_name(name);
  onnx::TypeProto::Tensor* type = input->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape();
  for (const std::string& dim : dims) {
    int64_t size = 0;
    onnx::TensorShapeProto::Dimension* out = type->mutable_shape()->add_dim();
    if (absl::SimpleAtoi(dim, &size)) {
      out->set_dim_value(size);
    } else {
      out->set_dim_param(dim);
    }
  }
}

// A model with these inputs and y = Relu(the first one), whose declared shape names a dimension.
Model ModelWith(const std::vector<std::pair<std::string, std::vector<std::string>>>& inputs) {
  onnx::ModelProto proto = ParseModel("g () => (float[batch] y) { y = Relu(x) }");
  for (const auto& [name, dims] : inputs) AddInput(proto, name, dims);
  proto.mutable_graph()->mutable_node(0)->set_input(0, inputs[0].first);
  auto model = Read(proto);
  EXPECT_THAT(model, IsOk());
  return *std::move(model);
}

std::string ShapeOf(const Model& model, absl::string_view name) {
  const Value& value = ValueNamed(model.graph, name);
  std::vector<std::string> dims;
  for (const Dim& dim : *value.shape) {
    dims.push_back(dim.known() ? absl::StrCat(dim.size) : absl::StrCat("'", dim.symbol, "'"));
  }
  return absl::StrJoin(dims, "x");
}

TEST(Bindings, ADimIsBoundWhereverItsNameStands) {
  Model model = ModelWith({{"x", {"batch", "3"}}, {"z", {"7", "batch"}}});
  ASSERT_THAT(BindDimensions(model, {.dims = {{"batch", 4}}}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "4x3");
  EXPECT_EQ(ShapeOf(model, "z"), "7x4");
  EXPECT_EQ(ShapeOf(model, "y"), "4");
}

TEST(Bindings, AShapeBindsItsInputAndTheNamesInIt) {
  Model model = ModelWith({{"x", {"batch", "3"}}, {"z", {"batch", "width"}}});
  ASSERT_THAT(BindDimensions(model, {.shapes = {{"x", {2, 3}}}}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "2x3");
  EXPECT_EQ(ShapeOf(model, "z"), "2x'width'");
}

TEST(Bindings, AGivenSizeIsNotNegative) {
  Model model = ModelWith({{"x", {"batch", "3"}}});
  EXPECT_THAT(BindDimensions(model, {.shapes = {{"x", {-4, 3}}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--shape gives -4")));
}

TEST(Bindings, AQuestionMarkIsNoName) {
  Model model = ModelWith({{"x", {"?", "3", "?", "-1"}}});
  ASSERT_THAT(BindDimensions(model, {.shapes = {{"x", {1, 3, 48, 320}}}}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "1x3x48x320");
}

TEST(Bindings, WithoutOptionsNamesThatAreNoneGoAway) {
  Model model = ModelWith({{"x", {"?", "3", "?", "height"}}});
  ASSERT_THAT(BindDimensions(model, {}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "''x3x''x'height'");
}

TEST(Bindings, ANameOfTwoSizesIsNoName) {
  Model model = ModelWith({{"x", {"n", "n"}}, {"z", {"n"}}});
  ASSERT_THAT(BindDimensions(model, {.shapes = {{"x", {2, 3}}}}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "2x3");
  EXPECT_EQ(ShapeOf(model, "z"), "''");
}

TEST(Bindings, NegativeSizesAreUnknown) {
  Model model = ModelWith({{"x", {"3", "-7"}}});
  ASSERT_THAT(BindDimensions(model, {.shapes = {{"x", {3, 9}}}}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "3x9");
}

TEST(Bindings, ADeclaredZeroIsASizeUnlessAShapeGivesAnother) {
  Model model = ModelWith({{"x", {"0", "3"}}});
  ASSERT_THAT(BindDimensions(model, {}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "0x3");
  ASSERT_THAT(BindDimensions(model, {.shapes = {{"x", {5, 3}}}}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "5x3");
}

TEST(Bindings, ASizeOfZeroIsASize) {
  Model model = ModelWith({{"x", {"0", "batch", "rows"}}});
  ASSERT_THAT(BindDimensions(model, {.dims = {{"batch", 0}}, .shapes = {{"x", {-1, -1, 0}}}}),
              IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "0x0x0");
}

TEST(Bindings, NamesMayHoldAnyCharacter) {
  Model model = ModelWith({{"in:0 =\"x\"/é", {"serving:batch=1", "3"}}});
  ASSERT_THAT(BindDimensions(model, {.dims = {{"serving:batch=1", 4}}}), IsOk());
  EXPECT_EQ(ShapeOf(model, "in:0 =\"x\"/é"), "4x3");
}

TEST(Bindings, ANegativeSizeLeavesTheDimensionAsItIs) {
  Model model = ModelWith({{"x", {"batch", "width"}}});
  ASSERT_THAT(BindDimensions(model, {.shapes = {{"x", {-1, 8}}}}), IsOk());
  EXPECT_EQ(ShapeOf(model, "x"), "'batch'x8");
}

TEST(Bindings, BodiesAreBoundToo) {
  auto model =
      Read(ParseModel("g (bool c, float[batch,3] x) => (float[batch,3] y) {"
                      "  y = If(c) <then_branch = t () => (float[batch,3] a) { a = Relu(x) },"
                      "             else_branch = e () => (float[batch,3] b) { b = Neg(x) }> }"));
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(BindDimensions(*model, {.dims = {{"batch", 2}}}), IsOk());
  const Graph& body = *BodiesOf(model->graph.nodes[0])[0];
  EXPECT_TRUE(body.values[body.outputs[0]].is_static());
}

struct BindingRefusal {
  const char* name;
  ImportOptions options;
  const char* message;
};

TEST(Bindings, RefusalsNameInputAndDimension) {
  const BindingRefusal kRefusals[] = {
      {"unknown dim",
       {.dims = {{"batchs", 1}}},
       "--dim batchs=1: the model has no dimension of that name; it has 'batch', 'width'"},
      {"unknown input",
       {.shapes = {{"X", {1}}}},
       "--shape X: the model has no input of that name; it has 'x', 'z'"},
      {"rank",
       {.shapes = {{"x", {1, 3, 8}}}},
       "input 'x': --shape gives 3 dimensions, the model declares 2: batch, 3"},
      {"declared",
       {.shapes = {{"x", {1, 4}}}},
       "input 'x', dimension 1: --shape gives 4, the model declares 3"},
      {"both",
       {.dims = {{"batch", 2}}, .shapes = {{"x", {1, 3}}}},
       "input 'x', dimension 0: --shape gives 1, but --dim batch=2 gives another size"},
      {"negative dim", {.dims = {{"batch", -2}}}, "--dim batch=-2: want a size of at least 0"},
  };
  for (const BindingRefusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.name);
    Model model = ModelWith({{"x", {"batch", "3"}}, {"z", {"width"}}});
    const absl::Status status = BindDimensions(model, refusal.options);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(refusal.message)));
    EXPECT_TRUE(IsUsageError(status));
  }
}

TEST(Bindings, WhatIsUnboundShowsTheOption) {
  Model model = ModelWith({{"x", {"batch", "3", "48", "width"}}, {"z", {"?", "2"}}});
  ASSERT_THAT(BindDimensions(model, {}), IsOk());
  ASSERT_EQ(UnboundDims(model).size(), 3);
  EXPECT_EQ(UnboundDims(model)[1].symbol, "width");
  EXPECT_THAT(RequireBound(model),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "input 'x': dimensions 0 ('batch'), 3 ('width') have no size; give --dim "
                       "'batch=1' --dim 'width=224', or --shape 'x=?x3x48x?' with a number for "
                       "each '?'"));
  ASSERT_THAT(BindDimensions(model, {.shapes = {{"x", {1, 3, 48, 320}}}}), IsOk());
  EXPECT_THAT(RequireBound(model), StatusIs(absl::StatusCode::kInvalidArgument,
                                            "input 'z': dimension 0 has no size; give --shape "
                                            "'z=?x2' with a number for each '?'"));
  ASSERT_THAT(BindDimensions(model, {.shapes = {{"z", {6, 2}}}}), IsOk());
  EXPECT_THAT(RequireBound(model), IsOk());
}

}  // namespace
}  // namespace anemone
