// New weights for a program on the device: unload, rewrite the weight files, load, without a
// compile (device.md). A failure leaves the old weights, or a program that says that it is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/apple/fallback_device.h"
#include "tests/apple/on_standin.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kNoneReloaded[] = "objects 0, surfaces 0, loaded 0, mapped 0";
const Dims kReloadedDims = MakeDims(1, 3, 5, 7);

class ReloadTest : public testing::Test {
 public:
  ReloadTest() {
    SetFault("");
    device_ = TestDevice(history_, waited_);
  }
  ~ReloadTest() override {
    SetFault("");
    device_.reset();
    EXPECT_EQ(LiveText(), kNoneReloaded);
  }

 protected:
  std::unique_ptr<Program> Compile(Route route, float weight) {
    auto program = device_->Compile(SmallNetwork(route, kReloadedDims, kReloadedDims, weight),
                                    HostTarget(), route);
    EXPECT_THAT(program, IsOk());
    return program.ok() ? *std::move(program) : nullptr;
  }
  absl::StatusOr<std::unique_ptr<Reload>> Prepare(const Program& program, float weight,
                                                  Route route = Route::kNetplist) {
    return device_->PrepareReload(program,
                                  SmallNetwork(route, kReloadedDims, kReloadedDims, weight));
  }
  std::vector<std::string> Run(const Program& program) {
    auto results = Results(*device_, program);
    EXPECT_THAT(results, IsOk());
    return results.ok() ? *std::move(results) : std::vector<std::string>();
  }

  CompileHistory history_;
  absl::Duration waited_;
  std::unique_ptr<Device> device_;
};

TEST_F(ReloadTest, TheProgramHasTheNewWeightsWithoutACompile) {
  for (Route route : {Route::kNetplist, Route::kMil}) {
    const auto two = Compile(route, 2), three = Compile(route, 3);
    const auto want = Run(*three), before = Run(*two);
    EXPECT_NE(want, before);
    const int compiles = CountsOfStandin().compiles;
    auto reload = Prepare(*two, 3, route);
    ASSERT_THAT(reload, IsOk());
    EXPECT_EQ(Run(*two), before);
    ASSERT_THAT((*reload)->Apply(), IsOk());
    EXPECT_EQ(Run(*two), want);
    ASSERT_THAT((*reload)->Undo(), IsOk());
    EXPECT_EQ(Run(*two), before);
    ASSERT_THAT((*reload)->Apply(), IsOk());
    EXPECT_EQ(Run(*two), want);
    EXPECT_EQ(CountsOfStandin().compiles, compiles);
    // A model with the text that the program was compiled from has its own weights.
    const auto again = Compile(route, 2);
    EXPECT_EQ(Run(*again), before);
    EXPECT_EQ(Run(*two), want);
  }
}

TEST_F(ReloadTest, WhatIsMoreThanNewWeightsIsCompiled) {
  const auto program = Compile(Route::kNetplist, 2);
  EXPECT_THAT(device_->PrepareReload(
                  *program, SmallNetwork(Route::kNetplist, kReloadedDims, MakeDims(1, 1, 1, 1), 2)),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("not only its weights")));
  const auto sharing = Compile(Route::kNetplist, 2);
  EXPECT_THAT(Prepare(*program, 3),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("uses the same folder")));
}

TEST_F(ReloadTest, AFaultLeavesTheOldWeights) {
  for (const char* fault : {"load#1", "map#1", "attributes#1"}) {
    SCOPED_TRACE(fault);
    const auto program = Compile(Route::kNetplist, 2);
    const auto before = Run(*program);
    auto reload = Prepare(*program, 3);
    ASSERT_THAT(reload, IsOk());
    SetFault(fault);
    EXPECT_THAT((*reload)->Apply(),
                StatusIs(StatusCode::kInternal, HasSubstr("the device keeps the old weights")));
    EXPECT_EQ(Run(*program), before);
    SetFault("");
    EXPECT_THAT((*reload)->Apply(), IsOk());
    EXPECT_NE(Run(*program), before);
  }
}

TEST_F(ReloadTest, AProgramThatCannotGoBackIsLost) {
  const auto program = Compile(Route::kNetplist, 2);
  auto reload = Prepare(*program, 3);
  ASSERT_THAT(reload, IsOk());
  SetFault("load");
  EXPECT_THAT((*reload)->Apply(),
              StatusIs(StatusCode::kInternal,
                       AllOf(HasSubstr("the program is lost"), HasSubstr("load failure"))));
  SetFault("");
  EXPECT_THAT(Results(*device_, *program),
              StatusIs(StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("was lost"), HasSubstr("load the model again"))));
  const auto other = Compile(Route::kNetplist, 2);
  const auto want = Run(*other);
  // The next weights that it takes make it whole again.
  ASSERT_THAT((*reload)->Undo(), IsOk());
  EXPECT_EQ(Run(*program), want);
}

TEST_F(ReloadTest, AnUndoThatFailsLeavesNoProgramWithTheNewWeights) {
  const auto program = Compile(Route::kNetplist, 2);
  auto reload = Prepare(*program, 3);
  ASSERT_THAT(reload, IsOk());
  ASSERT_THAT((*reload)->Apply(), IsOk());
  SetFault("load#1");
  EXPECT_THAT((*reload)->Undo(), StatusIs(StatusCode::kInternal, HasSubstr("the program is lost")));
  EXPECT_THAT(Results(*device_, *program),
              StatusIs(StatusCode::kFailedPrecondition, HasSubstr("was lost")));
}

// The device of --device auto.
class FallbackReloadTest : public ReloadTest {
 protected:
  FallbackReloadTest() {
    device_ = MakeFallbackDevice(std::move(device_), ExactDevice(),
                                 [this](const std::string& note) { notes_.push_back(note); });
    program_ = Compile(Route::kNetplist, 2);
    two_ = Run(*program_);
    three_ = Run(*Compile(Route::kNetplist, 3));
    auto reload = device_->PrepareReload(
        *program_, SmallNetwork(Route::kNetplist, kReloadedDims, kReloadedDims, 3));
    EXPECT_THAT(reload, IsOk());
    if (reload.ok()) reload_ = *std::move(reload);
  }

  std::vector<std::string> notes_;
  std::unique_ptr<Program> program_;
  std::vector<std::string> two_, three_;  // results with the weights 2 and 3
  std::unique_ptr<Reload> reload_;
};

TEST_F(FallbackReloadTest, NewWeightsThatTheDeviceDoesNotTakeRunOnTheOther) {
  SetFault("load#1");
  ASSERT_THAT(reload_->Apply(), IsOk());
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("did not take its new weights on the device"),
                                        HasSubstr("so it runs on the device software"),
                                        HasSubstr("load failure"))));
  EXPECT_EQ(Run(*program_), three_);
  EXPECT_THAT(device_->PrepareReload(
                  *program_, SmallNetwork(Route::kNetplist, kReloadedDims, kReloadedDims, 2)),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("is on the second device")));
  ASSERT_THAT(reload_->Undo(), IsOk());
  EXPECT_EQ(Run(*program_), two_);
  EXPECT_EQ(notes_.size(), 1);  // the device has the old weights
  EXPECT_EQ(device_->name(), "apple, Apple M1, else software");
}

TEST_F(FallbackReloadTest, ALostProgramRunsOnTheOtherWithTheOldWeights) {
  ASSERT_THAT(reload_->Apply(), IsOk());
  EXPECT_EQ(Run(*program_), three_);
  SetFault("load");
  ASSERT_THAT(reload_->Undo(), IsOk());
  SetFault("");
  EXPECT_EQ(Run(*program_), two_);
  EXPECT_THAT(notes_, ElementsAre(HasSubstr("the program was lost")));
}

}  // namespace
}  // namespace anemone
