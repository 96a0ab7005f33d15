// ONNX Runtime is found and opened, or the error has a remedy.
#include "fallback/ort_runtime.h"

#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/fallback/graph_builder.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Sets ANEMONE_ORT_LIBRARY, and restores it at the end.
class LibraryVariable {
 public:
  explicit LibraryVariable(const std::string& path) {
    if (const char* old = std::getenv("ANEMONE_ORT_LIBRARY")) old_ = old;
    setenv("ANEMONE_ORT_LIBRARY", path.c_str(), 1);
  }
  ~LibraryVariable() {
    if (old_.empty()) {
      unsetenv("ANEMONE_ORT_LIBRARY");
    } else {
      setenv("ANEMONE_ORT_LIBRARY", old_.c_str(), 1);
    }
  }

 private:
  std::string old_;
};

TEST(OrtRuntime, FindsTheLibraryOfTheSetUp) {
  const auto runtime = Runtime();
  ASSERT_NE(runtime, nullptr);
  EXPECT_THAT(runtime->version(), StartsWith("1."));
  EXPECT_THAT(runtime->library_path(), HasSubstr("onnxruntime"));
  EXPECT_EQ(runtime->threads(), 2);
  EXPECT_TRUE(runtime->has_global_pool());
}

TEST(OrtRuntime, TheVariableOfAMissingLibraryIsAnErrorWithTheRemedy) {
  const LibraryVariable variable("/nowhere/libonnxruntime.so");
  const auto status = OrtRuntime::Open({}).status();
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/libonnxruntime.so")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound,
                               HasSubstr("set ANEMONE_ORT_LIBRARY to the path")));
}

TEST(OrtRuntime, AnotherLibraryIsRefused) {
  const LibraryVariable variable("libm.so.6");
  EXPECT_THAT(
      OrtRuntime::Open({}),
      StatusIs(
          absl::StatusCode::kFailedPrecondition,
          HasSubstr(
              "libm.so.6: want ONNX Runtime, found a library without OrtGetApiBase; run tools")));
}

TEST(OrtRuntime, AFileThatIsNoLibraryIsRefused) {
  const std::string path = ::testing::TempDir() + "/not_a_library.so";
  std::ofstream(path) << "INPUT(-lm)";
  const LibraryVariable variable(path);
  EXPECT_THAT(OrtRuntime::Open({}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("not_a_library.so")));
}

TEST(OrtRuntime, AnOlderVersionIsRefused) {
  EXPECT_THAT(
      OrtRuntime::Open({.library = OLD_ORT_LIBRARY}),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("want ONNX Runtime 1.23 or newer, found 1.22.1; run tools/quickstart")));
}

TEST(OrtRuntime, TheOptionComesBeforeTheVariable) {
  const LibraryVariable variable("/nowhere/libonnxruntime.so");
  EXPECT_THAT(OrtRuntime::Open({.library = "/elsewhere/ort.so"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/elsewhere/ort.so")));
}

TEST(OrtRuntime, NonsenseThreadsAreRefused) {
  for (const int threads : {-1, 1025}) {
    EXPECT_THAT(
        OrtRuntime::Open({.threads = threads}),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads: want 1 to 1024, or 0")));
  }
}

TEST(OrtRuntime, OneBudgetIsOneRuntime) {
  const auto a = Runtime(2);
  EXPECT_EQ(a, Runtime(2));
  const auto b = Runtime(3);
  EXPECT_NE(a, b);
  EXPECT_EQ(b->threads(), 3);
  EXPECT_FALSE(b->has_global_pool());
}

TEST(OrtRuntime, TheEnvironmentIsMadeAnewAfterTheLastRuntime) {
  for (const int threads : {1, 2, 3}) EXPECT_TRUE(Runtime(threads)->has_global_pool());
}

TEST(OrtRuntime, LivesBesideAnEnvironmentMadeWithoutAPool) {
  const std::string path = Runtime()->library_path();
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  const auto base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  const OrtApi* const api = base()->GetApi(23);
  OrtEnv* env = nullptr;
  ASSERT_EQ(api->CreateEnv(ORT_LOGGING_LEVEL_FATAL, "host", &env), nullptr);
  EXPECT_FALSE(Runtime()->has_global_pool());
  api->ReleaseEnv(env);
}

// The last test, since its runtime stays open.
TEST(OrtRuntime, StaysOpenUntilAnotherOneIsOpened) {
  const auto open = [](int threads) {
    const auto runtime = OrtRuntime::Open({.threads = threads, .stays_open = true});
    EXPECT_THAT(runtime, IsOk());
    return *runtime;
  };
  const std::weak_ptr<const OrtRuntime> first = open(2);
  EXPECT_FALSE(first.expired());
  EXPECT_EQ(open(2), first.lock());
  const pid_t child = ::fork();
  if (child == 0) {  // has none of the first runtime's threads
    const auto own = OrtRuntime::Open({.threads = 2, .stays_open = true});
    ::_exit(own.ok() && *own != first.lock() && !(*own)->has_global_pool() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(open(3)->has_global_pool());
  EXPECT_TRUE(first.expired());
}

}  // namespace
}  // namespace anemone
