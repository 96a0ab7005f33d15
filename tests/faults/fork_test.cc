// Sessions and fork(). This is a separate program, because its children have none of its threads.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/algorithm/container.h"
#include "anemone/check.h"
#include "anemone/session.h"
#include "tests/onnx_text.h"
#include "tests/provider/ramp.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

constexpr char kModel[] =
    "(float[1,2,4,4] x, float[1,2,4,4] h) => (float[1,2,2,2] y, float[1,2,4,4] n) {"
    " n = Add(x, h) b = MaxPool<kernel_shape = [2,2], strides = [2,2]>(n) y = Sigmoid(b) }";

// With engine and CPU segments, threads, and a state.
absl::StatusOr<Session> Load(int threads) {
  Settings settings;
  settings.policy = "refuse:Pooling";
  settings.threads = threads;
  settings.state = {{"h", "n"}};
  return Session::LoadBytes(BytesOfText(kModel), settings);
}

std::optional<float> FirstOf(const Session& session) {
  const auto made = session.Run({{"x", Ramp({1, 2, 4, 4})}});
  if (!made.ok()) return std::nullopt;
  return made->at("y").at<float>(0);
}

// The exit code of a child that does `work`; 128 and a signal if that ended it.
int InChild(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr int kSeconds = 60;
    alarm(kSeconds);  // instead of a hang
    _exit(work());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

class Fork : public testing::TestWithParam<int> {};

TEST_P(Fork, TheChildIsToldToLoadItsOwnSession) {
  auto loaded = Load(GetParam());
  ASSERT_THAT(loaded, IsOk());
  auto session = std::make_unique<Session>(*std::move(loaded));
  const std::optional<float> first = FirstOf(*session);
  ASSERT_TRUE(first.has_value());
  const int code = InChild([&] {
    const auto is_refused = [](const absl::Status& status) {
      return status.code() == absl::StatusCode::kFailedPrecondition &&
             absl::StrContains(status.message(), "fork()");
    };
    const Tensor x = Ramp({1, 2, 4, 4});
    if (!is_refused(session->Run({{"x", x}}).status())) return 1;
    if (!is_refused(session->RunValues({{"x", x}}).status())) return 2;
    if (!is_refused(session->ReadState("h").status())) return 3;
    if (!is_refused(session->WriteState("h", x))) return 4;
    if (!is_refused(session->UpdateWeights({}))) return 5;
    if (!is_refused(session->Fork().Run({{"x", x}}).status())) return 6;
    const auto own = Load(GetParam());
    if (!own.ok() || FirstOf(*own) != first) return 7;
    session.reset();  // does not wait for the parent's threads
    return 0;
  });
  EXPECT_EQ(code, 0);
  // The parent's session and its state are as before.
  session->ResetState();
  EXPECT_EQ(FirstOf(*session), first);
}

TEST_P(Fork, AChildOfAChildHasItsOwnSession) {
  EXPECT_EQ(InChild([] {
              const auto own = Load(GetParam());
              if (!own.ok() || !FirstOf(*own).has_value()) return 1;
              return InChild([&] { return FirstOf(*own).has_value() ? 1 : 0; });
            }),
            0);
}

constexpr char kProducts[] =
    "(float[1,1,256,256] x) => (float[1,1,256,256] y) { a = MatMul(x, x) y = Softmax(a) }";

absl::StatusOr<Session> LoadProducts(int threads) {
  Settings settings;
  settings.threads = threads;
  settings.cache = false;
  return Session::LoadBytes(BytesOfText(kProducts), settings);
}

// Right after a run, helpers of its loops and workers of TBB look for more work, or go to sleep.
TEST_P(Fork, RightAfterLoopsOfManyThreads) {
  const auto session = LoadProducts(GetParam());
  ASSERT_THAT(session, IsOk());
  const std::map<std::string, Tensor> inputs = {{"x", Ramp({1, 1, 256, 256})}};
  for (int i = 0; i < 40; ++i) {
    const auto want = session->Run(inputs);
    ASSERT_THAT(want, IsOk());
    EXPECT_EQ(InChild([&] {
                const auto own = LoadProducts(GetParam());
                if (!own.ok()) return 1;
                const auto got = own->Run(inputs);
                return got.ok() && absl::c_equal(got->at("y").bytes(), want->at("y").bytes()) ? 0
                                                                                              : 2;
              }),
              0);
  }
}

// A parent whose other threads run meanwhile may hold locks that nobody releases in the child. What
// ours, TBB and ONNX Runtime hold for a run is not among them.
TEST_P(Fork, WhileOtherThreadsRun) {
  const auto session = LoadProducts(GetParam());
  ASSERT_THAT(session, IsOk());
  const std::map<std::string, Tensor> inputs = {{"x", Ramp({1, 1, 256, 256})}};
  std::atomic<bool> done = false;
  std::thread other([&] {
    while (!done) EXPECT_THAT(session->Run(inputs), IsOk());
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(InChild([&] {
                const auto own = LoadProducts(GetParam());
                return own.ok() && own->Run(inputs).ok() ? 0 : 1;
              }),
              0);
  }
  done = true;
  other.join();
}

TEST_P(Fork, AReportInTheChild) {
  const std::string bytes = BytesOfText(kModel);
  ASSERT_THAT(CheckBytes(bytes, {}), IsOk());
  EXPECT_EQ(InChild([&] { return CheckBytes(bytes, {}).ok() ? 0 : 1; }), 0);
}

INSTANTIATE_TEST_SUITE_P(Threads, Fork, testing::Values(1, 4));

}  // namespace
}  // namespace anemone
