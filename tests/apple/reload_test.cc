// New weights for a program on the device: unload, rewrite the weight files, load, without a
// compile (device.md). A failure leaves the old weights, or a program that says that it is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/apple/on_standin.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using absl::StatusCode;
using testing::AllOf;
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
    auto reload =
        device_->PrepareReload(*two, SmallNetwork(route, kReloadedDims, kReloadedDims, 3));
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
  EXPECT_THAT(device_->PrepareReload(
                  *program, SmallNetwork(Route::kNetplist, kReloadedDims, kReloadedDims, 3)),
              StatusIs(StatusCode::kUnimplemented, HasSubstr("uses the same folder")));
}

TEST_F(ReloadTest, AFaultLeavesTheOldWeights) {
  for (const char* fault : {"load#1", "map#1", "attributes#1"}) {
    SCOPED_TRACE(fault);
    const auto program = Compile(Route::kNetplist, 2);
    const auto before = Run(*program);
    auto reload = device_->PrepareReload(
        *program, SmallNetwork(Route::kNetplist, kReloadedDims, kReloadedDims, 3));
    ASSERT_THAT(reload, IsOk());
    SetFault(fault);
    EXPECT_THAT((*reload)->Apply(),
                StatusIs(StatusCode::kInternal, HasSubstr("the old weights stay")));
    EXPECT_EQ(Run(*program), before);
    SetFault("");
    EXPECT_THAT((*reload)->Apply(), IsOk());
    EXPECT_NE(Run(*program), before);
  }
}

TEST_F(ReloadTest, AProgramThatCannotGoBackIsLost) {
  const auto program = Compile(Route::kNetplist, 2);
  auto reload = device_->PrepareReload(
      *program, SmallNetwork(Route::kNetplist, kReloadedDims, kReloadedDims, 3));
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
  EXPECT_FALSE(Run(*other).empty());
}

}  // namespace
}  // namespace anemone
