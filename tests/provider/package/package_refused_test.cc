// Packages that are damaged, stale or foreign: each is refused with the name of what is wrong.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/table_hash.h"
#include "provider/package/network_text.h"
#include "provider/package/package.h"
#include "tests/provider/package/packages.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;

struct Bad {
  const char* name;
  std::string (*make)();
  absl::StatusCode code;
  std::vector<std::string> words;
};

template <class F>
std::string With(F change) {
  PackageParts parts = PackageParts::Of(SmallBytes());
  change(parts);
  return parts.Sealed();
}

std::string WithNetwork(const std::function<std::string(Json)>& change) {
  return anemone::WithNetwork(SmallBytes(), change);
}

std::string WithUnits(const std::function<void(std::vector<TemplateUse>&)>& change) {
  return anemone::WithNetwork(
      SmallBytes(), [](const Json& json) { return WriteNetworkText(json); }, change);
}

constexpr auto kForeign = absl::StatusCode::kInvalidArgument;

const Bad kBad[] = {
    {"empty", [] { return std::string(); }, kForeign, {"not a package"}},
    {"foreign", [] { return std::string(500, 'x'); }, kForeign, {"not a package"}},
    {"cut in the header", [] { return SmallBytes().substr(0, 40); }, kDamaged, {"byte 40"}},
    {"cut at the end",
     [] { return SmallBytes().substr(0, SmallBytes().size() - 65); },
     kDamaged,
     {"section 'weights' is cut off"}},
    {"cut in the padding at the end",
     [] {
       Package package = SmallPackage();
       package.extensions = {{"three bytes", Tensor::Zeros(DataType::kUInt8, {3})}};
       std::string bytes = *WritePackage(package);
       bytes.pop_back();
       return bytes;
     },
     kDamaged,
     {"is cut off after a section"}},
    {"a bit of the header",
     [] {
       std::string bytes = SmallBytes();
       bytes[60] ^= 4;
       return bytes;
     },
     kDamaged,
     {"header", "compile the model again"}},
    {"a bit of the weights",
     [] {
       std::string bytes = SmallBytes();
       bytes[bytes.size() - 200] ^= 1;
       return bytes;
     },
     kDamaged,
     {"section 'weights' does not match its checksum"}},
    {"the major before, whose networks were JSON alone",
     [] { return With([](PackageParts& p) { p.major = 2; }); },
     absl::StatusCode::kUnimplemented,
     {"format 2.0", "written by tests", "reads 3.x", "compile the model again"}},
    {"later major",
     [] { return With([](PackageParts& p) { p.major = 4; }); },
     absl::StatusCode::kUnimplemented,
     {"format 4.0", "written by tests", "reads 3.x"}},
    {"other tables",
     [] { return With([](PackageParts& p) { p.tables = "0123abc"; }); },
     kStale,
     {"0123abc", std::string(TableHash()), "compile the model again"}},
    {"another target",
     [] { return With([](PackageParts& p) { p.target = "h99"; }); },
     kDamaged,
     {"unknown target"}},
    {"refused by its target",
     [] { return With([](PackageParts& p) { p.target = "h11"; }); },
     kStale,
     {"h11 refuses it", "compile the model again"}},
    {"no weights",
     [] { return With([](PackageParts& p) { p.sections.resize(1); }); },
     kDamaged,
     {"section is missing"}},
    {"weights twice",
     [] { return With([](PackageParts& p) { p.sections.push_back(p.sections[1]); }); },
     kDamaged,
     {"'weights' appears twice"}},
    {"fewer weights",
     [] { return With([](PackageParts& p) { p.sections[1].bytes.resize(64); }); },
     kDamaged,
     {"segment 1", "of weights of 64"}},
    {"no segments",
     [] { return With([](PackageParts& p) { p.sections[0].bytes = "x"; }); },
     kDamaged,
     {"not a valid FlatBuffer"}},
    {"no network",
     [] { return WithNetwork([](Json) { return std::string(); }); },
     kDamaged,
     {"segment 1", "its network is not JSON at byte 1"}},
    {"a network cut off",
     [] {
       return WithNetwork([](const Json& json) {
         const std::string text = WriteNetworkText(json);
         return text.substr(0, text.size() / 2);
       });
     },
     kDamaged,
     {"not JSON at byte"}},
    {"something after the network",
     [] { return WithNetwork([](const Json& json) { return WriteNetworkText(json) + "{}"; }); },
     kDamaged,
     {"not JSON at byte"}},
    {"a name that is not UTF-8",
     [] { return WithNetwork([](Json) { return std::string("{\"inputs\": \"\xff\"}"); }); },
     kDamaged,
     {"not JSON at byte 13"}},
    {"deep arrays",
     [] { return WithNetwork([](Json) { return std::string(1 << 20, '['); }); },
     kDamaged,
     {"nested deeper than 16"}},
    {"deep objects",
     [] {
       return WithNetwork([](Json) {
         std::string text;
         for (int i = 0; i < 1 << 18; ++i) text += "{\"a\":";
         return text;
       });
     },
     kDamaged,
     {"nested deeper than 16"}},
    {"a number beyond 64 bits",
     [] {
       return WithNetwork([](Json json) {
         json["inputs"][0]["dims"][0] = uint64_t{1} << 63;
         return WriteNetworkText(json);
       });
     },
     kDamaged,
     {"segment 1", "a 64-bit integer"}},
    {"a number beyond a double",
     [] { return WithNetwork([](Json) { return std::string("{\"inputs\": 1e999}"); }); },
     kDamaged,
     {"not JSON at byte"}},
    {"many keys",
     [] {
       return WithNetwork([](Json json) {
         for (int i = 0; i < 1000; ++i) json[absl::StrCat("key ", i)] = i;
         return WriteNetworkText(json);
       });
     },
     kDamaged,
     {"an object of more than 256 keys"}},
    {"an operand out of range",
     [] {
       return WithUnits([](std::vector<TemplateUse>& units) {
         units[0].bottoms[0] = {Operand::Source::kUnit, 7};
       });
     },
     kDamaged,
     {"segment 1", "an operand that exists"}},
    {"an operand of no kind",
     [] {
       return WithUnits([](std::vector<TemplateUse>& units) {
         units[0].bottoms[0].source = static_cast<Operand::Source>(3);
       });
     },
     kDamaged,
     {"segment 1", "an operand that does not exist"}},
    {"a template out of range",
     [] { return WithUnits([](std::vector<TemplateUse>& units) { units[0].index = 1000; }); },
     kDamaged,
     {"segment 1", "a template that exists"}},
    {"a unit without its operands",
     [] { return WithUnits([](std::vector<TemplateUse>& units) { units[0].bottoms.clear(); }); },
     kStale,
     {"segment 1"}},
    {"huge dims",
     [] {
       return WithNetwork([](Json json) {
         json["inputs"][0]["dims"] = {1, 1, int64_t{1} << 40, int64_t{1} << 40, 1};
         return WriteNetworkText(json);
       });
     },
     kDamaged,
     {"segment 1"}},
    {"a tensor less",
     [] {
       return WithNetwork([](Json json) {
         json["templates"][0]["weights"].erase(1);  // the bias
         return WriteNetworkText(json);
       });
     },
     kDamaged,
     {"segment 1", "value"}},
    {"a weight of another shape",
     [] {
       return WithNetwork([](Json json) {
         for (Json& unit : json["templates"]) {
           for (Json& weight : unit["weights"]) weight["dims"] = {1, 1};
         }
         return WriteNetworkText(json);
       });
     },
     kDamaged,
     {"a value of float32 1x1"}},
    {"an unknown key",
     [] {
       return WithNetwork([](Json json) {
         json["templates"][0]["params"]["Colour"] = "red";
         return WriteNetworkText(json);
       });
     },
     kDamaged,
     {"Colour"}},
    {"an unknown kind",
     [] {
       return WithNetwork([](Json json) {
         json["templates"][0]["type"] = "Oracle";
         return WriteNetworkText(json);
       });
     },
     kDamaged,
     {"Oracle"}},
    {"another port",
     [] {
       return WithNetwork([](Json json) {
         json["inputs"].push_back(json["inputs"][0]);
         return WriteNetworkText(json);
       });
     },
     kDamaged,
     {"inputs"}},
};

TEST(RefusedPackage, IsNamed) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.name);
    const absl::Status status = ReadPackage(bad.make(), nullptr).status();
    EXPECT_EQ(status.code(), bad.code) << status;
    for (const std::string& words : bad.words) EXPECT_THAT(status.message(), HasSubstr(words));
  }
}

}  // namespace
}  // namespace anemone
