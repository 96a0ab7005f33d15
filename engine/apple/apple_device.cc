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
#include "base/steady_now.h"
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
  bool is_loaded = false, is_mapped = false, is_lost = false;
  std::vector<LivePort> live_inputs, live_outputs;

  ~Loaded() {  // on the stream
    if (is_mapped) (void)model->Unmap();
    // Without it the engine's resources leak (device.md).
    if (is_loaded) (void)model->Unload();
  }

  // Makes the model, and sets the path of its folder.
  absl::Status MakeModel(std::string& path) {
    const ModelFiles& f = files;
    ModelSource source{f.is_mil, f.text.data(), f.text.size(), {}};
    for (const ModelFiles::Weights& w : f.weights) {
      source.weights.push_back({w.name, w.bytes().data(), w.bytes().size()});
    }
    if (Error error = driver->MakeModel(source, model)) {
      return Failed(absl::StatusCode::kInternal, "making a model", *error,
                    "; this version of macOS may have changed: see docs/apple.md");
    }
    path = model->Folder();
    if (!path.empty()) return absl::OkStatus();
    return Failed(absl::StatusCode::kInternal, "naming the model's folder", "",
                  "; this version of macOS may have changed: see docs/apple.md");
  }

  // An error of the framework, or else a status.
  absl::Status Compile() {
    std::string path;
    ANEMONE_RETURN_IF_ERROR(MakeModel(path));
    // A model of the same text may have other weights by now, or be another process's, and keeps
    // its folder.
    const std::string text = files.text;
    auto taken = ModelFolder::Take(path, files);
    for (int i = 2; absl::IsAlreadyExists(taken.status()); ++i) {
      files.text = text;
      files.MakeUnique(i);
      ANEMONE_RETURN_IF_ERROR(MakeModel(path));
      taken = ModelFolder::Take(path, files);
    }
    ANEMONE_ASSIGN_OR_RETURN(folder, std::move(taken));
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
    live_inputs.clear();
    live_outputs.clear();
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

  // Puts the weights of `next` in the place of those in the folder, without a compile (device.md:
  // unload, rewrite the weight files, load).
  absl::Status TakeWeights(const ModelFiles& next) {
    if (is_mapped) (void)model->Unmap();
    is_mapped = false;
    if (is_loaded) (void)model->Unload();
    is_loaded = false;
    ANEMONE_RETURN_IF_ERROR(folder->Rewrite(next));
    files.weights = next.weights;
    ANEMONE_RETURN_IF_ERROR(Load());
    ANEMONE_RETURN_IF_ERROR(Map());
    is_lost = false;
    return absl::OkStatus();
  }

  // The same; after an error the old weights are put back.
  absl::Status ReplaceWeights(const ModelFiles& next) {
    const ModelFiles before = files;
    absl::Status failed = TakeWeights(next);
    if (failed.ok()) return failed;
    const absl::Status back = PutBack(before);
    return absl::Status(failed.code(), absl::StrCat(failed.message(), "; ",
                                                    back.ok() ? "the device keeps the old weights"
                                                              : back.message()));
  }

  // Back to weights that the program had. After an error it has none that the caller expects.
  absl::Status PutBack(const ModelFiles& before) {
    absl::Status back = TakeWeights(before);
    if (back.ok()) return back;
    is_lost = true;
    return absl::Status(back.code(),
                        absl::StrCat("the program is lost, because its old weights could not be "
                                     "loaded again: ",
                                     back.message()));
  }

  absl::Status Evaluate() {
    if (is_lost) {
      return absl::FailedPreconditionError(
          "device: the program was lost when its weights changed; load the model again");
    }
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
  AppleProgram(const Network& network, const Target& t, Route r, absl::Duration timeout)
      : target(t), route(r), free_timeout_(timeout) {
    for (const InputPort& port : network.inputs) {
      inputs_.push_back({port.name, LayoutOf(port.dims, port.format, route)});
    }
    for (const OutputPort& port : network.outputs) {
      outputs_.push_back({port.name, LayoutOf(network.DimsOf(port.from), Format::kFloat16, route)});
    }
  }
  ~AppleProgram() override {
    if (loaded == nullptr) return;
    // The last owner: the job, on the stream's thread. Waits for it, because a process that ends
    // before it leaves the model on the device, and its folder.
    Stream::OfProcess().Free("an unload", free_timeout_, [loaded = std::move(loaded)]() mutable {
      loaded.reset();
      return absl::OkStatus();
    });
  }

  const Target& target;
  const Route route;
  std::string form;  // ModelFiles::FormKey()
  std::shared_ptr<Loaded> loaded;
  BoundPorts in, out;
  mutable std::mutex mutex;  // of the surfaces

 private:
  const absl::Duration free_timeout_;
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

// The program outlives it: its destructor frees what it has loaded on the stream.
class AppleReload final : public Reload {
 public:
  AppleReload(const AppleProgram& program, ModelFiles files, absl::Duration timeout)
      : program_(program),
        before_(program.loaded->files),
        files_(std::move(files)),
        timeout_(timeout) {}

  absl::Status Apply() override {
    return OnStream([files = files_](Loaded& loaded) { return loaded.ReplaceWeights(files); });
  }
  absl::Status Undo() override {
    return OnStream([files = before_](Loaded& loaded) { return loaded.PutBack(files); });
  }

 private:
  absl::Status OnStream(std::function<absl::Status(Loaded&)> change) {
    const std::lock_guard<std::mutex> lock(program_.mutex);
    return Stream::OfProcess().Run(
        "a change of weights", timeout_,
        [loaded = program_.loaded, change = std::move(change)] { return change(*loaded); });
  }

  const AppleProgram& program_;
  const ModelFiles before_, files_;
  const absl::Duration timeout_;
};

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
    auto program = std::make_unique<AppleProgram>(network, target, route, options_.run_timeout);
    program->loaded = std::make_shared<Loaded>();
    // The program's destructor gives its reference to the stream, so no other may outlive it.
    const std::shared_ptr<Loaded>& loaded = program->loaded;
    loaded->driver = driver_;
    ANEMONE_ASSIGN_OR_RETURN(loaded->files,
                             WriteModelFiles(network, target, route, options_.judges));
    program->form = loaded->files.FormKey();
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

  bool reloads() const override { return true; }

  absl::StatusOr<std::unique_ptr<Reload>> PrepareReload(const Program& base,
                                                        const Network& network) override {
    const auto& program = static_cast<const AppleProgram&>(base);
    ANEMONE_ASSIGN_OR_RETURN(
        ModelFiles files, WriteModelFiles(network, program.target, program.route, options_.judges));
    const ModelFiles& before = program.loaded->files;
    if (files.is_mil != before.is_mil || files.FormKey() != program.form) {
      return absl::UnimplementedError("the text of the model has changed, not only its weights");
    }
    ANEMONE_RETURN_IF_ERROR(program.loaded->folder->Reserve());
    return std::make_unique<AppleReload>(program, std::move(files), options_.run_timeout);
  }

  absl::Status Run(const Program& base, const Request& request) override {
    const auto& program = static_cast<const AppleProgram&>(base);
    const absl::Time start = SteadyNow();
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
    if (request.on_unit != nullptr) (*request.on_unit)("program", "ANE", SteadyNow() - start);
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
  constexpr int kLongest = 86400;
  int seconds = 0;
  const char* timeout = std::getenv("ANEMONE_ANE_TIMEOUT");
  if (timeout != nullptr && *timeout != '\0') {
    if (!absl::SimpleAtoi(timeout, &seconds) || seconds < 1 || seconds > kLongest) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ANEMONE_ANE_TIMEOUT: '", timeout, "' is not a number of seconds; give 1 to ", kLongest));
    }
    used.run_timeout = absl::Seconds(seconds);
  }
  return std::make_unique<apple::AppleDevice>(std::move(driver), used);
}

absl::StatusOr<const Target*> AppleHostTarget() {
  ANEMONE_ASSIGN_OR_RETURN(auto driver, apple::OpenDriver());
  return apple::TargetOfChip(driver->Chip());
}

absl::Status CheckAppleDevice() { return apple::Stream::OfProcess().Check(); }

}  // namespace anemone
