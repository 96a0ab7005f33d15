#include "provider/coreml/package_writer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <utility>

#include "Model.pb.h"  // generated
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "anemone/version.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "engine/formats/mil_operations.h"
#include "provider/coreml/metadata.h"
#include "provider/coreml/mil_proto.h"
#include "provider/coreml/program_writer.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;
namespace spec = CoreML::Specification;

constexpr char kFolder[] = "com.apple.CoreML";  // below Data
constexpr int kHalfPorts = 1;                   // ios16: the first opset with ports of fp16
constexpr int kListedInputs = 3;                // ios18: with lists of shapes for several inputs

// An output of free size has no shape here; that of an input is the default.
void DescribeShape(const std::vector<int64_t>& shape, const PackageText::Port& text,
                   spec::ArrayFeatureType& to) {
  for (const SizeRange& range : text.ranges) {
    to.add_shape(range.first);
    spec::SizeRange& made = *to.mutable_shaperange()->add_sizeranges();
    made.set_lowerbound(range.first);
    made.set_upperbound(range.second);
  }
  for (const std::vector<int64_t>& one : text.shapes) {
    auto& listed = *to.mutable_enumeratedshapes()->add_shapes()->mutable_shape();
    listed.Assign(one.begin(), one.end());
    if (to.shape_size() == 0) to.mutable_shape()->Assign(one.begin(), one.end());
  }
  if (to.shape_size() > 0 || HasFree(shape)) return;
  to.mutable_shape()->Assign(shape.begin(), shape.end());
}

void Describe(const MilOutput& port, const PackageText::Port& text, spec::FeatureDescription& to) {
  to.set_name(port.name);
  to.set_shortdescription(Utf8Text(text.description));
  const std::vector<int64_t>& shape = *port.type.shape;
  if (text.is_image) {
    spec::ImageFeatureType& image = *to.mutable_type()->mutable_imagetype();
    image.set_height(shape[2]);
    image.set_width(shape[3]);
    image.set_colorspace(shape[1] == 1 ? spec::ImageFeatureType::GRAYSCALE
                                       : spec::ImageFeatureType::RGB);
    return;
  }
  spec::ArrayFeatureType& array = IsState(port)
                                      ? *to.mutable_type()->mutable_statetype()->mutable_arraytype()
                                      : *to.mutable_type()->mutable_multiarraytype();
  DescribeShape(shape, text, array);
  array.set_datatype(port.type.dtype == "fp32"    ? spec::ArrayFeatureType::FLOAT32
                     : port.type.dtype == "int32" ? spec::ArrayFeatureType::INT32
                                                  : spec::ArrayFeatureType::FLOAT16);
}

absl::StatusOr<spec::Model> ModelOf(const MilProgram& program, const MilOpset& opset,
                                    const PackageText& text) {
  spec::Model made;
  made.set_specificationversion(opset.specification);
  spec::ModelDescription& description = *made.mutable_description();
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const MilOutput& port = program.inputs[i];
    Describe(port, text.inputs[i],
             IsState(port) ? *description.add_state() : *description.add_input());
  }
  const std::vector<MilOutput> outputs = OutputsOf(program);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Describe(outputs[i], text.outputs[i], *description.add_output());
  }
  spec::Metadata& metadata = *description.mutable_metadata();
  metadata.set_shortdescription(Utf8Text(text.description));
  metadata.set_author(text.author);
  metadata.set_versionstring(text.version);
  metadata.set_license(text.license);
  metadata.mutable_userdefined()->insert(text.other.begin(), text.other.end());
  ANEMONE_RETURN_IF_ERROR(WriteMilProto(program, opset, *made.mutable_mlprogram()));
  if (made.ByteSizeLong() > std::numeric_limits<int32_t>::max()) {
    return absl::ResourceExhaustedError(
        "the program without its weights has more than 2 GB, which a package cannot hold; split "
        "the model");
  }
  return made;
}

// Map entries are written in the order of their keys, so that bytes are reproducible.
absl::StatusOr<uint64_t> WriteModel(const spec::Model& model, const std::string& path) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    model.SerializeToCodedStream(&out);
  }
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<int64_t>(bytes.size()));
  file.close();
  if (!file) return NotWritten(path);
  return XXH3_64bits(bytes.data(), bytes.size());
}

// An item's identifier in the form of a UUID, made from the content.
std::string IdOf(uint64_t content, int item) {
  const uint64_t other = XXH3_64bits_withSeed(&content, sizeof(content), item);
  return absl::StrFormat("%08X-%04X-8%03X-8%03X-%012X", content >> 32, content >> 16 & 0xffff,
                         content & 0xfff, other >> 48 & 0xfff, other & 0xffffffffffff);
}

absl::Status WriteManifest(const std::string& folder, uint64_t content, bool has_weights) {
  Json items = Json::object();
  auto add = [&](int item, const char* name, const char* description) {
    items[IdOf(content, item)] = {{"author", kFolder},
                                  {"description", description},
                                  {"name", name},
                                  {"path", absl::StrCat(kFolder, "/", name)}};
  };
  add(0, "model.mlmodel", "CoreML Model Specification");
  if (has_weights) add(1, "weights", "CoreML Model Weights");
  const Json manifest = {{"fileFormatVersion", "1.0.0"},
                         {"itemInfoEntries", std::move(items)},
                         {"rootModelIdentifier", IdOf(content, 0)}};
  const std::string path = absl::StrCat(folder, "/Manifest.json");
  std::ofstream file(path);
  file << manifest.dump(4) << "\n";
  file.close();
  return file ? absl::OkStatus() : NotWritten(path);
}

}  // namespace

bool IsState(const MilOutput& port) { return absl::StartsWith(port.type.dtype, "state<"); }

std::vector<MilOutput> OutputsOf(const MilProgram& program) {
  std::map<std::string, MilType> types;
  for (const MilStatement& statement : program.statements) {
    for (const MilOutput& output : statement.outputs) types[output.name] = output.type;
  }
  std::vector<MilOutput> outputs;
  outputs.reserve(program.outputs.size());
  for (const std::string& name : program.outputs) outputs.push_back({types.at(name), name});
  return outputs;
}

absl::StatusOr<int> OpsetFor(const MilProgram& program, const std::string& asked, bool has_lists) {
  ANEMONE_ASSIGN_OR_RETURN(int oldest, OldestOpset(program.statements));
  if (has_lists) oldest = std::max(oldest, kListedInputs);
  std::vector<MilOutput> ports = OutputsOf(program);
  ports.insert(ports.end(), program.inputs.begin(), program.inputs.end());
  for (const MilOutput& port : ports) {
    if (port.type.dtype == "fp16") oldest = std::max(oldest, kHalfPorts);
  }
  if (asked.empty()) return oldest;
  ANEMONE_ASSIGN_OR_RETURN(const int wanted, FindMilOpset(asked));
  if (wanted >= oldest) return wanted;
  return absl::UnimplementedError(
      absl::StrCat("--minimum-os ", asked, ": the model has operations, types or ports that only ",
                   absl::StrJoin(MilOpsets()[oldest].names, " and "),
                   " and later systems have; give one of these, or leave the option out"));
}

PackageWriter::PackageWriter(std::string folder, std::string data)
    : folder_(std::move(folder)),
      data_(std::move(data)),
      weights_(absl::StrCat(data_, "/weights/weight.bin")) {}

absl::StatusOr<std::unique_ptr<PackageWriter>> PackageWriter::Make(std::string folder) {
  std::string data = absl::StrCat(folder, "/Data/", kFolder);
  std::error_code error;
  fs::create_directories(absl::StrCat(data, "/weights"), error);
  if (error) return NotWritten(data);
  return std::unique_ptr<PackageWriter>(new PackageWriter(std::move(folder), std::move(data)));
}

MilBlobSink PackageWriter::blobs() {
  return
      [this](const Tensor& tensor, absl::string_view dtype) { return weights_.Add(tensor, dtype); };
}

absl::Status PackageWriter::Finish(const MilProgram& program, int opset, const PackageText& text) {
  ANEMONE_RETURN_IF_ERROR(weights_.Finish());
  std::error_code error;
  if (weights_.chunks() == 0) fs::remove(absl::StrCat(data_, "/weights"), error);
  ANEMONE_ASSIGN_OR_RETURN(const spec::Model model, ModelOf(program, MilOpsets()[opset], text));
  ANEMONE_ASSIGN_OR_RETURN(const uint64_t content,
                           WriteModel(model, absl::StrCat(data_, "/model.mlmodel")));
  return WriteManifest(folder_, content, weights_.chunks() > 0);
}

absl::StatusOr<PortNames> SaveSegmentPackage(const Network& network, const Target& target,
                                             const std::string& folder) {
  for (const InputPort& port : network.inputs) {
    if (port.format == Format::kFloat16) continue;
    return absl::UnimplementedError(
        absl::StrCat("input '", port.name, "': Core ML has no arrays of bytes"));
  }
  ANEMONE_ASSIGN_OR_RETURN(std::unique_ptr<PackageWriter> writer, PackageWriter::Make(folder));
  ANEMONE_ASSIGN_OR_RETURN(MilText written, WriteMilProgram(network, target, writer->blobs()));
  ANEMONE_ASSIGN_OR_RETURN(const int opset, OpsetFor(written.program, ""));
  PackageText text{.description = absl::StrCat("An engine segment for ", target.option_name(),
                                               ", by Anemone ", kVersion)};
  text.inputs.reserve(network.inputs.size());
  text.outputs.reserve(network.outputs.size());
  for (const InputPort& port : network.inputs) text.inputs.push_back({port.name});
  for (const OutputPort& port : network.outputs) text.outputs.push_back({port.name});
  ANEMONE_RETURN_IF_ERROR(writer->Finish(written.program, opset, text));
  return std::move(written.ports);
}

}  // namespace anemone
