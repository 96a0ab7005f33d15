// Initializers that a model also lists as inputs: constants, unless an option keeps them inputs.
#include "importer/read/constant_inputs.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "base/usage_error.h"
#include "tests/importer/against_ort.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A convolution by a kernel that is made of an initializer and two more, all of which are inputs,
// and a branch that reads one of them.
onnx::ModelProto Listed(int ir_version = 8) {
  return ParseModel(absl::StrCat("<ir_version: ", ir_version, R"(, opset_import: ["" : 17]>
      agraph (float[1,1,4,4] x, float[1,1,1,1] w, float[1] b, int64[3] s) => (float[1,4,4] y)
      <float[1,1,1,1] w = {2}, float[1] b = {1}, int64[3] s = {1, 4, 4}> {
        n = Neg(w)
        c = Conv(x, n, b)
        r = Reshape(c, s)
        t = ReduceMax<keepdims = 0>(r)
        zero = Constant<value = float {0}>()
        is = Greater(t, zero)
        y = If(is) <
          then_branch = g () => (float[1,4,4] p) { p = Add(r, b) },
          else_branch = h () => (float[1,4,4] q) { q = Sub(r, b) }
        >
      })")
                        .c_str());
}

std::vector<std::string> InputsOf(const Model& model) {
  std::vector<std::string> names;
  for (ValueId v : model.graph.inputs) names.push_back(model.graph.values[v].name);
  return names;
}

absl::StatusOr<Model> Imported(const onnx::ModelProto& model, std::vector<std::string> overridable,
                               std::vector<std::string> given = {}) {
  ImportOptions options = WithEvaluator();
  options.overridable = std::move(overridable);
  options.given_inputs = std::move(given);
  return ImportBytes(model.SerializeAsString(), "", options);
}

TEST(ConstantInputs, AreFoldedLikeOtherConstants) {
  const Model model = ExpectSameOnOrt(Listed(), Listed());
  EXPECT_THAT(InputsOf(model), ElementsAre("x"));
  EXPECT_THAT(model.graph.defaults, IsEmpty());
  EXPECT_THAT(model.graph.constant_inputs, ElementsAre("w", "b", "s"));
  const Node& conv = model.graph.nodes[0];
  ASSERT_EQ(conv.op_type, "Conv");  // Neg is folded
  ASSERT_TRUE(model.graph.values[conv.inputs[1]].constant.has_value());
  EXPECT_EQ(model.graph.values[conv.inputs[1]].constant->at<float>(0), -2);
  for (const Node& node : model.graph.nodes) {
    for (const Attribute::GraphPtr& body : BodiesOf(node)) {
      EXPECT_TRUE(ValueNamed(*body, "b").constant.has_value());
    }
  }
}

TEST(ConstantInputs, AreOneWarning) {
  const auto model = Imported(Listed(), {});
  ASSERT_THAT(model, IsOk());
  ASSERT_THAT(model->warnings, SizeIs(1));
  const ImportWarning& warning = model->warnings[0];
  EXPECT_EQ(warning.rule, "constant-input");
  EXPECT_EQ(warning.message,
            "3 initializers that are also inputs are constants, which a run cannot give: 'w', 'b', "
            "'s'");
  EXPECT_THAT(warning.remedy,
              HasSubstr("a run that gives one needs --overridable w, or --overridable all"));
}

TEST(ConstantInputs, HaveNoChoiceBelowIr4) {
  const auto model = Imported(Listed(3), {kAllOverridable});
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT(InputsOf(*model), ElementsAre("x"));
  EXPECT_THAT(model->graph.constant_inputs, IsEmpty());
  EXPECT_THAT(model->warnings, IsEmpty());
  EXPECT_THAT(Imported(Listed(3), {"w"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--overridable w: no initializer of that name is also an input; "
                                 "the model has none that a run may give")));
}

TEST(ConstantInputs, StayInputsIfTheyAreNamed) {
  const auto one = Imported(Listed(), {"b"});
  ASSERT_THAT(one, IsOk());
  EXPECT_THAT(InputsOf(*one), ElementsAre("x", "b"));
  ASSERT_THAT(one->graph.defaults, SizeIs(1));
  EXPECT_EQ(one->graph.defaults.begin()->second.at<float>(0), 1);
  EXPECT_THAT(one->graph.constant_inputs, ElementsAre("w", "s"));
  const auto all = Imported(Listed(), {kAllOverridable});
  ASSERT_THAT(all, IsOk());
  EXPECT_THAT(InputsOf(*all), ElementsAre("x", "w", "b", "s"));
  EXPECT_THAT(all->graph.defaults, SizeIs(3));
  EXPECT_THAT(all->warnings, IsEmpty());
  const auto given = Imported(Listed(), {}, {"b", "another"});
  ASSERT_THAT(given, IsOk());
  EXPECT_THAT(InputsOf(*given), ElementsAre("x", "b"));
}

TEST(ConstantInputs, AWrongNameListsTheRightOnes) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"v"}, {"w", "v"}, {"all", "v"}}) {
    const auto model = Imported(Listed(), names);
    EXPECT_THAT(model, StatusIs(absl::StatusCode::kInvalidArgument,
                                HasSubstr("--overridable v: no initializer of that name is also an "
                                          "input; there are: ")));
    EXPECT_TRUE(IsUsageError(model.status()));
    for (const char* known : {"'w'", "'b'", "'s'"}) {
      EXPECT_THAT(std::string(model.status().message()), HasSubstr(known));
    }
  }
  // An input without an initializer cannot be one.
  EXPECT_THAT(Imported(Listed(), {"x"}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--overridable x: ")));
}

}  // namespace
}  // namespace anemone
