#include "engine/apple/open_driver.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "apple_fact_table.h"  // generated

namespace anemone::apple {
namespace {

using OpenFunction = decltype(&anemone_open_apple_driver);

constexpr char kRemedy[] =
    "run on a Mac with Apple silicon, or use the software engine (--device software)";

absl::Status NoEngine(absl::string_view why) {
  return absl::UnimplementedError(absl::StrCat("no Apple Neural Engine: ", why, "; ", kRemedy));
}

#ifdef __APPLE__
absl::StatusOr<OpenFunction> FindOpenFunction() { return &anemone_open_apple_driver; }
#else
absl::StatusOr<OpenFunction> FindOpenFunction() {
  const char* path = std::getenv("ANEMONE_ANE_DRIVER");
  if (path == nullptr || *path == '\0') return NoEngine("this system is not macOS");
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NoEngine(absl::StrCat("ANEMONE_ANE_DRIVER: ", dlerror()));
  void* const symbol = dlsym(library, "anemone_open_apple_driver");
  if (symbol == nullptr) return NoEngine(absl::StrCat(path, " is not a driver"));
  return reinterpret_cast<OpenFunction>(symbol);
}
#endif

absl::StatusOr<std::shared_ptr<Driver>> Open() {
  auto open = FindOpenFunction();
  if (!open.ok()) return open.status();
  const char* framework = std::getenv("ANEMONE_ANE_FRAMEWORK");
  if (framework == nullptr || *framework == '\0') framework = apple_fact::kFramework.name;
  std::unique_ptr<Driver> driver;
  Error error;
  (*open)(framework, driver, error);
  if (error) return NoEngine(*error);
  return driver;
}

}  // namespace

absl::StatusOr<std::shared_ptr<Driver>> OpenDriver() {
  static const auto& driver = *new absl::StatusOr<std::shared_ptr<Driver>>(Open());
  return driver;
}

const Target* TargetOfChip(absl::string_view chip) {
  if (!absl::ConsumePrefix(&chip, "Apple ")) return nullptr;
  const auto target = FindTarget(absl::StrReplaceAll(absl::AsciiStrToLower(chip), {{" ", "-"}}));
  return target.ok() ? *target : nullptr;
}

}  // namespace anemone::apple
