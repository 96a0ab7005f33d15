// Texts for users: wrapping, and names that are nearly right.
#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "base/annotated.h"
#include "base/byte_sizes.h"
#include "base/near_names.h"
#include "base/printable.h"
#include "base/quoted_for_shell.h"
#include "base/usage_error.h"
#include "base/wrapped_text.h"
#include "tests/cpu_seconds.h"

namespace anemone {
namespace {

TEST(Printable, EscapesWhatControlsTurnsOrPrintsNothing) {
  EXPECT_EQ(Printable("a\x1b[31m\n\x7f"), "a\\033[31m\\n\\177");
  EXPECT_EQ(Printable("a\u202eb\u2066\u200f\ufeff"), "a\\u202eb\\u2066\\u200f\\ufeff");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m\u061c"),
            "\\u009b31m\\u061c");  // 9b begins a sequence too
  EXPECT_EQ(Printable("\u00e9 \u05d0 \u4e2d \U0001f600"), "\u00e9 \u05d0 \u4e2d \U0001f600");
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(Printable("cut \xe2\x80"), "cut \\342\\200");
  EXPECT_EQ(Printable("a\x9b"
                      "31m\xff"),
            "a\\23331m\\377");  // 9b begins a sequence on a terminal of 8 bits
  EXPECT_EQ(Printable("\xc0\xaf \xe0\x80\xaf"),
            "\\300\\257 \\340\\200\\257");                           // too long forms of '/'
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\355\\240\\200");           // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\364\\220\\200\\200");  // above 10ffff
  EXPECT_EQ(Printable("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
}

TEST(QuotedForShell, QuotesOnlyWhatAShellReads) {
  EXPECT_EQ(QuotedForShell("x=1x3,/a_b-c.onnx:0"), "x=1x3,/a_b-c.onnx:0");
  EXPECT_EQ(QuotedForShell("past + 1"), "'past + 1'");
  EXPECT_EQ(QuotedForShell("it's"), "'it'\\''s'");
}

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
  EXPECT_EQ(CutAtStart("aéééééé", 5), "...éé");
  EXPECT_EQ(CutAtStart("12345", 5), "12345");
}

TEST(CutAtStart, TakesLinearTime) {
  std::string name;
  for (int i = 0; i < 100'000; ++i) name += "0123456789";
  const double few = CpuSeconds([&] { CutAtStart(name, 30); });
  for (int i = 0; i < 900'000; ++i) name += "0123456789";
  const double many = CpuSeconds([&] { CutAtStart(name, 30); });
  EXPECT_LT(many, few * kAtMostLinear);
}

std::optional<int64_t> Parsed(absl::string_view text) {
  const auto bytes = ParseBytes(text);
  return bytes.ok() ? std::optional(*bytes) : std::nullopt;
}

TEST(Bytes, UnitsAreReadAsPeopleWriteThem) {
  EXPECT_EQ(Parsed("0"), 0);
  EXPECT_EQ(Parsed("17"), 17);
  EXPECT_EQ(Parsed("17b"), 17);
  EXPECT_EQ(Parsed("2K"), 2048);
  EXPECT_EQ(Parsed("2 KiB"), 2048);
  EXPECT_EQ(Parsed("2kb"), 2000);
  EXPECT_EQ(Parsed("512M"), 512 << 20);
  EXPECT_EQ(Parsed("512mib"), 512 << 20);
  EXPECT_EQ(Parsed("1MB"), 1'000'000);
  EXPECT_EQ(Parsed("1.5 GB"), 1'500'000'000);
  EXPECT_EQ(Parsed("0.5GiB"), 1 << 29);
  EXPECT_EQ(Parsed("3g"), int64_t{3} << 30);
  EXPECT_EQ(Parsed("8589934591G"), int64_t{8589934591} << 30);
}

TEST(Bytes, OtherTextsAreErrors) {
  for (const char* text : {"", "much", "-1", "1T", "K", "MB", "1.5", "1 M B", "1e3M", "0x10",
                           "1.2.3K", "9223372036854775808", "8589934592G", "9e9G", "inf", "nan"}) {
    EXPECT_EQ(Parsed(text), std::nullopt) << text;
  }
}

TEST(Bytes, AreWrittenInPowersOf1024) {
  EXPECT_EQ(BytesText(0), "0 B");
  EXPECT_EQ(BytesText(1000), "1000 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(int64_t{3} << 30), "3.0 GiB");
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
