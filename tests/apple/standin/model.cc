#include "tests/apple/standin/model.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "device_limit_table.h"  // generated
#include "engine/apple/open_driver.h"
#include "engine/device.h"
#include "engine/formats/netplist_folder.h"
#include "engine/formats/netplist_keys.h"
#include "engine/network_builder.h"
#include "kernels/lowering.h"
#include "kernels/mil/mil_folder.h"
#include "math/move/convert.h"
#include "tests/apple/standin/faults.h"

namespace anemone::standin {
namespace {

namespace fs = std::filesystem;

Device& Engine() {
  static Device& device = [&]() -> Device& {
    SoftwareOptions options;
    options.numerics = *NumericsMode::Parse("exact");
    return *MakeSoftwareDevice(options).release();
  }();
  return device;
}

const Target& Host() {
  const Target* target = apple::TargetOfChip(ChipName());
  return target == nullptr ? **FindTarget("h13") : *target;
}

// The bytes of a file; "" if there is none.
std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The file of the weights that a dictionary has under a name.
std::string FileOf(absl::string_view name) {
  return std::string(absl::StripPrefix(name, "@model_path/"));
}

absl::StatusOr<Network> ReadFolder(const std::string& folder, bool is_mil) {
  NetworkBuilder c(Host(), is_mil ? Route::kMil : Route::kNetplist);
  const absl::Status status = is_mil ? LoadMil(folder, c) : LoadNetplist(folder, FindUnitKind, c);
  if (c.refusal()) return absl::FailedPreconditionError(c.refusal()->message);
  ANEMONE_RETURN_IF_ERROR(status);
  return c.TakeNetwork();
}

// The layout in which the stand-in reads and writes a port, as the live lists tell it.
LivePort Live(const ProgramPort& port) {
  const SurfaceLayout& layout = port.layout;
  const Dims& d = layout.dims;
  const int64_t size = BytesOf(layout.format);
  LivePort live{
      port.name, kFormatNames[static_cast<size_t>(layout.format)], d.n(), d.c(), d.d(), d.h(),
      d.w()};
  live.row_stride = layout.strides[3] * size;
  live.plane_stride = layout.strides[2] * size;
  live.depth_stride = layout.strides[1] * size;
  live.batch_stride = layout.strides[0] * size;
  if (Happens("wide")) {
    live.row_stride += 64;
    live.plane_stride = live.row_stride * d.h() + 128;
    live.depth_stride = live.plane_stride * d.c() + 64;
    live.batch_stride = live.depth_stride * d.d() + 192;
  }
  if (Happens("overlap")) live.row_stride = size;
  if (Happens("other-port")) live.symbol += "_other";
  if (Happens("other-size")) ++live.height;
  if (Happens("other-type")) live.type = "Float32";
  return live;
}

// The ports in the order in which surfaces bind.
void List(const std::vector<ProgramPort>& ports, bool is_mil, std::vector<LivePort>& live,
          std::vector<int>& order) {
  order.resize(ports.size());
  std::iota(order.begin(), order.end(), 0);
  if (is_mil) {
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return ports[a].name < ports[b].name; });
  }
  live.clear();
  for (int i : order) live.push_back(Live(ports[i]));
}

math::Layout LayoutOfLive(const LivePort& live, const SurfaceLayout& layout) {
  return {MathLayout(layout).element,
          {live.batch_stride, live.depth_stride, live.plane_stride, live.row_stride,
           BytesOf(layout.format)}};
}

// Surfaces of one side: of one size, not too small, and large enough for their ports.
bool AreSurfacesSound(const std::vector<LivePort>& ports, const std::vector<Memory>& surfaces) {
  if (surfaces.size() != ports.size()) return false;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (surfaces[i].bytes != surfaces[0].bytes) return false;
    if (surfaces[i].bytes < static_cast<size_t>(device_limit::kSurfaceFloor.value)) return false;
    if (static_cast<int64_t>(surfaces[i].bytes) < ports[i].batch_stride * ports[i].batches) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string ChipName() {
  const char* chip = std::getenv("ANEMONE_STANDIN_CHIP");
  return chip == nullptr ? "Apple M1" : chip;
}

// As with the framework, models with the same text and file names have the same identifier, and so
// the same folder, also in other processes.
Model::Model(bool is_mil, std::string text, std::map<std::string, std::string> weights)
    : is_mil_(is_mil), text_(std::move(text)), weights_(std::move(weights)) {
  size_t hash = std::hash<std::string>()(text_);
  for (const auto& [name, bytes] : weights_) hash = hash * 31 + std::hash<std::string>()(name);
  identifier_ = absl::StrFormat("%016x", hash);
  folder_ = (fs::temp_directory_path() / "anemone-standin" / identifier_).string();
}

Model::~Model() { Unload(); }

Error Model::Compile() {
  if (++Counts().compiles > device_limit::kCompilesPerProcess.value) return "";
  const fs::path folder = folder_;
  if (BytesOf(folder / (is_mil_ ? "model.mil" : "net.plist")) != text_) {
    return "the folder has no text, or another";
  }
  for (const auto& [name, bytes] : weights_) {
    if (BytesOf(folder / FileOf(name)) != bytes) {
      return "the folder has no file " + name + ", or another";
    }
  }
  const auto network = ReadFolder(folder_, is_mil_);
  if (!network.ok()) return std::string(network.status().message());
  const NetworkVerdict checked =
      CheckNetwork(*network, Host(), is_mil_ ? Route::kMil : Route::kNetplist);
  if (!checked.verdict.accepted) return checked.verdict.message;
  if (Happens("stale")) {
    for (const auto& [name, bytes] : weights_) {
      std::ofstream(folder / FileOf(name), std::ios::app) << "x";
    }
  }
  if (const char* log = std::getenv("ANEMONE_STANDIN_LOG")) {
    std::ofstream(log, std::ios::app) << (is_mil_ ? "mil\n" : "netplist\n");
  }
  is_compiled_ = true;
  return std::nullopt;
}

Error Model::Load() {
  if (!is_compiled_) return "the model is not compiled";
  const auto network = ReadFolder(folder_, is_mil_);
  if (!network.ok()) return std::string(network.status().message());
  auto program = Engine().Compile(*network, Host(), is_mil_ ? Route::kMil : Route::kNetplist);
  if (!program.ok()) return std::string(program.status().message());
  program_ = *std::move(program);
  ++Counts().loaded;
  List(program_->inputs(), is_mil_, inputs_, input_ports_);
  List(program_->outputs(), is_mil_, outputs_, output_ports_);
  return std::nullopt;
}

Error Model::Evaluate(const std::vector<Memory>& inputs, const std::vector<Memory>& outputs) {
  if (program_ == nullptr) return "the model is not loaded";
  if (!AreSurfacesSound(inputs_, inputs) || !AreSurfacesSound(outputs_, outputs)) {
    return device_limit::kSurfaceSize.answer;
  }
  std::vector<std::vector<std::byte>> in(inputs.size()), out(outputs.size());
  std::vector<const std::byte*> from(inputs.size());
  std::vector<std::byte*> to(outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const SurfaceLayout& layout = program_->inputs()[input_ports_[i]].layout;
    in[i].resize(layout.bytes());
    math::ConvertStrided(layout.dims.extent, inputs[i].data, LayoutOfLive(inputs_[i], layout),
                         in[i].data(), MathLayout(layout));
    from[input_ports_[i]] = in[i].data();
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    out[i].resize(program_->outputs()[output_ports_[i]].layout.bytes());
    to[output_ports_[i]] = out[i].data();
  }
  const absl::Status status = Engine().Run(*program_, {.inputs = from, .outputs = to});
  if (!status.ok()) return std::string(status.message());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const SurfaceLayout& layout = program_->outputs()[output_ports_[i]].layout;
    math::ConvertStrided(layout.dims.extent, out[i].data(), MathLayout(layout), outputs[i].data,
                         LayoutOfLive(outputs_[i], layout));
  }
  return std::nullopt;
}

void Model::Unload() {
  if (program_ != nullptr) --Counts().loaded;
  program_.reset();
}

}  // namespace anemone::standin
