#include "engine/formats/json_writer.h"

#include <limits>

#include "engine/formats/json.h"
#include "gtest/gtest.h"

namespace anemone {
namespace {

std::string Dumped(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

TEST(JsonWriter, WritesWhatJsonDumps) {
  std::string text;
  JsonWriter w(text);
  w.BeginObject();
  w.Key("empty").BeginArray();
  w.EndArray();
  w.Key("list").BeginArray();
  w.Number(int64_t{-3});
  w.Number(0.1);
  w.Number(512.0);
  w.Number(std::numeric_limits<double>::infinity());
  w.BeginObject();
  w.EndObject();
  w.Text("x");
  w.EndArray();
  w.Key("none").TextOrNull("");
  w.Key("some").TextOrNull("y");
  w.Key("count").NumberOrNull(std::optional<int64_t>());
  w.Key("raw").Raw("[1,2]");
  w.EndObject();
  const Json wanted = {
      {"empty", Json::array()}, {"list", {-3, 0.1, 512.0, nullptr, Json::object(), "x"}},
      {"none", nullptr},        {"some", "y"},
      {"count", nullptr},       {"raw", {1, 2}}};
  EXPECT_EQ(text, Dumped(wanted));
}

// Names in models may have any bytes.
TEST(JsonWriter, EscapesTexts) {
  for (const std::string& name :
       {std::string("plain"), std::string("</script>"), std::string("a\"b\\c"),
        std::string("\n\t\x01"), std::string("a\0b", 3), std::string("\xc3\xa9"),
        std::string("\xff\xfe"), std::string("\x7f"), std::string("\xe2\x80\xae"), std::string()}) {
    std::string text;
    JsonWriter(text).Text(name);
    EXPECT_EQ(text, Dumped(Json(name)));
  }
}

}  // namespace
}  // namespace anemone
