// The device of macOS on the stand-in: the same bits as the software engine, and the rules of
// device.md.
#include "engine/apple/apple_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "apple_fact_table.h"  // generated
#include "engine/apple/facts.h"
#include "engine/apple/model_files.h"
#include "engine/apple/open_driver.h"
#include "tests/apple/on_standin.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kNothing[] = "objects 0, surfaces 0, loaded 0, mapped 0";

const Dims kSmall = MakeDims(1, 3, 5, 7), kLarge = MakeDims(1, 300, 10, 40);

class AppleDeviceTest : public testing::Test {
 public:
  ~AppleDeviceTest() override {
    device_.reset();
    EXPECT_EQ(LiveText(), kNothing);
  }

 protected:
  AppleDeviceTest() {
    SetFault("");
    history_.Restart([this] { return now_; });
    device_ = TestDevice(history_, waited_);
  }

  // Runs the network on both devices.
  void ExpectSameBits(const Network& network, Route route) {
    auto exact = ExactDevice();
    const auto want = exact->Compile(network, HostTarget(), route);
    const auto got = device_->Compile(network, HostTarget(), route);
    ASSERT_THAT(want, IsOk());
    ASSERT_THAT(got, IsOk());
    const auto wanted = Results(*exact, **want), results = Results(*device_, **got);
    ASSERT_THAT(wanted, IsOk());
    ASSERT_THAT(results, IsOk());
    EXPECT_EQ(*results, *wanted);
  }

  absl::Time now_ = absl::UnixEpoch();
  absl::Duration waited_;
  CompileHistory history_;
  std::unique_ptr<Device> device_;
};

TEST_F(AppleDeviceTest, HasTheBitsOfTheSoftwareEngineOnBothRoutes) {
  for (Route route : {Route::kNetplist, Route::kMil}) {
    ExpectSameBits(SmallNetwork(route, kSmall, kSmall), route);
    ExpectSameBits(SmallNetwork(route, kLarge, kLarge), route);
    // Surfaces of two sizes, and rows that are padded.
    ExpectSameBits(SmallNetwork(route, kLarge, MakeDims(1, 1, 1, 1)), route);
  }
}

TEST_F(AppleDeviceTest, UsesTheStridesOfTheLiveLists) {
  SetFault("wide");
  ExpectSameBits(SmallNetwork(Route::kNetplist, kSmall, kSmall), Route::kNetplist);
}

TEST_F(AppleDeviceTest, ModelsWithTheSameTextAndOtherWeightsKeepTheirWeights) {
  for (Route route : {Route::kNetplist, Route::kMil}) {
    std::vector<std::unique_ptr<Program>> programs;
    for (float weight : {2.0f, 3.0f, 2.0f}) {
      auto program =
          device_->Compile(SmallNetwork(route, kSmall, kSmall, weight), HostTarget(), route);
      ASSERT_THAT(program, IsOk());
      programs.push_back(*std::move(program));
    }
    const auto two = Results(*device_, *programs[0]), three = Results(*device_, *programs[1]);
    programs[0].reset();  // shares its folder with the third
    const auto again = Results(*device_, *programs[2]);
    ASSERT_THAT(again, IsOk());
    EXPECT_EQ(*two, *again);
    EXPECT_NE(*two, *three);
  }
}

TEST_F(AppleDeviceTest, RunsFromSeveralThreads) {
  auto program = device_->Compile(SmallNetwork(Route::kNetplist, kSmall, kSmall), HostTarget(),
                                  Route::kNetplist);
  ASSERT_THAT(program, IsOk());
  const auto want = Results(*device_, **program);
  ASSERT_THAT(want, IsOk());
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5; ++k) EXPECT_EQ(*Results(*device_, **program), *want);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(AppleDeviceTest, RefusesAnotherTargetThanTheMachines) {
  const Network network = SmallNetwork(Route::kNetplist, kSmall, kSmall);
  EXPECT_THAT(
      device_->Compile(network, **FindTarget("h16"), Route::kNetplist),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("is for h16"), HasSubstr("Apple M1"), HasSubstr("--target h13"))));
  EXPECT_EQ(*AppleHostTarget(), &HostTarget());
}

TEST_F(AppleDeviceTest, RefusesWhatTheTargetRefusesWithoutACompile) {
  Network wide = SmallNetwork(Route::kNetplist, kSmall, kSmall);
  wide.inputs[0].dims = MakeDims(1, 3, 5, 16385);  // which the builder would refuse
  const int before = CountsOfStandin().compiles;
  EXPECT_THAT(
      device_->Compile(wide, HostTarget(), Route::kNetplist),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("h13 refuses the network")));
  EXPECT_EQ(CountsOfStandin().compiles, before);
}

TEST(ModelFiles, MilIsOnlyForTargetsThatHaveIt) {
  const Network network = SmallNetwork(Route::kNetplist, kSmall, kSmall);
  int without = 0;
  for (const Target& target : AllTargets()) {
    if (target.mil_route()) continue;
    ++without;
    EXPECT_THAT(
        apple::WriteModelFiles(network, target, Route::kMil),
        StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("does not have the MIL route")));
  }
  EXPECT_GT(without, 0);
}

TEST_F(AppleDeviceTest, WaitsAfterAFailedCompile) {
  const Network network = SmallNetwork(Route::kNetplist, kSmall, kSmall);
  SetFault("compile#1");
  EXPECT_FALSE(device_->Compile(network, HostTarget(), Route::kNetplist).ok());
  EXPECT_EQ(waited_, absl::ZeroDuration());
  now_ += absl::Seconds(5);
  // Begin() would refuse; the test's wait moves no clock.
  EXPECT_THAT(device_->Compile(network, HostTarget(), Route::kNetplist),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("pause")));
  EXPECT_EQ(waited_, absl::Seconds(10));
  now_ += absl::Seconds(10);
  EXPECT_THAT(device_->Compile(network, HostTarget(), Route::kNetplist), IsOk());
}

TEST_F(AppleDeviceTest, StopsAtTheLimitOfCompiles) {
  for (int i = 0; i < 119; ++i) ASSERT_TRUE(history_.Begin().ok());
  const int before = CountsOfStandin().compiles;
  EXPECT_THAT(device_->Compile(SmallNetwork(Route::kNetplist, kSmall, kSmall), HostTarget(),
                               Route::kNetplist),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("compile 120"), HasSubstr("another process"))));
  EXPECT_EQ(CountsOfStandin().compiles, before);
}

TEST_F(AppleDeviceTest, TellsTheTargetOfEachChip) {
  const std::pair<const char*, const char*> kChips[] = {
      {"Apple M1", "h13"}, {"Apple M1 Pro", "h13g"}, {"Apple M4 Max", "h16g"}};
  for (const auto& [chip, name] : kChips) {
    const Target* target = apple::TargetOfChip(chip);
    ASSERT_NE(target, nullptr) << chip;
    EXPECT_EQ(target->option_name(), name);
  }
  EXPECT_EQ(apple::TargetOfChip("Intel(R) Core(TM) i7"), nullptr);
  EXPECT_EQ(apple::TargetOfChip(""), nullptr);
}

TEST(AppleFacts, AreNamedOnceAndHaveASource) {
  std::vector<std::string> names;
  for (const AppleFact* fact : AllAppleFacts()) {
    EXPECT_NE(std::string(fact->source), "") << fact->id;
    const bool is_message =
        fact->kind <= AppleKind::kOtherForm;  // the first three kinds have an owner
    EXPECT_EQ(fact->owner != nullptr, is_message) << fact->id;
    names.push_back(fact->name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace anemone
