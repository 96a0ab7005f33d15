#include "base/deadline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/status_matchers.h"

namespace anemone {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

constexpr double kShort = 1e-3, kLong = 1000;  // seconds

void WaitUntilOver(const Deadline& deadline) {
  while (!deadline.is_over()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Deadline, WithoutALimitThereIsNone) {
  const TimeLimit limit(0);
  EXPECT_EQ(Deadline::Current(), nullptr);
  EXPECT_TRUE(CheckTime(Phase::kPlan).ok());
}

TEST(Deadline, TheErrorNamesThePhaseAndThePlace) {
  const TimeLimit limit(kShort);
  EXPECT_TRUE(Deadline::Current() != nullptr);
  WaitUntilOver(*Deadline::Current());
  EXPECT_THAT(CheckTime(Phase::kCompile, [] { return "node 'conv1'"; }),
              StatusIs(StatusCode::kDeadlineExceeded,
                       HasSubstr("time limit of 0.001 s reached while compiling, at node 'conv1'; "
                                 "allow more (--time-limit")));
  EXPECT_THAT(CheckTime(Phase::kRead),
              StatusIs(StatusCode::kDeadlineExceeded, HasSubstr("while reading the model; allow")));
}

TEST(Deadline, ALimitInsideAnotherDoesNotCount) {
  const TimeLimit outer(kLong);
  Deadline* const whole = Deadline::Current();
  {
    const TimeLimit inner(kShort);
    EXPECT_EQ(Deadline::Current(), whole);
  }
  EXPECT_EQ(Deadline::Current(), whole);
}

TEST(Deadline, BelongsToAThreadAndToWorkThatTakesItAlong) {
  const TimeLimit limit(kLong);
  const auto current = [] { return Deadline::Current(); };
  const auto with = WithDeadline(current);
  std::thread([&, mine = Deadline::Current()] {
    EXPECT_EQ(current(), nullptr);
    EXPECT_EQ(with(), mine);
    EXPECT_EQ(current(), nullptr);
  }).join();
}

TEST(Deadline, AlarmsRingOnceWhileTheyExist) {
  std::atomic<int> rung = 0, gone = 0, late = 0;
  Deadline deadline(0.05);
  {
    const Deadline::Alarm alarm(&deadline, [&] { ++gone; });
  }
  const Deadline::Alarm first(&deadline, [&] { ++rung; });
  const Deadline::Alarm second(&deadline, [&] { ++rung; });
  for (int i = 0; i < 10000 && rung < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(rung, 2);
  EXPECT_TRUE(deadline.is_over());
  const Deadline::Alarm after(&deadline, [&] { ++late; });  // the time is over already
  EXPECT_EQ(late, 1);
  EXPECT_EQ(gone, 0);
}

TEST(Deadline, EndsWhenItIsCancelled) {
  std::atomic<bool> flag = false;
  std::atomic<int> rung = 0;
  for (const double seconds : {0.0, kLong}) {
    flag = false;
    rung = 0;
    const CancelledBy scope(flag);
    const TimeLimit limit(seconds);
    const Deadline::Alarm alarm(Deadline::Current(), [&] { ++rung; });
    EXPECT_TRUE(CheckTime(Phase::kRun).ok());
    CancelledBy::Cancel(flag);
    const absl::Status status = CheckTime(Phase::kRun, [] { return "node 'conv1'"; });
    EXPECT_THAT(status, StatusIs(StatusCode::kCancelled,
                                 HasSubstr("cancelled while running, at node 'conv1'; start it")));
    EXPECT_TRUE(IsOutOfTime(status));
    for (int i = 0; i < 10000 && rung < 1; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(rung, 1);
    const Deadline::Alarm late(Deadline::Current(), [&] { ++rung; });
    EXPECT_EQ(rung, 2);
  }
}

TEST(Deadline, AFlagCancelsTheWorkOfItsThread) {
  const std::atomic<bool> flag = true;
  {
    const CancelledBy scope(flag);
    std::thread([] {
      const TimeLimit limit(kLong);
      EXPECT_TRUE(CheckTime(Phase::kRun).ok());
    }).join();
  }
  const TimeLimit limit(0);
  EXPECT_EQ(Deadline::Current(), nullptr);
}

TEST(Deadline, EndsBeforeItsTimeWithItsAlarms) {
  std::atomic<int> rung = 0;
  {
    Deadline deadline(kLong);
    const Deadline::Alarm alarm(&deadline, [&] { ++rung; });
  }
  EXPECT_EQ(rung, 0);
  const Deadline::Alarm none(nullptr, [&] { ++rung; });
  EXPECT_EQ(rung, 0);
}

}  // namespace
}  // namespace anemone
