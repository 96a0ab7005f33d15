#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "base/status_macros.h"
#include "engine/formats/network_json.h"
#include "engine/table_hash.h"
#include "engine/verdict.h"
#include "provider/new_file.h"
#include "provider/package/network_text.h"
#include "provider/package/package.h"
#include "provider/package/package_format.h"
#include "provider/package/package_tensors.h"

namespace anemone {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

absl::string_view BytesOf(const FlatBufferBuilder& builder) {
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

absl::Status TooLarge(const std::string& what) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "package: ", what, " is larger than the format allows; compile the model in parts"));
}

Offset<flatbuffers::Vector<Offset<format::Port>>> WritePorts(const std::vector<PackagedPort>& ports,
                                                             FlatBufferBuilder& builder) {
  std::vector<Offset<format::Port>> written;
  for (const PackagedPort& port : ports) {
    const auto name = builder.CreateString(port.name);
    const auto dims = builder.CreateVector(port.dims);
    written.push_back(format::CreatePort(builder, name, static_cast<int32_t>(port.type), dims));
  }
  return builder.CreateVector(written);
}

// A package as a list of pieces. The pieces of weights are views; only tables are copied.
class Image {
 public:
  explicit Image(const Package& package) : package_(package), tensors_(package.sources) {}

  absl::Status Make() {
    std::vector<Offset<format::Segment>> segments;
    for (const PackagedSegment& segment : package_.segments) {
      absl::StatusOr<Offset<format::Segment>> written = WriteSegment(segment);
      if (!written.ok()) {
        return absl::Status(
            written.status().code(),
            absl::StrCat("package: segment '", segment.name, "': ", written.status().message()));
      }
      segments.push_back(*written);
    }
    builder_.Finish(format::CreateSegments(builder_, builder_.CreateVector(segments)),
                    format::kSegmentsIdentifier);
    AddSection(format::kSegmentsSection, {BytesOf(builder_)});
    AddSection(format::kWeightsSection, tensors_.pieces());
    for (const PackageExtension& extension : package_.extensions) {
      for (const Section& section : sections_) {
        if (section.name != extension.name) continue;
        return absl::InvalidArgumentError(absl::StrCat("package: section '", section.name,
                                                       "' already exists; rename the extension"));
      }
      const auto bytes = extension.bytes.bytes();
      AddSection(extension.name, {{reinterpret_cast<const char*>(bytes.data()), bytes.size()}});
    }
    return WriteHeader();
  }

  // Calls take() for all bytes of the file, in order.
  absl::Status ForEach(absl::FunctionRef<absl::Status(absl::string_view)> take) const {
    ANEMONE_RETURN_IF_ERROR(take(start_));
    for (const Section& section : sections_) {
      for (absl::string_view piece : section.pieces) ANEMONE_RETURN_IF_ERROR(take(piece));
      ANEMONE_RETURN_IF_ERROR(take(Padding(section.size)));
    }
    return absl::OkStatus();
  }

  uint64_t size() const { return start_.size() + end_; }
  uint64_t checksum() const { return checksum_; }

 private:
  struct Section {
    std::string name;
    std::vector<absl::string_view> pieces;
    uint64_t offset = 0, size = 0;
  };

  // The padding after `size` bytes.
  static absl::string_view Padding(uint64_t size) {
    static constexpr char kZeros[format::kAlignment] = {};
    return {kZeros, format::Aligned(size) - size};
  }

  absl::StatusOr<Offset<format::Segment>> WriteSegment(const PackagedSegment& segment) {
    ANEMONE_RETURN_IF_ERROR(format::CheckPorts(segment));
    std::vector<uint32_t> templates;
    const std::string network = WriteNetworkText(WriteTemplates(segment.network, templates));
    if (network.size() > format::kMostNetwork) return TooLarge("a network");
    std::vector<Offset<format::Tensor>> tensors;
    for (const Tensor* tensor : TensorsOf(segment.network)) {
      ANEMONE_ASSIGN_OR_RETURN(Offset<format::Tensor> written, tensors_.Write(*tensor, builder_));
      tensors.push_back(written);
    }
    const auto name = builder_.CreateString(segment.name);
    const auto text = builder_.CreateString(network);
    const auto units = builder_.CreateVector(WriteUnits(segment.network, templates));
    const auto values = builder_.CreateVector(tensors);
    const auto inputs = WritePorts(segment.inputs, builder_);
    const auto outputs = WritePorts(segment.outputs, builder_);
    if (builder_.GetSize() > format::kMostSegments) return TooLarge("the table of segments");
    return format::CreateSegment(builder_, name, text, units, values, inputs, outputs);
  }

  std::vector<Offset<format::Unit>> WriteUnits(const Network& network,
                                               absl::Span<const uint32_t> templates) {
    std::vector<Offset<format::Unit>> written;
    written.reserve(network.units.size());
    for (size_t i = 0; i < network.units.size(); ++i) {
      const Unit& unit = network.units[i];
      std::vector<format::Operand> bottoms;
      bottoms.reserve(unit.bottoms.size());
      for (const Operand& operand : unit.bottoms) {
        bottoms.emplace_back(static_cast<format::Source>(operand.source), operand.index);
      }
      const auto name = builder_.CreateString(unit.name);
      const auto operands = builder_.CreateVectorOfStructs(bottoms);
      written.push_back(format::CreateUnit(builder_, name, templates[i], operands));
    }
    return written;
  }

  void AddSection(std::string name, std::vector<absl::string_view> pieces) {
    Section section{std::move(name), std::move(pieces), end_};
    for (absl::string_view piece : section.pieces) section.size += piece.size();
    end_ += format::Aligned(section.size);
    sections_.push_back(std::move(section));
  }

  absl::Status WriteHeader() {
    FlatBufferBuilder header;
    std::vector<Offset<format::Section>> sections;
    for (const Section& section : sections_) {
      sections.push_back(format::CreateSection(header, header.CreateString(section.name),
                                               section.offset, section.size,
                                               format::Checksum(section.pieces)));
    }
    const auto text = [&](absl::string_view t) { return header.CreateString(t.data(), t.size()); };
    const auto tables = text(TableHash()), producer = text(package_.producer),
               target = text(package_.target->option_name()),
               route = text(RouteName(package_.route));
    format::FinishSizePrefixedHeaderBuffer(
        header, format::CreateHeader(header, format::kMajor, format::kMinor, tables, producer,
                                     target, route, header.CreateVector(sections)));
    start_ = std::string(BytesOf(header));
    if (start_.size() > format::kMostHeader) return TooLarge("the header");
    checksum_ = format::Checksum({start_});
    start_.append(reinterpret_cast<const char*>(&checksum_), sizeof(checksum_));
    start_.resize(format::Aligned(start_.size()));
    return absl::OkStatus();
  }

  const Package& package_;
  FlatBufferBuilder builder_;  // of section "segments"
  PackageTensorWriter tensors_;
  std::vector<Section> sections_;
  uint64_t end_ = 0;   // the end of the last section
  std::string start_;  // header, its checksum, and padding up to the first section
  uint64_t checksum_ = 0;
};

}  // namespace

absl::StatusOr<std::string> WritePackage(const Package& package) {
  return Guarded("write a package", [&]() -> absl::StatusOr<std::string> {
    Image image(package);
    ANEMONE_RETURN_IF_ERROR(image.Make());
    std::string bytes;
    bytes.reserve(image.size());
    ANEMONE_RETURN_IF_ERROR(image.ForEach([&](absl::string_view piece) {
      bytes.append(piece.data(), piece.size());
      return absl::OkStatus();
    }));
    return bytes;
  });
}

absl::StatusOr<uint64_t> SavePackage(const Package& package, const std::string& path,
                                     bool for_cache) {
  return Guarded("write a package", [&]() -> absl::StatusOr<uint64_t> {
    Image image(package);
    ANEMONE_RETURN_IF_ERROR(image.Make());
    ANEMONE_ASSIGN_OR_RETURN(auto file, NewFile::Make(path));
    if (for_cache) file->HideFromOthers();
    ANEMONE_RETURN_IF_ERROR(
        image.ForEach([&](absl::string_view piece) { return file->Write(piece); }));
    ANEMONE_RETURN_IF_ERROR(file->PutIntoPlace(/*flush=*/!for_cache));
    return image.checksum();
  });
}

}  // namespace anemone
