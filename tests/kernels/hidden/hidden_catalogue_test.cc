// The catalogue of hidden layers as a table: for each layer the netplist form of its unit, the
// targets that accept it, the largest error of the software engine against the plain reference, and
// the result of reading the netplist back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "engine/formats/netplist_form.h"
#include "engine/hidden_layer.h"
#include "kernels/lowering.h"
#include "tests/kernels/hidden/hidden_examples.h"
#include "tests/round_trip.h"

namespace anemone {
namespace {

// The only layer whose formula is not published.
constexpr char kWithoutFormula[] = "MatrixDecomposition";

std::string FormText(const Network& network) {
  const Unit& unit = network.units[0];
  const UnitForm form = FormOf(unit, network.BottomsOf(unit));
  if (form.status == FormStatus::kKnown) return "seen";
  if (unit.kind->spell.compose) return "by rule";
  return form.status == FormStatus::kUnverified ? "unverified" : "unknown";
}

// "A14 and later: 20 of 28", or a list of the targets if they are not all targets from a family on.
std::string TargetsText(const Network& network) {
  const Unit& unit = network.units[0];
  const auto takes = [&](const Target& target) {
    return CheckUnit(unit, network.BottomsOf(unit), target, Route::kNetplist).accepted;
  };
  std::vector<std::string> names;
  const Target* oldest = nullptr;
  for (const Target& target : AllTargets()) {
    if (!takes(target)) continue;
    names.emplace_back(target.option_name());
    const bool older = target.family_index() &&
                       (oldest == nullptr || *target.family_index() < *oldest->family_index());
    if (older) oldest = &target;
  }
  const std::string count = absl::StrCat(names.size(), " of ", AllTargets().size());
  if (oldest == nullptr) return absl::StrCat(absl::StrJoin(names, " "), ": ", count);
  const bool by_family =
      std::all_of(AllTargets().begin(), AllTargets().end(), [&](const Target& t) {
        return !t.family_index() || takes(t) == (*t.family_index() >= *oldest->family_index());
      });
  return by_family ? absl::StrCat(oldest->family(), " and later: ", count)
                   : absl::StrCat(absl::StrJoin(names, " "), ": ", count);
}

std::string RoundTripText(const Example& example, const Network& network) {
  for (PropertyListForm form : {PropertyListForm::kXml, PropertyListForm::kBinary}) {
    const NetplistOptions options{.verified_only = false, .form = form};
    auto format = FindEngineFormat("netplist", options);
    if (!format.ok()) return format.status().ToString();
    const TemporaryFolder folder(testing::TempDir());
    absl::Status status = CheckRoundTrip(network, **FindTarget(example.unit.target), **format,
                                         options, folder.path());
    if (absl::IsUnimplemented(status)) return "no form";
    if (!status.ok()) return status.ToString();
  }
  return "same bits";
}

void PrintRow(const std::string& unit, const std::string& form, const std::string& targets,
              const std::string& error, const std::string& round_trip) {
  std::printf("%-27s %-10s %-30s %-18s %s\n", unit.c_str(), form.c_str(), targets.c_str(),
              error.c_str(), round_trip.c_str());
}

void PrintExample(const Example& example) {
  auto network = NetworkOf(example.unit);
  ASSERT_TRUE(network.ok()) << network.status();
  auto result = RunNetwork(*network, example.unit);
  ASSERT_TRUE(result.ok()) << result.status();
  auto errors = ErrorsOf(example, *result);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_EQ(errors->beyond, "");
  const std::string targets = TargetsText(*network);
  EXPECT_NE(targets, "");
  const std::string round_trip = RoundTripText(example, *network);
  EXPECT_TRUE(round_trip == "same bits" || round_trip == "no form") << round_trip;
  const absl::Status packaged =
      CheckPackageRoundTrip(*network, **FindTarget(example.unit.target), Route::kNetplist);
  EXPECT_TRUE(packaged.ok()) << packaged;
  PrintRow(example.unit.type, FormText(*network), targets,
           errors->absolute == 0
               ? "none"
               : absl::StrFormat("%.2g, %.2f ulp", errors->absolute, errors->ulps),
           round_trip);
}

TEST(HiddenCatalogue, EveryRowIsAUnitThatKeepsItsBound) {
  std::map<std::string, Example> examples;
  for (Example& example : HiddenExamples()) {
    const std::string type = example.unit.type;
    EXPECT_TRUE(examples.emplace(type, std::move(example)).second) << type << " has two examples";
  }
  PrintRow("unit", "netplist", "targets", "largest error", "round trip");
  ASSERT_GT(HiddenLayers().size(), 0);
  for (const HiddenLayer& layer : HiddenLayers()) {
    SCOPED_TRACE(layer.type);
    const UnitKind* kind = FindUnitKind(layer.type);
    ASSERT_NE(kind, nullptr) << "the catalogue's row has no unit";
    auto example = examples.find(layer.type);
    if (example != examples.end()) {
      PrintExample(example->second);
      examples.erase(example);
      continue;
    }
    EXPECT_STREQ(layer.type, kWithoutFormula) << "the catalogue's row has no example";
    EXPECT_FALSE(kind->computes());
    Authored unit{
        layer.type, {{"Type", "CrossProductOrthoNormalization"}}, {Random(At(1, 1, 6, 1, 1))}};
    auto network = NetworkOf(unit);
    ASSERT_TRUE(network.ok()) << network.status();
    PrintRow(layer.type, FormText(*network), TargetsText(*network), "not run",
             "what it computes is in no table");
  }
  EXPECT_TRUE(examples.empty()) << examples.begin()->first << " is not a row of the catalogue";
}

}  // namespace
}  // namespace anemone
