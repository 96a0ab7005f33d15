#include "engine/apple/apple_device.h"

#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "device_limit_table.h"  // generated
#include "engine/apple/live_ports.h"
#include "engine/apple/model_files.h"
#include "engine/apple/model_folder.h"
#include "engine/apple/open_driver.h"
#include "engine/apple/stream.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace apple {
namespace {

// The status of a call that failed. `remedy` begins with "; ".
absl::Status Failed(absl::StatusCode code, const char* call, const std::string& text,
                    absl::string_view remedy) {
  return absl::Status(code, absl::StrCat("device: ", call, " failed",
                                         text.empty() ? " without a message" : ": ", text, remedy));
}

// What a program holds on the device. Calls of the framework are made on the stream, which keeps it
// alive until they have ended.
struct Loaded {
  std::shared_ptr<Driver> driver;  // outlives the rest
  ModelFiles files;
  std::shared_ptr<const ModelFolder> folder;
  DriverSurfaces inputs, outputs;
  std::unique_ptr<DriverModel> model;  // freed before the surfaces
  bool is_loaded = false, is_mapped = false;
  std::vector<LivePort> live_inputs, live_outputs;

  ~Loaded() {  // on the stream
    if (is_mapped) (void)model->Unmap();
    // Without it the engine's resources leak (device.md).
    if (is_loaded) (void)model->Unload();
  }

  // An error of the framework, or else a status.
  absl::Status Compile() {
    const ModelFiles& f = files;
    ModelSource source{f.is_mil, f.text.data(), f.text.size(), {}};
    for (const ModelFiles::Weights& w : f.weights) {
      source.weights.push_back({w.name, w.bytes().data(), w.bytes().size()});
    }
    if (Error error = driver->MakeModel(source, model)) {
      return Failed(absl::StatusCode::kInternal, "making a model", *error,
                    "; this version of macOS may have changed: see docs/apple.md");
    }
    const std::string path = model->Folder();
    if (path.empty()) {
      return Failed(absl::StatusCode::kInternal, "naming the model's folder", "",
                    "; this version of macOS may have changed: see docs/apple.md");
    }
    ANEMONE_ASSIGN_OR_RETURN(folder, ModelFolder::Take(path, files));
    if (Error error = model->Compile()) {
      return Failed(absl::StatusCode::kFailedPrecondition, "the compile", *error,
                    "; compare with `anemone confirm`, or run this segment elsewhere (--device "
                    "auto)");
    }
    return absl::OkStatus();
  }

  absl::Status Load() {
    ANEMONE_RETURN_IF_ERROR(folder->Check(files));
    if (Error error = model->Load()) {
      return Failed(absl::StatusCode::kInternal, "loading the program", *error,
                    "; end other programs that use the engine, or run this segment elsewhere "
                    "(--device auto)");
    }
    is_loaded = true;
    if (Error error = model->ListPorts(live_inputs, live_outputs)) {
      return Failed(absl::StatusCode::kInternal, "listing the ports", *error,
                    "; this version of macOS may have changed: see docs/apple.md");
    }
    return absl::OkStatus();
  }

  absl::Status MakeSurfaces(int64_t bytes, size_t count, DriverSurfaces& surfaces) const {
    for (size_t i = 0; i < count; ++i) {
      if (Error error = driver->MakeSurface(bytes, surfaces.emplace_back())) {
        surfaces.pop_back();
        return Failed(absl::StatusCode::kResourceExhausted,
                      absl::StrCat("a surface of ", bytes, " bytes").c_str(), *error,
                      "; end other programs, or bind smaller dimensions");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Map() {
    if (Error error = model->Map(inputs, outputs)) {
      return Failed(absl::StatusCode::kInternal, "mapping the surfaces", *error,
                    "; end other programs that use the engine");
    }
    is_mapped = true;
    return absl::OkStatus();
  }

  absl::Status Evaluate() {
    const Error error = model->Evaluate();
    if (!error) return absl::OkStatus();
    if (absl::StrContains(*error, "0x1d")) {
      return Failed(absl::StatusCode::kFailedPrecondition, "the evaluation", *error,
                    absl::StrCat("; the surfaces do not fit the program, although all have one "
                                 "size of at least ",
                                 device_limit::kSurfaceFloor.value,
                                 " bytes: report it with `anemone doctor --self-test`"));
    }
    return Failed(absl::StatusCode::kInternal, "the evaluation", *error,
                  "; run again, or run this segment elsewhere (--device auto)");
  }
};

class AppleProgram final : public Program {
 public:
  AppleProgram(const Network& network, Route route) {
    for (const InputPort& port : network.inputs) {
      inputs_.push_back({port.name, LayoutOf(port.dims, port.format, route)});
    }
    for (const OutputPort& port : network.outputs) {
      outputs_.push_back({port.name, LayoutOf(network.DimsOf(port.from), Format::kFloat16, route)});
    }
  }
  ~AppleProgram() override {
    if (loaded == nullptr) return;
    // The last owner: the job, on the stream's thread.
    Stream::OfProcess().Post([loaded = std::move(loaded)]() mutable {
      loaded.reset();
      return absl::OkStatus();
    });
  }

  std::shared_ptr<Loaded> loaded;
  BoundPorts in, out;
  mutable std::mutex mutex;  // of the surfaces
};

// Copies the values of ports to surfaces, or back.
absl::Status CopyIn(const AppleProgram& program, const Request& request) {
  for (size_t i = 0; i < program.in.ports.size(); ++i) {
    const BoundPort& bound = program.in.ports[i];
    const SurfaceLayout& layout = program.inputs()[bound.port].layout;
    DriverSurface& surface = *program.loaded->inputs[i];
    std::byte* const to = surface.Lock(/*only_to_read=*/false);
    if (to == nullptr) {
      return absl::ResourceExhaustedError("device: an input surface cannot be locked; run again");
    }
    math::ConvertStrided(layout.dims.extent, request.inputs[bound.port], MathLayout(layout), to,
                         bound.layout);
    surface.Unlock(/*only_to_read=*/false);
  }
  return absl::OkStatus();
}

absl::Status CopyOut(const AppleProgram& program, const Request& request) {
  for (size_t i = 0; i < program.out.ports.size(); ++i) {
    const BoundPort& bound = program.out.ports[i];
    const SurfaceLayout& layout = program.outputs()[bound.port].layout;
    DriverSurface& surface = *program.loaded->outputs[i];
    const std::byte* const from = surface.Lock(/*only_to_read=*/true);
    if (from == nullptr) {
      return absl::ResourceExhaustedError("device: an output surface cannot be locked; run again");
    }
    math::ConvertStrided(layout.dims.extent, from, bound.layout, request.outputs[bound.port],
                         MathLayout(layout));
    surface.Unlock(/*only_to_read=*/true);
  }
  return absl::OkStatus();
}

class AppleDevice final : public Device {
 public:
  AppleDevice(std::shared_ptr<Driver> driver, const AppleOptions& options)
      : driver_(std::move(driver)), options_(options), chip_(driver_->Chip()) {}
  std::string name() const override { return absl::StrCat("apple, ", chip_); }

  absl::StatusOr<std::unique_ptr<Program>> Compile(const Network& network, const Target& target,
                                                   Route route) override {
    ANEMONE_RETURN_IF_ERROR(CheckHost(target));
    const NetworkVerdict checked = CheckNetwork(network, target, route);
    if (options_.judges && !checked.verdict.accepted) {
      return absl::FailedPreconditionError(
          absl::StrCat(target.option_name(), " refuses the network: ", checked.verdict.message));
    }
    auto program = std::make_unique<AppleProgram>(network, route);
    program->loaded = std::make_shared<Loaded>();
    // The program's destructor gives its reference to the stream, so no other may outlive it.
    const std::shared_ptr<Loaded>& loaded = program->loaded;
    loaded->driver = driver_;
    ANEMONE_ASSIGN_OR_RETURN(loaded->files,
                             WriteModelFiles(network, target, route, options_.judges));
    ANEMONE_RETURN_IF_ERROR(CompileOnDevice(loaded));
    Stream& stream = Stream::OfProcess();
    ANEMONE_RETURN_IF_ERROR(
        stream.Run("a load", options_.run_timeout, [loaded] { return loaded->Load(); }));
    const PortNames& names = loaded->files.ports;
    ANEMONE_ASSIGN_OR_RETURN(
        program->in, BindPorts("input", loaded->live_inputs, program->inputs(), names.inputs));
    ANEMONE_ASSIGN_OR_RETURN(
        program->out, BindPorts("output", loaded->live_outputs, program->outputs(), names.outputs));
    ANEMONE_RETURN_IF_ERROR(
        loaded->MakeSurfaces(program->in.surface_bytes, program->in.ports.size(), loaded->inputs));
    ANEMONE_RETURN_IF_ERROR(loaded->MakeSurfaces(program->out.surface_bytes,
                                                 program->out.ports.size(), loaded->outputs));
    ANEMONE_RETURN_IF_ERROR(
        stream.Run("a mapping", options_.run_timeout, [loaded] { return loaded->Map(); }));
    return program;
  }

  absl::Status Run(const Program& base, const Request& request) override {
    const auto& program = static_cast<const AppleProgram&>(base);
    const absl::Time start = absl::Now();
    {
      const std::lock_guard<std::mutex> lock(program.mutex);
      // While a call has not ended the engine may still read the surfaces.
      ANEMONE_RETURN_IF_ERROR(Stream::OfProcess().Check());
      ANEMONE_RETURN_IF_ERROR(CopyIn(program, request));
      ANEMONE_RETURN_IF_ERROR(
          Stream::OfProcess().Run("an evaluation", options_.run_timeout,
                                  [loaded = program.loaded] { return loaded->Evaluate(); }));
      ANEMONE_RETURN_IF_ERROR(CopyOut(program, request));
    }
    if (request.on_unit != nullptr) (*request.on_unit)("program", "ANE", absl::Now() - start);
    return absl::OkStatus();
  }

 private:
  absl::Status CheckHost(const Target& target) const {
    const Target* host = TargetOfChip(chip_);
    if (host == nullptr || host == &target) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("device: the program is for ", target.option_name(), ", but this machine (",
                     chip_, ") has ", host->option_name(), "; give --target ", host->option_name(),
                     ", or --device software"));
  }

  // One compile at a time. After one that failed, waits as long as the device needs.
  absl::Status CompileOnDevice(const std::shared_ptr<Loaded>& loaded) {
    static std::mutex& one_at_a_time = *new std::mutex;
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    if (const absl::Duration pause = options_.history->PauseLeft(); pause > absl::ZeroDuration()) {
      options_.wait(pause);
    }
    ANEMONE_RETURN_IF_ERROR(options_.history->Begin());
    absl::Status compiled = Stream::OfProcess().Run("a compile", options_.compile_timeout,
                                                    [loaded] { return loaded->Compile(); });
    if (!compiled.ok()) options_.history->Fail();
    return compiled;
  }

  const std::shared_ptr<Driver> driver_;
  const AppleOptions options_;
  const std::string chip_;
};

}  // namespace
}  // namespace apple

absl::StatusOr<std::unique_ptr<Device>> OpenAppleDevice(const AppleOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(auto driver, apple::OpenDriver());
  AppleOptions used = options;
  int64_t seconds = 0;
  const char* timeout = std::getenv("ANEMONE_ANE_TIMEOUT");
  if (timeout != nullptr && absl::SimpleAtoi(timeout, &seconds) && seconds > 0) {
    used.run_timeout = absl::Seconds(seconds);
  }
  return std::make_unique<apple::AppleDevice>(std::move(driver), used);
}

absl::StatusOr<const Target*> AppleHostTarget() {
  ANEMONE_ASSIGN_OR_RETURN(auto driver, apple::OpenDriver());
  return apple::TargetOfChip(driver->Chip());
}

}  // namespace anemone
