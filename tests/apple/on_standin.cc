#include "tests/apple/on_standin.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "engine/apple/stream.h"
#include "engine/authored_unit.h"
#include "kernels/lowering.h"
#include "math/core/half.h"

namespace anemone {
namespace {

void* Library() {
  static void* const library = [] {
    setenv("ANEMONE_ANE_DRIVER", ANEMONE_DRIVER, 1);
    setenv("ANEMONE_ANE_FRAMEWORK", ANEMONE_STANDIN, 1);
    void* opened = dlopen(ANEMONE_STANDIN, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) ADD_FAILURE() << dlerror();
    return opened;
  }();
  return library;
}

template <class F>
F* Function(const char* name) {
  return reinterpret_cast<F*>(dlsym(Library(), name));
}

}  // namespace

void SetFault(const std::string& fault) {
  Function<void(const char*)>("anemone_standin_fault")(fault.c_str());
}

void ReleaseCalls() { Function<void()>("anemone_standin_release")(); }

StandinCounts CountsOfStandin() {
  // Programs are freed on the stream.
  EXPECT_TRUE(apple::Stream::OfProcess()
                  .Run("nothing", absl::Seconds(20), [] { return absl::OkStatus(); })
                  .ok());
  StandinCounts counts;
  Function<void(StandinCounts*)>("anemone_standin_count")(&counts);
  return counts;
}

std::string LiveText() {
  const StandinCounts c = CountsOfStandin();
  return absl::StrCat("objects ", c.objects, ", surfaces ", c.surfaces, ", loaded ", c.loaded,
                      ", mapped ", c.mapped);
}

const Target& HostTarget() { return **FindTarget("h13"); }

Network SmallNetwork(Route route, const Dims& x, const Dims& a, float weight) {
  NetworkBuilder c(HostTarget(), route);
  const Operand left = c.AddInput("x", x), right = c.AddInput("a", a);
  const UnitKind& elements = *FindUnitKind("ElementWise");
  const Operand difference = AddAuthoredUnit(c, elements, {{"Type", "Sub"}}, {left, right}, {});
  const Operand scale = c.AddConstant(Tensor::Floats({1}, {weight}), MakeDims(1, 1, 1, 1));
  const Operand y = AddAuthoredUnit(c, elements, {{"Type", "Mult"}}, {difference, scale}, {});
  EXPECT_TRUE(c.ok()) << c.status();
  c.AddOutput("y", y);
  c.AddOutput("difference", difference);
  return c.TakeNetwork();
}

absl::StatusOr<std::vector<std::string>> Results(Device& device, const Program& program) {
  std::vector<std::vector<math::Half>> memory;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::vector<std::string> results;
  for (const ProgramPort& port : program.inputs()) {
    auto& values = memory.emplace_back(port.layout.bytes() / sizeof(math::Half));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = math::ToHalf(static_cast<float>(i % 97) / 8 - static_cast<float>(memory.size()));
    }
    inputs.push_back(reinterpret_cast<const std::byte*>(values.data()));
  }
  for (const ProgramPort& port : program.outputs()) results.emplace_back(port.layout.bytes(), '\0');
  outputs.reserve(results.size());
  for (std::string& result : results) {
    outputs.push_back(reinterpret_cast<std::byte*>(result.data()));
  }
  const absl::Status status = device.Run(program, {.inputs = inputs, .outputs = outputs});
  if (!status.ok()) return status;
  return results;
}

std::unique_ptr<Device> TestDevice(CompileHistory& history, absl::Duration& waited,
                                   absl::Duration timeout) {
  Library();
  auto device = OpenAppleDevice({.compile_timeout = timeout,
                                 .run_timeout = timeout,
                                 .history = &history,
                                 .wait = [&](absl::Duration pause) { waited += pause; }});
  EXPECT_TRUE(device.ok()) << device.status();
  return device.ok() ? *std::move(device) : nullptr;
}

std::unique_ptr<Device> ExactDevice() {
  SoftwareOptions options;
  options.numerics = *NumericsMode::Parse("exact");
  return MakeSoftwareDevice(options);
}

}  // namespace anemone
