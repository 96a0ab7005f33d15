// Netplists: names and damaged documents. Property lists: damaged and deeply nested lists.
#include "engine/formats/netplist.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/authored_unit.h"
#include "engine/formats/property_list.h"
#include "kernels/lowering.h"
#include "tests/engine/netplist_form_case.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

TEST(Netplist, NamesAUnitThatHasNoForm) {
  Network network = NetworkOf({"L2Normalization", {kImage}, R"({"Dimension": ["Channel"]})"});
  EXPECT_THAT(
      WriteNetplist(network, FormStatus::kKnown).status(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("unit 'unit': the keys of L2Norm")));
  EXPECT_TRUE(WriteNetplist(network, FormStatus::kUnverified).ok());
}

TEST(Netplist, NamesThatClashAreKeptApart) {
  NetworkBuilder c(FormTarget(), Route::kNetplist);
  Operand x = c.AddInput("Units", kImage);
  const Operand y = AddAuthoredUnit(c, *FindUnitKind("Neuron"), {{"Type", "ReLU"}}, {x}, {}, "y");
  const Operand z =
      AddAuthoredUnit(c, *FindUnitKind("ElementWise"), {{"Type", "Add"}}, {y, x}, {}, "y");
  c.AddOutput("y", z);
  auto written = WriteNetplist(c.network(), FormStatus::kKnown);
  ASSERT_TRUE(written.ok()) << written.status();
  NetworkBuilder again(FormTarget(), Route::kNetplist);
  ASSERT_TRUE(ReadNetplist(written->document, ZeroWeights, FindUnitKind, again).ok());
  EXPECT_EQ(again.network().outputs[0].name, "y");
  EXPECT_EQ(again.network().units[1].bottoms, c.network().units[1].bottoms);
}

// Replaces each value of the document by values of other types, and removes each key.
void Spoil(Json& at, const std::function<void()>& look) {
  if (at.is_structured()) {
    for (Json& below : at) Spoil(below, look);
  }
  const Json kept = at;
  for (const Json& bad : {Json(-1), Json(int64_t{1} << 40), Json("x"), Json(true), Json::array(),
                          Json::object(), Json(0.5)}) {
    at = bad;
    look();
  }
  at = kept;
  if (!at.is_object()) return;
  for (const auto& [key, value] : kept.items()) {
    at.erase(key);
    look();
    at = kept;
  }
}

TEST(Netplist, AnyDamageIsAnError) {
  auto written =
      WriteNetplist(NetworkOf({"Conv", {kImage}, kConvKeys, {6, 4, 3, 3}}), FormStatus::kKnown);
  int count = 0;
  Spoil(written->document, [&] {
    NetworkBuilder c(FormTarget(), Route::kNetplist);
    ReadNetplist(written->document, ZeroWeights, FindUnitKind, c).IgnoreError();
    ++count;
  });
  EXPECT_GT(count, 500);
}

TEST(PropertyList, AnyCutIsAnError) {
  Json json = {{"a", {1, -2, 0.5, true, "text <&>"}}, {"b", {{"c", Json::object()}}}};
  for (PropertyListForm form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
    std::string bytes = WritePropertyList(json, form);
    auto read = ReadPropertyList(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->dump(), json.dump());
    for (size_t size = 0; size < bytes.size(); ++size) {
      ReadPropertyList(bytes.substr(0, size)).status().IgnoreError();
      std::string spoilt = bytes;
      spoilt[size] ^= 0x55;
      ReadPropertyList(spoilt).status().IgnoreError();
    }
  }
  EXPECT_FALSE(ReadPropertyList("").ok());
  EXPECT_FALSE(ReadPropertyList("{}").ok());
}

// libplist would end the process.
TEST(PropertyList, TextHasNoZeroByte) {
  const Json json = {{"key", "text"}, {"k\u00e9y", "t\u00e9xt"}};
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("zero byte"));
  for (PropertyListForm form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
    const std::string bytes = WritePropertyList(json, form);
    for (const char* word : {"key", "text"}) {
      std::string spoilt = bytes;
      spoilt[spoilt.find(word)] = 0;
      EXPECT_THAT(ReadPropertyList(spoilt).status(), refused) << word;
    }
  }
  std::string wide = WritePropertyList(json, PropertyListForm::kBinary);
  wide[wide.find(std::string("\0k", 2)) + 1] = 0;  // in UTF-16
  EXPECT_THAT(ReadPropertyList(wide).status(), refused);
  for (const char* zero : {"&#0;", "&#x0;", "&#00;"}) {
    const std::string text = absl::StrCat("<plist version=\"1.0\"><dict><key>k", zero,
                                          "</key><string>s", zero, "</string></dict></plist>");
    ReadPropertyList(text).status().IgnoreError();
  }
}

TEST(PropertyList, DepthIsLimited) {
  std::string deep = "<?xml version=\"1.0\"?><plist version=\"1.0\">";
  for (int i = 0; i < 100000; ++i) deep += "<array>";
  EXPECT_THAT(ReadPropertyList(deep).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("deeper than 64")));
  // Object 0 is an array that contains itself twice.
  std::string circle("bplist00\xA2\x00\x00\x08", 12);
  circle += std::string(6, '\0') + std::string("\x01\x01", 2) + std::string(7, '\0') + '\x01' +
            std::string(8, '\0') + std::string(7, '\0') + '\x0B';
  EXPECT_THAT(ReadPropertyList(circle).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("property list")));
}

// Each of 30 arrays holds the next one twice: 2^30 objects in 150 bytes.
TEST(PropertyList, ObjectsAreLimited) {
  constexpr int kArrays = 30;
  std::string doubling = "bplist00", offsets;
  for (int i = 0; i < kArrays; ++i) {
    offsets.push_back(static_cast<char>(doubling.size()));
    doubling += {'\xA2', static_cast<char>(i + 1), static_cast<char>(i + 1)};
  }
  offsets.push_back(static_cast<char>(doubling.size()));
  doubling += '\x09';  // true
  const auto at = static_cast<char>(doubling.size());
  doubling += offsets + std::string(6, '\0') + std::string("\x01\x01", 2) + std::string(7, '\0') +
              static_cast<char>(kArrays + 1) + std::string(15, '\0') + at;
  EXPECT_THAT(ReadPropertyList(doubling).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("too many objects")));
}

}  // namespace
}  // namespace anemone
