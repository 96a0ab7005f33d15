// Texts for users: wrapping, and names that are nearly right.
#include <gmock/gmock.h>

#include <cstdlib>

#include "base/annotated.h"
#include "base/near_names.h"
#include "base/usage_error.h"
#include "base/wrapped_text.h"

namespace anemone {
namespace {

TEST(Wrapped, BreaksLongLinesAtSpaces) {
  EXPECT_EQ(Wrapped("  one two three", 11, 4), "  one two\n    three");
  EXPECT_EQ(Wrapped("one two three", 13, 0), "one two three");
  EXPECT_EQ(Wrapped("one two three", 12, 0), "one two\nthree");
  EXPECT_EQ(Wrapped("a unbreakable b", 5, 2), "a\n  unbreakable\n  b");
  EXPECT_EQ(Wrapped("", 5, 2), "");
}

TEST(Wrapped, KeepsLineEndsAndTablesThatFit) {
  EXPECT_EQ(Wrapped("a   b\n\none two\n", 5, 1), "a   b\n\none\n two\n");
}

TEST(Wrapped, CountsCharacters) {
  EXPECT_EQ(Columns("é→x"), 3);
  EXPECT_EQ(Wrapped("éé éé", 5, 0), "éé éé");
  EXPECT_EQ(Cut("éééééé", 5), "éé...");
  EXPECT_EQ(Cut("12345", 5), "12345");
}

TEST(Wrapped, TheEnvironmentSaysTheWidth) {
  setenv("COLUMNS", "123", 1);
  EXPECT_EQ(TerminalWidth(), 123);
  setenv("COLUMNS", "1", 1);
  EXPECT_GE(TerminalWidth(), 20);
  unsetenv("COLUMNS");
}

TEST(NearNames, AQuestionOnlyForLikelyNames) {
  const std::vector<std::string> known = {"check", "confirm", "compile", "completion", "run"};
  EXPECT_EQ(DidYouMean("chek", known), "did you mean check?");
  EXPECT_EQ(DidYouMean("Confrim", known), "did you mean confirm?");
  EXPECT_EQ(DidYouMean("comp", known), "did you mean compile or completion?");
  EXPECT_EQ(DidYouMean("zoo", known), "");
  EXPECT_EQ(DidYouMean("", known), "");
}

TEST(UsageError, StaysOneWhenAPlaceIsAdded) {
  EXPECT_TRUE(IsUsageError(Annotated(UsageError("--dim x"), "net.onnx")));
  EXPECT_FALSE(IsUsageError(Annotated(absl::InvalidArgumentError("bad"), "net.onnx")));
  EXPECT_TRUE(AsUsageError(absl::OkStatus()).ok());
}

}  // namespace
}  // namespace anemone
