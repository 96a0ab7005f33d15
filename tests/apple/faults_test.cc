// The fault table: each thing that can fail on the device ends in a status that says what failed
// and what to do. Nothing stays on the device or in memory, and the device works afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "engine/apple/stream.h"
#include "tests/apple/on_standin.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kNothingLeft[] = "objects 0, surfaces 0, loaded 0, mapped 0";
const Dims kDims = MakeDims(1, 3, 5, 7);

struct Fault {
  const char* name;
  bool is_in_run;  // the compile succeeds, and the run fails
  StatusCode code;
  const char *what, *remedy;  // parts of the message; an empty one would be an error of the table
};

const Fault kFaults[] = {
    {"descriptor", false, StatusCode::kInternal, "no descriptor was made", "docs/apple.md"},
    {"exception", false, StatusCode::kInternal, "an injected exception", "docs/apple.md"},
    {"folder", false, StatusCode::kInternal, "naming the model's folder", "docs/apple.md"},
    {"unwritable", false, StatusCode::kPermissionDenied, "cannot be written", "choose a folder"},
    {"compile", false, StatusCode::kFailedPrecondition, "ANECCompile() FAILED", "anemone confirm"},
    {"compile-silent", false, StatusCode::kFailedPrecondition, "failed without a message",
     "anemone confirm"},
    {"stale", false, StatusCode::kAborted, "stale weights", "TMPDIR"},
    {"load", false, StatusCode::kInternal, "Program load failure", "end other programs"},
    {"attributes", false, StatusCode::kInternal, "have no NetworkStatusList", "docs/apple.md"},
    {"other-port", false, StatusCode::kInternal, "no such port", "doctor --self-test"},
    {"other-size", false, StatusCode::kInternal, "but it was compiled as", "doctor --self-test"},
    {"other-type", false, StatusCode::kInternal, "lists the type 'Float32'", "doctor --self-test"},
    {"overlap", false, StatusCode::kInternal, "rows overlap", "doctor --self-test"},
    {"surface", false, StatusCode::kResourceExhausted, "a surface of 49152 bytes", "smaller"},
    {"surface#3", false, StatusCode::kResourceExhausted, "a surface of 49152 bytes", "smaller"},
    {"small-surface", false, StatusCode::kResourceExhausted, "made a surface of 24576 bytes",
     "smaller"},
    {"map", false, StatusCode::kInternal, "mapping failed", "end other programs"},
    {"0x1d", true, StatusCode::kFailedPrecondition, "status=0x1d", "doctor --self-test"},
    {"evaluate", true, StatusCode::kInternal, "Program Inference error", "run again"},
    {"lock", true, StatusCode::kResourceExhausted, "an input surface cannot be locked",
     "run again"},
    {"lock#3", true, StatusCode::kResourceExhausted, "an output surface cannot be locked",
     "run again"},
};

class FaultTable : public testing::TestWithParam<Fault> {};

TEST_P(FaultTable, EndsInAStatusAndLeavesNothing) {
  const Fault& fault = GetParam();
  const Network network = SmallNetwork(Route::kNetplist, kDims, kDims);
  CompileHistory history;
  absl::Duration waited;
  SetFault(fault.name);
  auto device = TestDevice(history, waited);
  {
    auto program = device->Compile(network, HostTarget(), Route::kNetplist);
    const auto is_fault = StatusIs(
        fault.code, AllOf(HasSubstr(fault.what), HasSubstr(fault.remedy), HasSubstr("; ")));
    if (fault.is_in_run) {
      ASSERT_THAT(program, IsOk());
      EXPECT_THAT(Results(*device, **program), is_fault);
      SetFault("");
      EXPECT_THAT(Results(*device, **program), IsOk());
    } else {
      EXPECT_THAT(program, is_fault);
    }
  }
  EXPECT_EQ(LiveText(), kNothingLeft);
  SetFault("");
  history.Restart();
  EXPECT_THAT(device->Compile(network, HostTarget(), Route::kNetplist), IsOk());
}

INSTANTIATE_TEST_SUITE_P(All, FaultTable, testing::ValuesIn(kFaults), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
});

// A call that returns late, and one whose completion is lost until the test ends it.
TEST(Hanging, EndsInADeadlineAndThenTheDeviceIsNotUsed) {
  const Network network = SmallNetwork(Route::kNetplist, kDims, kDims);
  CompileHistory history;
  absl::Duration waited;
  SetFault("");
  auto device = TestDevice(history, waited, absl::Milliseconds(300));
  auto program = device->Compile(network, HostTarget(), Route::kNetplist);
  ASSERT_THAT(program, IsOk());
  const auto want = Results(*device, **program);
  SetFault("hang");
  EXPECT_THAT(Results(*device, **program),
              StatusIs(StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("an evaluation has not ended after 300ms"),
                             HasSubstr("start another process"))));
  // The engine may still read the surfaces, so nothing is written to them.
  const auto refused =
      StatusIs(StatusCode::kUnavailable, HasSubstr("has not ended, so the device"));
  EXPECT_THAT(Results(*device, **program), refused);
  EXPECT_THAT(device->Compile(network, HostTarget(), Route::kNetplist), refused);
  EXPECT_THAT(CheckAppleDevice(), refused);
  ReleaseCalls();
  while (!apple::Stream::OfProcess().Check().ok()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(*Results(*device, **program), *want);
  program->reset();
  EXPECT_EQ(LiveText(), kNothingLeft);
}

// A call that waits for one that does not end is given up with it, and never made.
TEST(Hanging, ACallBehindItIsNotMade) {
  apple::Stream& stream = apple::Stream::OfProcess();
  std::promise<void> began, release;
  std::thread first([&] {
    EXPECT_THAT(stream.Run("a slow call", absl::Milliseconds(300),
                           [&] {
                             began.set_value();
                             release.get_future().wait();
                             return absl::OkStatus();
                           }),
                StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("a slow call has not ended")));
  });
  began.get_future().wait();
  bool was_made = false;
  EXPECT_THAT(stream.Run("a call", absl::Seconds(20),
                         [&] {
                           was_made = true;
                           return absl::OkStatus();
                         }),
              StatusIs(StatusCode::kUnavailable, HasSubstr("an earlier call (a slow call)")));
  first.join();
  release.set_value();
  while (!stream.Check().ok()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_THAT(stream.Run("a call", absl::Seconds(20), [] { return absl::OkStatus(); }), IsOk());
  EXPECT_FALSE(was_made);
}

TEST(Hanging, ACompileThatIsGivenUpIsFreedWhenItEnds) {
  CompileHistory history;
  absl::Duration waited;
  SetFault("hang");
  auto device = TestDevice(history, waited, absl::Milliseconds(300));
  EXPECT_THAT(
      device->Compile(SmallNetwork(Route::kNetplist, kDims, kDims), HostTarget(), Route::kNetplist),
      StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("a compile has not ended")));
  ReleaseCalls();
  while (!apple::Stream::OfProcess().Check().ok()) absl::SleepFor(absl::Milliseconds(5));
  EXPECT_EQ(LiveText(), kNothingLeft);
}

}  // namespace
}  // namespace anemone
