// MakeLimitedDevice: programs that violate the run-time limits of the device, and programs that
// heed them.
#include "engine/software/device_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/authored_unit.h"
#include "kernels/lowering.h"
#include "math/core/half.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using math::Half;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const Dims kRoomy = MakeDims(1, 768, 1, 32);  // 768 rows of 64 bytes: 48 KiB

const Target& TargetNamed(const char* name) { return **FindTarget(name); }

// y = x - a. The order of the ports (x, a) is not the alphabetical order.
Network Difference(const Dims& x_dims, const Dims& a_dims, Route route) {
  NetworkBuilder c(TargetNamed("h16"), route);
  const Operand x = c.AddInput("x", x_dims), a = c.AddInput("a", a_dims);
  const Operand y = AddAuthoredUnit(c, *FindUnitKind("ElementWise"), {{"Type", "Sub"}}, {x, a}, {});
  EXPECT_TRUE(c.ok()) << c.status();
  c.AddOutput("y", y);
  return c.TakeNetwork();
}

absl::StatusOr<std::unique_ptr<Program>> Compile(Device& device, Route route,
                                                 const Dims& a_dims = kRoomy,
                                                 const Dims& x_dims = kRoomy) {
  return device.Compile(Difference(x_dims, a_dims, route), TargetNamed("h16"), route);
}

// A13 is the first family with a softmax.
absl::Status CompileWhatFails(Device& device) {
  NetworkBuilder c(TargetNamed("h16"), Route::kNetplist);
  const Operand x = c.AddInput("x", kRoomy);
  const Operand y =
      AddAuthoredUnit(c, *FindUnitKind("Softmax"), {{"Dimension", "Channel"}}, {x}, {});
  EXPECT_TRUE(c.ok()) << c.status();
  c.AddOutput("y", y);
  return device.Compile(c.network(), TargetNamed("h12"), Route::kNetplist).status();
}

struct Buffers {
  explicit Buffers(const Program& program) {
    for (const ProgramPort& port : program.inputs()) memory.emplace_back(port.layout.bytes());
    for (const ProgramPort& port : program.outputs()) memory.emplace_back(port.layout.bytes());
    for (std::vector<std::byte>& bytes : memory) {
      auto& side = inputs.size() < program.inputs().size() ? inputs : written;
      side.push_back(bytes.data());
      if (&side == &written) outputs.push_back(bytes.data());
    }
  }
  Half* first(size_t i) { return reinterpret_cast<Half*>(memory[i].data()); }

  std::vector<std::vector<std::byte>> memory;
  std::vector<const std::byte*> inputs, written;
  std::vector<std::byte*> outputs;
};

TEST(DeviceLimits, AProcessHasSoManyCompiles) {
  CompileHistory history;
  auto device = MakeLimitedDevice(MakeSoftwareDevice(), history);
  for (int i = 0; i < 119; ++i) ASSERT_TRUE(Compile(*device, Route::kNetplist).ok()) << i;
  EXPECT_THAT(
      Compile(*device, Route::kNetplist),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("compile 120 of a process"), HasSubstr("start another process"))));
  auto other = MakeLimitedDevice(MakeSoftwareDevice(), history);  // of the same process
  EXPECT_THAT(Compile(*other, Route::kNetplist),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("120")));
  auto plain = MakeSoftwareDevice();
  EXPECT_TRUE(Compile(*plain, Route::kNetplist).ok());
}

TEST(DeviceLimits, AFailedCompileWantsAPause) {
  absl::Time now = absl::UnixEpoch();
  CompileHistory history([&now] { return now; });
  auto device = MakeLimitedDevice(MakeSoftwareDevice(), history);
  ASSERT_TRUE(Compile(*device, Route::kNetplist).ok());
  EXPECT_THAT(CompileWhatFails(*device),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("Softmax")));
  now += absl::Seconds(14);
  EXPECT_THAT(Compile(*device, Route::kNetplist),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("14 s after one that failed"), HasSubstr("about 15 s"))));
  now += absl::Seconds(1);  // a refused compile is not a failed compile
  EXPECT_TRUE(Compile(*device, Route::kNetplist).ok());
  auto plain = MakeSoftwareDevice();
  EXPECT_FALSE(CompileWhatFails(*plain).ok());
  EXPECT_TRUE(Compile(*plain, Route::kNetplist).ok());
}

TEST(DeviceLimits, SurfacesOfOneSideAreOfOneSize) {
  auto plain = MakeSoftwareDevice();
  CompileHistory history;
  auto limited = MakeLimitedDevice(MakeSoftwareDevice(), history);
  const Dims scalars = MakeDims(1, 768, 1, 1), wide = MakeDims(1, 768, 1, 64);
  for (Device* device : {plain.get(), limited.get()}) {
    auto program = Compile(*device, Route::kNetplist, scalars, wide);
    ASSERT_TRUE(program.ok()) << program.status();
    Buffers buffers(**program);
    const Request natural{.inputs = buffers.inputs, .outputs = buffers.outputs};
    if (device == plain.get()) {
      EXPECT_TRUE(device->Run(**program, natural).ok());
      continue;
    }
    EXPECT_THAT(
        device->Run(**program, natural),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr("ANEProgramProcessRequestDirect() Failed with status=0x1d"),
                       HasSubstr("input 'a' of 49152 bytes and input 'x' of 98304 bytes"),
                       HasSubstr("--heed-limits"))));
    Request padded = natural;
    const std::vector<int64_t> bytes = {98304, 98304};
    padded.input_bytes = bytes;
    EXPECT_TRUE(device->Run(**program, padded).ok());
  }
}

TEST(DeviceLimits, ASurfaceBelowTheFloorDoesNotEvaluate) {
  CompileHistory history;
  auto limited = MakeLimitedDevice(MakeSoftwareDevice(), history);
  const Dims small = MakeDims(1, 767, 1, 32);
  auto program = Compile(*limited, Route::kNetplist, small, small);
  ASSERT_TRUE(program.ok()) << program.status();
  Buffers buffers(**program);
  Request request{.inputs = buffers.inputs, .outputs = buffers.outputs};
  EXPECT_THAT(limited->Run(**program, request),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("status=0x1d"), HasSubstr("below 49152 bytes"),
                             HasSubstr("input 'x' of 49088 bytes"))));
  const std::vector<int64_t> inputs = {49152, 49152}, outputs = {49151};
  request.input_bytes = inputs;
  request.output_bytes = outputs;
  EXPECT_THAT(limited->Run(**program, request),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("output 'y' of 49151")));
  request.output_bytes = absl::MakeConstSpan(inputs).subspan(0, 1);
  EXPECT_TRUE(limited->Run(**program, request).ok());
}

// The result of x - a if the first two surfaces hold 5 and 3.
double FirstDifference(Device& device, Route route, std::vector<std::string>& ports) {
  auto program = Compile(device, route);
  EXPECT_TRUE(program.ok()) << program.status();
  for (const ProgramPort& port : (*program)->inputs()) ports.push_back(port.name);
  Buffers buffers(**program);
  *buffers.first(0) = math::ToHalf(5.0);
  *buffers.first(1) = math::ToHalf(3.0);
  const Request request{.inputs = buffers.inputs, .outputs = buffers.outputs};
  EXPECT_TRUE(device.Run(**program, request).ok());
  return math::ToDouble(*buffers.first(2));
}

TEST(DeviceLimits, PortsOfTheMilRouteBindInAlphabeticalOrder) {
  auto plain = MakeSoftwareDevice();
  CompileHistory history;
  auto limited = MakeLimitedDevice(MakeSoftwareDevice(), history);
  std::vector<std::string> ports;
  EXPECT_EQ(FirstDifference(*plain, Route::kMil, ports), 2);
  EXPECT_THAT(ports, ElementsAre("x", "a"));
  ports.clear();
  EXPECT_EQ(FirstDifference(*limited, Route::kMil, ports), -2);  // no error, wrong data
  EXPECT_THAT(ports, ElementsAre("a", "x"));
  ports.clear();
  EXPECT_EQ(FirstDifference(*limited, Route::kNetplist, ports), 2);
  EXPECT_THAT(ports, ElementsAre("x", "a"));
}

// Orion's constraint 20: a surface larger than its tensor is read from byte 0 without gaps.
TEST(DeviceLimits, LargerSurfacesOfTheMilRouteArePacked) {
  CompileHistory history;
  auto limited = MakeLimitedDevice(MakeSoftwareDevice(), history);
  const Dims scalars = MakeDims(1, 768, 1, 1);
  auto program = Compile(*limited, Route::kMil, scalars, scalars);
  ASSERT_TRUE(program.ok()) << program.status();
  const std::vector<int64_t> bytes = {49152, 49152};
  std::vector<std::vector<Half>> memory(3, std::vector<Half>(bytes[0] / sizeof(Half)));
  for (int i = 0; i < 768; ++i) memory[1][i] = math::ToHalf(static_cast<float>(i));  // ports: a, x
  std::vector<const std::byte*> inputs;
  for (int i : {0, 1}) inputs.push_back(reinterpret_cast<const std::byte*>(memory[i].data()));
  std::vector<std::byte*> outputs = {reinterpret_cast<std::byte*>(memory[2].data())};
  const Request request{.inputs = inputs,
                        .outputs = outputs,
                        .input_bytes = bytes,
                        .output_bytes = absl::MakeConstSpan(bytes).subspan(0, 1)};
  ASSERT_TRUE(limited->Run(**program, request).ok());
  for (int i = 0; i < 768; ++i) ASSERT_EQ(math::ToDouble(memory[2][i]), i);
  EXPECT_EQ(math::ToDouble(memory[2][768]), 0);  // nothing is written beyond
}

}  // namespace
}  // namespace anemone
