// JSON of strangers is parsed within bounds.
#include "engine/formats/parse_json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

std::string Nested(int levels, const char* open, const char* close) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += "0";
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

std::string WithKeys(int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", "\"k", i, "\":0");
  return text + "}";
}

TEST(ParseJson, AcceptsUpToItsBounds) {
  for (const std::string& text :
       {std::string("{\"a\": [1, {\"b\": null}]}"), Nested(kDeepestJson, "[", "]"),
        Nested(kDeepestJson, "{\"a\":", "}"), WithKeys(kMostJsonKeys),
        absl::StrCat("[", WithKeys(kMostJsonKeys), ",", WithKeys(kMostJsonKeys), "]")}) {
    const absl::StatusOr<Json> parsed = ParseJson(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, Json::parse(text));
  }
}

TEST(ParseJson, SaysWhatIsWrong) {
  const struct {
    std::string text;
    const char* message;
  } kBad[] = {{"", "is not valid JSON"},
              {"{\"a\": 1", "is not valid JSON"},
              {"1e999", "is not valid JSON"},
              {"\"\xff\"", "is not valid JSON"},
              {Nested(kDeepestJson + 1, "[", "]"), "nested deeper than 16"},
              {Nested(kDeepestJson + 1, "{\"a\":", "}"), "nested deeper than 16"},
              {std::string(1 << 22, '['), "nested deeper than 16"},
              {WithKeys(kMostJsonKeys + 1), "more than 1000 keys"},
              {absl::StrCat("[", WithKeys(kMostJsonKeys + 1), "]"), "more than 1000 keys"}};
  for (const auto& bad : kBad) {
    EXPECT_THAT(ParseJson(bad.text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(bad.message)));
  }
}

TEST(IsText, ComparesTexts) {
  EXPECT_TRUE(IsText(Json("sum"), "sum"));
  EXPECT_FALSE(IsText(Json("sum"), "su"));
  EXPECT_FALSE(IsText(Json("sum"), ""));
  for (const Json& other : {Json(), Json(1), Json::array({"sum"}), Json::object()}) {
    EXPECT_FALSE(IsText(other, "sum"));
  }
}

}  // namespace
}  // namespace anemone
