#include "engine/apple/fallback_device.h"

#include <functional>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

struct FallbackProgram final : public Program {
  FallbackProgram(const Network& n, const Target& t, Route r)
      : target(t), route(r), network(std::make_shared<const Network>(n)) {}

  void SetPorts(const Program& program) {
    inputs_ = program.inputs();
    outputs_ = program.outputs();
  }

  const Target& target;
  const Route route;
  std::unique_ptr<Program> first;  // null if the first device could not compile it
  mutable std::mutex mutex;        // of the members below
  mutable std::shared_ptr<const Network> network;
  mutable std::unique_ptr<Program> second;  // once it is needed; then it runs
};

// A reload on the first device, or else the new network on the second. The second, if it is needed
// later, compiles what the first has.
class FallbackReload final : public Reload {
 public:
  // Compiles the network on the second device, and tells why.
  using MakeSecond = std::function<absl::StatusOr<std::unique_ptr<Program>>(
      const Network& network, const absl::Status& why)>;

  FallbackReload(const FallbackProgram& program, std::unique_ptr<Reload> first,
                 const Network& network, MakeSecond make_second)
      : program_(program),
        first_(std::move(first)),
        network_(std::make_shared<const Network>(network)),
        make_second_(std::move(make_second)) {}

  absl::Status Apply() override {
    const absl::Status applied = first_->Apply();
    is_on_first_ = applied.ok();
    std::unique_ptr<Program> second;
    if (!is_on_first_) {
      ANEMONE_ASSIGN_OR_RETURN(second, make_second_(*network_, applied));
    }
    Swap(std::move(second));
    return absl::OkStatus();
  }
  absl::Status Undo() override {
    Swap(nullptr);
    // If it is lost, its next run fails, and then the second device runs it.
    if (is_on_first_) first_->Undo().IgnoreError();
    return absl::OkStatus();
  }

 private:
  void Swap(std::unique_ptr<Program> second) {
    const std::lock_guard<std::mutex> lock(program_.mutex);
    std::swap(program_.network, network_);
    program_.second = std::move(second);
  }

  const FallbackProgram& program_;
  const std::unique_ptr<Reload> first_;
  std::shared_ptr<const Network> network_;
  const MakeSecond make_second_;
  bool is_on_first_ = true;
};

std::string NameOf(const Network& network) {
  return network.outputs.empty() ? "without outputs"
                                 : absl::StrCat("of '", network.outputs[0].name, "'");
}

class FallbackDevice final : public Device {
 public:
  FallbackDevice(std::unique_ptr<Device> first, std::unique_ptr<Device> second,
                 std::function<void(const std::string&)> note)
      : first_(std::move(first)), second_(std::move(second)), note_(std::move(note)) {}
  std::string name() const override {
    return absl::StrCat(first_->name(), ", else ", second_->name());
  }

  absl::StatusOr<std::unique_ptr<Program>> Compile(const Network& network, const Target& target,
                                                   Route route) override {
    auto program = std::make_unique<FallbackProgram>(network, target, route);
    auto made = first_->Compile(network, target, route);
    if (made.ok()) {
      program->first = *std::move(made);
      program->SetPorts(*program->first);
      return program;
    }
    ANEMONE_ASSIGN_OR_RETURN(program->second, second_->Compile(network, target, route));
    Tell(network, "was not compiled", made.status());
    program->SetPorts(*program->second);
    return program;
  }

  bool reloads() const override { return first_->reloads(); }

  absl::StatusOr<std::unique_ptr<Reload>> PrepareReload(const Program& base,
                                                        const Network& network) override {
    const auto& program = static_cast<const FallbackProgram&>(base);
    if (Second(program) != nullptr) {
      return absl::UnimplementedError("the program is on the second device");
    }
    ANEMONE_ASSIGN_OR_RETURN(auto reload, first_->PrepareReload(*program.first, network));
    return std::make_unique<FallbackReload>(
        program, std::move(reload), network,
        [this, &program](const Network& changed,
                         const absl::Status& why) -> absl::StatusOr<std::unique_ptr<Program>> {
          ANEMONE_ASSIGN_OR_RETURN(auto made,
                                   second_->Compile(changed, program.target, program.route));
          Tell(changed, "did not take its new weights", why);
          return made;
        });
  }

  absl::Status Run(const Program& base, const Request& request) override {
    const auto& program = static_cast<const FallbackProgram&>(base);
    const Program* second = Second(program);
    if (second == nullptr) {
      absl::Status run = first_->Run(*program.first, request);
      if (run.ok()) return run;
      ANEMONE_ASSIGN_OR_RETURN(second, CompileSecond(program, run));
    }
    return second_->Run(*second, request);
  }

 private:
  static const Program* Second(const FallbackProgram& program) {
    const std::lock_guard<std::mutex> lock(program.mutex);
    return program.second.get();
  }

  absl::StatusOr<const Program*> CompileSecond(const FallbackProgram& program,
                                               const absl::Status& why) {
    const std::lock_guard<std::mutex> lock(program.mutex);
    if (program.second == nullptr) {
      ANEMONE_ASSIGN_OR_RETURN(program.second,
                               second_->Compile(*program.network, program.target, program.route));
      Tell(*program.network, "did not run", why);
    }
    return program.second.get();
  }

  void Tell(const Network& network, absl::string_view what, const absl::Status& why) const {
    note_(absl::StrCat("the engine segment ", NameOf(network), " ", what, " on the device ",
                       first_->name(), ", so it runs on the device ", second_->name(), ": ",
                       why.message()));
  }

  const std::unique_ptr<Device> first_, second_;
  const std::function<void(const std::string&)> note_;
};

}  // namespace

std::unique_ptr<Device> MakeFallbackDevice(std::unique_ptr<Device> first,
                                           std::unique_ptr<Device> second,
                                           std::function<void(const std::string&)> note) {
  return std::make_unique<FallbackDevice>(std::move(first), std::move(second), std::move(note));
}

}  // namespace anemone
