#include "importer/refused_sizes.h"

#include "base/usage_error.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

absl::Status ErrorAt(absl::string_view text, const ImportOptions& options) {
  return ImportBytes(ParseModel(std::string(text).c_str()).SerializeAsString(), "", options)
      .status();
}

// Two rows become one, so only even numbers of rows are possible.
constexpr char kPairs[] =
    "g (float[batch,n,8] x) => (float[batch,m,16] y) <int64[3] s = {0, -1, 16}> "
    "{ r = Relu(x) y = Reshape(r, s) }";

// Both halves of a network that halves its input and doubles it again.
constexpr char kHalves[] =
    "g (float[1,1,h,w] x) => (float[1,2,h,w] y) <float[1,1,2,2] k = {1,1,1,1}> "
    "{ a = MaxPool<kernel_shape = [8, 8], strides = [8, 8]>(x) "
    "  b = ConvTranspose<strides = [8, 8], kernel_shape = [2, 2], output_padding = [6, 6]>(a, k) "
    "  y = Concat<axis = 1>(x, b) }";

// Only one width is possible.
constexpr char kOneWidth[] =
    "g (float[1,width] x, float[224,1] z) => (float[1,1] y) { y = MatMul(x, z) }";

struct Case {
  const char* model;
  ImportOptions options;
  const char* sizes;  // how the message begins after the model's name
  const char* node;
  const char* fitting;  // how it ends
};

std::string ReasonOf(const absl::Status& status) {
  return std::string(status.GetPayload(kRefusalPayload).value_or(absl::Cord()));
}

TEST(RefusedSizes, TheSizeTheNodeAndSizesThatFitAreNamed) {
  const Case cases[] = {
      {kPairs,
       {.dims = {{"n", 5}}},
       "n=5: the model cannot have this size: ",
       "(Reshape",
       "; sizes that fit: n=4 or n=6"},
      // The batch is not to blame.
      {kPairs,
       {.dims = {{"batch", 2}, {"n", 5}}},
       "n=5: the model cannot have this size: ",
       "(Reshape",
       "; sizes that fit: n=4 or n=6"},
      {kPairs,
       {.dims = {{"n", 1}}},
       "n=1: the model cannot have this size: ",
       "(Reshape",
       "; sizes that fit: n=2"},
      {kPairs,
       {.shapes = {{"x", {3, 5, 8}}}},
       "x=3x5x8: the model cannot have these sizes: ",
       "(Reshape",
       "; sizes that fit: x=3x4x8 or x=3x6x8"},
      {kPairs,
       {.shapes = {{"x", {-1, 5, 8}}}},
       "x=?x5x8: the model cannot have these sizes: ",
       "(Reshape",
       "; sizes that fit: x=?x4x8 or x=?x6x8"},
      // Both sizes must change.
      {kHalves,
       {.dims = {{"h", 100}, {"w", 100}}},
       "h=100, w=100: the model cannot have these sizes: ",
       "(Concat",
       "; sizes that fit: h=96,w=96 or h=104,w=104"},
      {kHalves,
       {.shapes = {{"x", {1, 1, 100, 96}}}},
       "x=1x1x100x96: the model cannot have these sizes: ",
       "(Concat",
       "; sizes that fit: x=1x1x96x96 or x=1x1x104x96"},
      {kOneWidth,
       {.dims = {{"width", 10}}},
       "width=10: the model cannot have this size: ",
       "(MatMul",
       "; sizes that fit: width=224"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.fitting);
    const absl::Status status = ErrorAt(c.model, c.options);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(StartsWith(std::string("model in memory: ") + c.sizes),
                                       HasSubstr(c.node), EndsWith(c.fitting),
                                       Not(HasSubstr("onnx.checker")))));
    EXPECT_TRUE(IsUsageError(status));
    EXPECT_THAT(ReasonOf(status),
                AllOf(StartsWith("node "), HasSubstr(c.node), Not(HasSubstr(";"))));
  }
}

TEST(RefusedSizes, WithoutOneThatFitsOthersAreAskedFor) {
  const absl::Status status =
      ErrorAt("g (float[1,n] x, float[99,1] z) => (float[1,1] y) { y = MatMul(x, z) }",
              {.dims = {{"n", 10}}});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, EndsWith("; give other sizes")));
}

TEST(RefusedSizes, AModelThatIsRefusedAtAnySizeIsAtFault) {
  constexpr char kBroken[] =
      "g (float[n,8] x, float[3,4] z) => (float[n,8] y, float[3,3] u) "
      "{ y = Relu(x) u = MatMul(z, z) }";
  for (const ImportOptions& options : {ImportOptions(), ImportOptions{.dims = {{"n", 2}}},
                                       ImportOptions{.shapes = {{"x", {2, 8}}}}}) {
    const absl::Status status = ErrorAt(kBroken, options);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("(MatMul"), EndsWith("run onnx.checker on it"))));
    EXPECT_FALSE(IsUsageError(status));
  }
}

TEST(RefusedSizes, TheSearchIsAnOption) {
  const absl::Status status = ErrorAt(kPairs, {.dims = {{"n", 5}}, .find_sizes = false});
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, Not(HasSubstr("that fit"))));
  EXPECT_TRUE(IsUsageError(status));
  EXPECT_THAT(ReasonOf(status), StartsWith("node "));
}

}  // namespace
}  // namespace anemone
