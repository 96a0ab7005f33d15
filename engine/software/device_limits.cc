#include "engine/software/device_limits.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_limit_table.h"  // generated

namespace anemone {
namespace {

// The order in which surfaces are bound to ports, as indices into `ports`.
std::vector<size_t> BindingOrder(const std::vector<ProgramPort>& ports, Route route) {
  std::vector<size_t> order(ports.size());
  std::iota(order.begin(), order.end(), 0);
  if (route == Route::kMil) {
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return ports[a].name < ports[b].name; });
  }
  return order;
}

struct LimitedProgram final : public Program {
  LimitedProgram(std::unique_ptr<Program> program, Route route)
      : inner(std::move(program)),
        input_order(BindingOrder(inner->inputs(), route)),
        output_order(BindingOrder(inner->outputs(), route)) {
    for (size_t i : input_order) inputs_.push_back(inner->inputs()[i]);
    for (size_t i : output_order) outputs_.push_back(inner->outputs()[i]);
  }

  const std::unique_ptr<Program> inner;
  const std::vector<size_t> input_order, output_order;  // by port: the port of `inner`
};

// Reorders surfaces from the order of the limited program to that of the inner program.
template <class T>
std::vector<T> Bound(absl::Span<const T> surfaces, const std::vector<size_t>& order) {
  std::vector<T> bound(surfaces.size());
  for (size_t i = 0; i < order.size(); ++i) bound[order[i]] = surfaces[i];
  return bound;
}

// Checks that the device would run with these surfaces. `bytes` is empty if each surface has the
// size of its port's layout.
absl::Status CheckSurfaces(const char* side, const std::vector<ProgramPort>& ports,
                           absl::Span<const int64_t> bytes) {
  auto bytes_of = [&](size_t i) { return bytes.empty() ? ports[i].layout.bytes() : bytes[i]; };
  size_t least = 0, most = 0;
  for (size_t i = 1; i < ports.size(); ++i) {
    if (bytes_of(i) < bytes_of(least)) least = i;
    if (bytes_of(i) > bytes_of(most)) most = i;
  }
  if (ports.empty()) return absl::OkStatus();
  auto surface = [&](size_t i) {
    return absl::StrCat(side, " '", ports[i].name, "' of ", bytes_of(i), " bytes");
  };
  if (bytes_of(least) != bytes_of(most)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "device: ", device_limit::kSurfaceSize.answer, ": surfaces of different sizes, ",
        surface(least), " and ", surface(most), "; ", device_limit::kSurfaceSize.remedy));
  }
  const DeviceLimit& floor = device_limit::kSurfaceFloor;
  if (bytes_of(least) >= floor.value) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("device: ", floor.answer, ": a surface below ",
                                                    floor.value, " bytes, ", surface(least), "; ",
                                                    floor.remedy));
}

class LimitedDevice final : public Device {
 public:
  LimitedDevice(std::unique_ptr<Device> device, CompileHistory& history)
      : device_(std::move(device)), history_(history) {}
  std::string name() const override { return absl::StrCat(device_->name(), ", limited"); }

  absl::StatusOr<std::unique_ptr<Program>> Compile(const Network& network, const Target& target,
                                                   Route route) override {
    ANEMONE_RETURN_IF_ERROR(history_.Begin());
    auto program = device_->Compile(network, target, route);
    if (!program.ok()) {
      history_.Fail();
      return program.status();
    }
    return std::make_unique<LimitedProgram>(*std::move(program), route);
  }

  absl::Status Run(const Program& base, const Request& request) override {
    const auto& program = static_cast<const LimitedProgram&>(base);
    ANEMONE_RETURN_IF_ERROR(CheckSurfaces("input", program.inputs(), request.input_bytes));
    ANEMONE_RETURN_IF_ERROR(CheckSurfaces("output", program.outputs(), request.output_bytes));
    // All surfaces now have the size of the largest port, so a wrong order does not exceed any of
    // them.
    const auto inputs = Bound(request.inputs, program.input_order);
    const auto outputs = Bound(request.outputs, program.output_order);
    Request inner = request;
    inner.inputs = inputs;
    inner.outputs = outputs;
    return device_->Run(*program.inner, inner);
  }

 private:
  std::unique_ptr<Device> device_;
  CompileHistory& history_;
};

}  // namespace

absl::Status CompileHistory::Begin() {
  std::lock_guard<std::mutex> lock(mutex_);
  const DeviceLimit& most = device_limit::kCompilesPerProcess;
  if (compiles_ >= most.value) {
    return absl::ResourceExhaustedError(
        absl::StrCat("device: the compiler fails silently from about compile ", most.value + 1,
                     " of a process on; ", most.remedy));
  }
  const DeviceLimit& pause = device_limit::kPauseAfterFailure;
  const absl::Duration since = now_() - failed_;
  if (since < absl::Seconds(pause.value)) {
    return absl::UnavailableError(absl::StrCat(
        "device: a compile ", absl::ToDoubleSeconds(since), " s after one that failed, but the ",
        "device needs a pause of about ", pause.value, " s; ", pause.remedy));
  }
  ++compiles_;
  return absl::OkStatus();
}

absl::Duration CompileHistory::PauseLeft() {
  std::lock_guard<std::mutex> lock(mutex_);
  return failed_ + absl::Seconds(device_limit::kPauseAfterFailure.value) - now_();
}

void CompileHistory::Fail() {
  std::lock_guard<std::mutex> lock(mutex_);
  failed_ = now_();
}

void CompileHistory::Restart(Clock now) {
  std::lock_guard<std::mutex> lock(mutex_);
  now_ = std::move(now);
  compiles_ = 0;
  failed_ = absl::InfinitePast();
}

CompileHistory& ProcessCompiles() {
  static CompileHistory& history = *new CompileHistory;
  return history;
}

std::unique_ptr<Device> MakeLimitedDevice(std::unique_ptr<Device> device, CompileHistory& history) {
  return std::make_unique<LimitedDevice>(std::move(device), history);
}

}  // namespace anemone
