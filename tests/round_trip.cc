#include "tests/round_trip.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/device.h"
#include "engine/formats/mil_emitter.h"
#include "engine/formats/netplist_folder.h"
#include "engine/formats/network_json.h"
#include "kernels/lowering.h"
#include "kernels/mil/mil_folder.h"
#include "provider/package/network_text.h"

namespace anemone {
namespace {

std::vector<std::byte> RandomPort(const ProgramPort& port, std::mt19937& random) {
  std::vector<std::byte> bytes(port.layout.bytes());
  if (port.layout.format == Format::kUInt8) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  }
  std::uniform_real_distribution<float> any(-1, 1);
  for (size_t i = 0; i + 1 < bytes.size(); i += sizeof(math::Half)) {
    const math::Half half = math::ToHalf(any(random));
    std::memcpy(bytes.data() + i, &half, sizeof(half));
  }
  return bytes;
}

absl::Status Differ(const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat("read back: ", what));
}

absl::Status ComparePorts(const Network& network, const Network& again, const PortNames& names) {
  if (again.inputs.size() != names.inputs.size() || again.outputs.size() != names.outputs.size() ||
      names.inputs.size() != network.inputs.size() ||
      names.outputs.size() != network.outputs.size()) {
    return Differ("another number of ports");
  }
  for (size_t i = 0; i < again.inputs.size(); ++i) {
    const InputPort &port = again.inputs[i], &from = network.inputs[i];
    if (port.name != names.inputs[i] || port.dims != from.dims || port.format != from.format) {
      return Differ(absl::StrCat("input '", from.name, "' is another"));
    }
  }
  for (size_t i = 0; i < again.outputs.size(); ++i) {
    if (again.outputs[i].name != names.outputs[i]) {
      return Differ(absl::StrCat("output '", network.outputs[i].name, "' is another"));
    }
  }
  return absl::OkStatus();
}

// The text in `folder` is the program that the network is written as.
absl::Status CompareTexts(const Network& network, const Target& target, const std::string& folder) {
  int64_t offset = 64;  // weights are stored one behind the other, each behind a header
  ANEMONE_ASSIGN_OR_RETURN(
      MilText written,
      WriteMilProgram(network, target, [&](const Tensor& tensor, absl::string_view dtype) {
        const int64_t bytes = MilBlobBytes(tensor, dtype);
        return std::exchange(offset, offset + 64 + (bytes + 63) / 64 * 64);
      }));
  ANEMONE_ASSIGN_OR_RETURN(auto text, MappedFile::Open(folder + "/model.mil"));
  ANEMONE_ASSIGN_OR_RETURN(MilProgram read, ReadMil(text->text()));
  return CompareMil(written.program, read);
}

}  // namespace

TemporaryFolder::TemporaryFolder(std::string base) : path_(std::move(base) + "/segment.XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) path_.clear();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

absl::StatusOr<std::vector<std::byte>> OutputsOf(const Network& network, const Target& target,
                                                 Route route, int seed) {
  auto device = MakeSoftwareDevice();
  ANEMONE_ASSIGN_OR_RETURN(auto program, device->Compile(network, target, route));
  std::mt19937 random(seed);
  std::vector<std::vector<std::byte>> inputs, outputs;
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
  for (const ProgramPort& port : program->inputs()) inputs.push_back(RandomPort(port, random));
  for (const ProgramPort& port : program->outputs()) outputs.emplace_back(port.layout.bytes());
  in.reserve(inputs.size());
  out.reserve(outputs.size());
  for (const auto& bytes : inputs) in.push_back(bytes.data());
  for (auto& bytes : outputs) out.push_back(bytes.data());
  ANEMONE_RETURN_IF_ERROR(device->Run(*program, {in, out}));
  std::vector<std::byte> all;
  for (const auto& bytes : outputs) all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

absl::StatusOr<Network> ReadFolder(const EngineFormat& format, const std::string& folder,
                                   const Target& target) {
  NetworkBuilder c(target, format.route);
  absl::Status status =
      format.route == Route::kMil ? LoadMil(folder, c) : LoadNetplist(folder, FindUnitKind, c);
  if (c.refusal()) return absl::FailedPreconditionError("refused: " + c.refusal()->message);
  ANEMONE_RETURN_IF_ERROR(status);
  return c.TakeNetwork();
}

absl::Status CheckRoundTrip(const Network& network, const Target& target,
                            const EngineFormat& format, const NetplistOptions& options,
                            const std::string& folder) {
  ANEMONE_ASSIGN_OR_RETURN(Network prepared, format.prepare(network, target));
  Unwritable found = format.judge(prepared, target, options);
  if (!found.missing.empty()) {
    const UnitNote& first = found.missing[0];
    return absl::UnimplementedError(absl::StrCat(first.type, " '", first.unit, "': ", first.why));
  }
  ANEMONE_ASSIGN_OR_RETURN(PortNames ports, format.save(prepared, target, options, folder));
  if (format.route == Route::kMil) ANEMONE_RETURN_IF_ERROR(CompareTexts(prepared, target, folder));
  ANEMONE_ASSIGN_OR_RETURN(Network again, ReadFolder(format, folder, target));
  ANEMONE_RETURN_IF_ERROR(ComparePorts(network, again, ports));
  ANEMONE_ASSIGN_OR_RETURN(auto want, OutputsOf(network, target, format.route, 7));
  ANEMONE_ASSIGN_OR_RETURN(auto got, OutputsOf(again, target, format.route, 7));
  return want.empty() || got != want ? Differ("other bits") : absl::OkStatus();
}

PackagedSegment Packaged(const Network& network) {
  const auto port = [](const std::string& name, const Dims& d) {
    return PackagedPort{name, DataType::kFloat, {d.n(), d.c(), d.d(), d.h(), d.w()}};
  };
  PackagedSegment segment{.name = "segment", .network = network};
  for (const InputPort& in : network.inputs) segment.inputs.push_back(port(in.name, in.dims));
  for (const OutputPort& out : network.outputs) {
    segment.outputs.push_back(port(out.name, network.DimsOf(out.from)));
  }
  return segment;
}

absl::Status CompareNetworks(const Network& got, const Network& want) {
  const std::string units = WriteNetworkText(WriteNetwork(got)),
                    wanted = WriteNetworkText(WriteNetwork(want));
  if (units != wanted) {
    return Differ(absl::StrCat("other units: ", units, " in place of ", wanted));
  }
  const std::vector<const Tensor*> a = TensorsOf(got), b = TensorsOf(want);
  for (size_t i = 0; i < b.size(); ++i) {
    const std::string name = absl::StrCat("tensor ", i);
    if (a[i]->type() != b[i]->type() || a[i]->dims() != b[i]->dims() ||
        a[i]->is_fill() != b[i]->is_fill()) {
      return Differ(name + ": another type or shape");
    }
    const Compressed *x = a[i]->compressed(), *y = b[i]->compressed();
    if ((x == nullptr) != (y == nullptr)) return Differ(name + ": not compressed alike");
    if (x != nullptr && (x->form() != y->form() || x->stored_bytes() != y->stored_bytes() ||
                         x->scales() != y->scales() || x->zero_points() != y->zero_points() ||
                         x->values() != y->values() || x->mask() != y->mask())) {
      return Differ(name + ": another compressed form");
    }
    if (a[i]->bytes() != b[i]->bytes()) return Differ(name + ": other values");
  }
  return absl::OkStatus();
}

absl::Status CheckPackageRoundTrip(const Network& network, const Target& target, Route route) {
  ANEMONE_ASSIGN_OR_RETURN(std::string bytes,
                           WritePackage({&target, route, "tests", {Packaged(network)}, {}}));
  ANEMONE_ASSIGN_OR_RETURN(Package read, ReadPackage(bytes, nullptr));
  const Network& again = read.segments.at(0).network;
  ANEMONE_RETURN_IF_ERROR(CompareNetworks(again, network));
  for (const Tensor* tensor : TensorsOf(again)) {
    if (tensor->compressed() != nullptr || tensor->is_fill() || tensor->elements() == 0) continue;
    const auto* at = reinterpret_cast<const char*>(tensor->bytes().data());
    if (at < bytes.data() || at >= bytes.data() + bytes.size()) return Differ("a copy of a tensor");
  }
  ANEMONE_ASSIGN_OR_RETURN(auto want, OutputsOf(network, target, route, 7));
  ANEMONE_ASSIGN_OR_RETURN(auto got, OutputsOf(again, target, route, 7));
  return want.empty() || got != want ? Differ("other bits") : absl::OkStatus();
}

}  // namespace anemone
