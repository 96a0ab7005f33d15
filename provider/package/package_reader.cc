#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/formats/network_json.h"
#include "engine/table_hash.h"
#include "engine/verdict.h"
#include "kernels/rewrites/recurrence.h"
#include "provider/package/network_text.h"
#include "provider/package/package.h"
#include "provider/package/package_format.h"
#include "provider/package/package_tensors.h"

namespace anemone {
namespace {

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(
      absl::StrCat("package: ", what, "; it is damaged, compile the model again"));
}

absl::Status Stale(const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("package: ", what, "; it is stale, compile the model again"));
}

// The depth is that of our schema. The number of tables is large because each tensor is a table.
flatbuffers::Verifier VerifierOf(absl::string_view bytes) {
  constexpr uint32_t kMostDepth = 8, kMostTables = 1 << 24;
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), kMostDepth, kMostTables};
}

absl::string_view TextOf(const flatbuffers::String* text) { return {text->data(), text->size()}; }

std::vector<PackagedPort> PortsOf(
    const flatbuffers::Vector<flatbuffers::Offset<format::Port>>& ports) {
  std::vector<PackagedPort> read;
  for (const format::Port* port : ports) {
    PackagedPort& added = read.emplace_back();
    added.name = std::string(TextOf(port->name()));
    added.type = DataType(port->type());
    if (port->dims() != nullptr) added.dims.assign(port->dims()->begin(), port->dims()->end());
  }
  return read;
}

// Whether the operands exist is checked when the network is read.
absl::StatusOr<std::vector<TemplateUse>> UnitsOf(
    const flatbuffers::Vector<flatbuffers::Offset<format::Unit>>& units) {
  std::vector<TemplateUse> read;
  read.reserve(units.size());
  for (const format::Unit* unit : units) {
    TemplateUse& added = read.emplace_back();
    added.name = std::string(TextOf(unit->name()));
    added.index = unit->like();
    if (unit->bottoms() == nullptr) continue;
    added.bottoms.reserve(unit->bottoms()->size());
    for (const format::Operand* operand : *unit->bottoms()) {
      if (operand->source() > format::Source::MAX || operand->index() > INT32_MAX) {
        return absl::DataLossError("an operand that does not exist");
      }
      added.bottoms.push_back(
          {static_cast<Operand::Source>(operand->source()), static_cast<int>(operand->index())});
    }
  }
  return read;
}

class Reader {
 public:
  Reader(absl::string_view bytes, std::shared_ptr<const void> owner, std::vector<Tensor> sources)
      : bytes_(bytes), owner_(std::move(owner)) {
    package_.sources = std::move(sources);
  }

  absl::StatusOr<Package> Read() {
    ANEMONE_RETURN_IF_ERROR(ReadHeader());
    ANEMONE_RETURN_IF_ERROR(ReadSections());
    ANEMONE_RETURN_IF_ERROR(ReadSegments());
    return std::move(package_);
  }

 private:
  // Reads the header and its checksum; the sections follow them.
  absl::Status ReadHeader() {
    constexpr size_t kSize = sizeof(uint32_t);
    if (!IsPackage(bytes_)) {
      return absl::InvalidArgumentError("not a package of Anemone; give a file that it wrote");
    }
    const size_t size =
        kSize + flatbuffers::GetPrefixedSize(reinterpret_cast<const uint8_t*>(bytes_.data()));
    uint64_t checksum = 0;
    if (size > format::kMostHeader || bytes_.size() < size + sizeof(checksum)) {
      return Damaged(absl::StrCat("the header is cut off at byte ", bytes_.size()));
    }
    const absl::string_view header = bytes_.substr(0, size);
    std::memcpy(&checksum, bytes_.data() + size, sizeof(checksum));
    flatbuffers::Verifier verifier = VerifierOf(header);
    if (checksum != format::Checksum({header}) ||
        !format::VerifySizePrefixedHeaderBuffer(verifier)) {
      return Damaged("the header does not match its checksum");
    }
    package_.checksum = checksum;
    header_ = format::GetSizePrefixedHeader(header.data());
    const size_t end = size + sizeof(checksum), body = format::Aligned(end);
    ANEMONE_RETURN_IF_ERROR(CheckPadding(bytes_, end, body));
    body_ = bytes_.substr(body);
    return CheckHeader();
  }

  absl::Status CheckHeader() {
    package_.producer = std::string(TextOf(header_->producer()));
    if (header_->format_major() != format::kMajor) {
      return absl::UnimplementedError(absl::StrCat("package: has format ", header_->format_major(),
                                                   ".", header_->format_minor(), " (written by ",
                                                   package_.producer, "), this version reads ",
                                                   format::kMajor, ".x; compile the model again"));
    }
    if (TextOf(header_->tables()) != TableHash()) {
      return Stale(absl::StrCat("was compiled by rule tables ", TextOf(header_->tables()), " (",
                                package_.producer, "), this version has ", TableHash()));
    }
    absl::StatusOr<const Target*> target = FindTarget(TextOf(header_->target()));
    const absl::StatusOr<Route> route = ParseRoute(TextOf(header_->route()));
    if (!target.ok() || !route.ok()) return Damaged("unknown target or route");
    package_.target = *target;
    package_.route = *route;
    return absl::OkStatus();
  }

  // Reads the sections in one pass: they are in file order.
  absl::Status ReadSections() {
    uint64_t end = 0;
    for (const format::Section* section : *header_->sections()) {
      const absl::string_view name = TextOf(section->name());
      if (section->offset() < end || section->offset() > body_.size() ||
          section->offset() % format::kAlignment != 0 ||
          section->size() > body_.size() - section->offset()) {
        return Damaged(absl::StrCat("section '", name, "' is cut off"));
      }
      ANEMONE_RETURN_IF_ERROR(CheckPadding(body_, end, section->offset()));
      end = section->offset() + section->size();
      const absl::string_view bytes = body_.substr(section->offset(), section->size());
      if (section->checksum() != format::Checksum({bytes})) {
        return Damaged(absl::StrCat("section '", name, "' does not match its checksum"));
      }
      ANEMONE_RETURN_IF_ERROR(TakeSection(name, bytes));
    }
    if (!segments_ || !weights_) return Damaged("a section is missing");
    ANEMONE_RETURN_IF_ERROR(CheckPadding(body_, end, format::Aligned(end)));
    // No checksum covers bytes after the last section, and the writer writes none.
    if (body_.size() > format::Aligned(end)) {
      return Damaged(absl::StrCat("has ", body_.size() - format::Aligned(end),
                                  " bytes after its last section"));
    }
    return absl::OkStatus();
  }

  // No checksum covers the bytes between sections, which are zeros.
  static absl::Status CheckPadding(absl::string_view of, size_t from, size_t to) {
    if (of.size() < to) return Damaged("is cut off after a section");
    if (of.substr(from, to - from).find_first_not_of('\0') == absl::string_view::npos) {
      return absl::OkStatus();
    }
    return Damaged("has bytes between its sections");
  }

  absl::Status TakeSection(absl::string_view name, absl::string_view bytes) {
    for (auto [known, taken] : {std::pair(format::kSegmentsSection, &segments_),
                                std::pair(format::kWeightsSection, &weights_)}) {
      if (name != known) continue;
      if (*taken) return Damaged(absl::StrCat("section '", name, "' appears twice"));
      *taken = bytes;
      return absl::OkStatus();
    }
    package_.extensions.push_back(
        {std::string(name),
         Tensor::View(DataType::kUInt8, {static_cast<int64_t>(bytes.size())},
                      {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, owner_)});
    return absl::OkStatus();
  }

  absl::Status ReadSegments() {
    if (segments_->size() > format::kMostSegments)
      return Damaged("section 'segments' is too large");
    flatbuffers::Verifier verifier = VerifierOf(*segments_);
    if (!verifier.VerifyBuffer<format::Segments>(format::kSegmentsIdentifier)) {
      return Damaged("section 'segments' is not a valid FlatBuffer");
    }
    const auto* segments = flatbuffers::GetRoot<format::Segments>(segments_->data())->segments();
    for (const format::Segment* segment : *segments) {
      PackagedSegment& added = package_.segments.emplace_back();
      added.name = std::string(TextOf(segment->name()));
      added.inputs = PortsOf(*segment->inputs());
      added.outputs = PortsOf(*segment->outputs());
      std::optional<Verdict> refusal;
      absl::Status status = ReadUnits(*segment, added, refusal);
      if (refusal) {
        return Stale(absl::StrCat("segment '", added.name, "': ", Named(*refusal)));
      }
      if (absl::IsFailedPrecondition(status)) return Annotated(status, "package");
      if (absl::IsResourceExhausted(status)) {
        return Annotated(status, absl::StrCat("segment '", added.name, "'"));
      }
      if (!status.ok()) {
        return Damaged(absl::StrCat("segment '", added.name, "': ", status.message()));
      }
    }
    return absl::OkStatus();
  }

  // `refusal` is set if the target no longer accepts the units.
  absl::Status ReadUnits(const format::Segment& segment, PackagedSegment& to,
                         std::optional<Verdict>& refusal) {
    const absl::string_view text = TextOf(segment.network());
    if (text.size() > format::kMostNetwork) return absl::DataLossError("the network is too large");
    ANEMONE_ASSIGN_OR_RETURN(Json json, ReadNetworkText(text));
    ANEMONE_ASSIGN_OR_RETURN(std::vector<TemplateUse> units, UnitsOf(*segment.units()));
    std::vector<Tensor> values;
    for (const format::Tensor* table : *segment.tensors()) {
      ANEMONE_ASSIGN_OR_RETURN(Tensor value,
                               ReadPackageTensor(*table, *weights_, owner_, package_.sources));
      values.push_back(std::move(value));
    }
    NetworkBuilder c(*package_.target, package_.route);
    absl::Status status = ReadTemplates(json, std::move(units), FindKindOrLoop, c, &values);
    if (c.refusal()) {
      refusal = *c.refusal();
      return absl::OkStatus();
    }
    if (!status.ok()) return absl::DataLossError(status.message());
    to.network = c.TakeNetwork();
    return format::CheckPorts(to);
  }

  std::string Named(const Verdict& refusal) const {
    return absl::StrCat(
        package_.target->option_name(), " refuses it: ",
        refusal.message.empty() ? absl::StrCat("rule ", refusal.rule_id()) : refusal.message);
  }

  absl::string_view bytes_;  // the file
  absl::string_view body_;   // the part to which the offsets of sections refer
  std::shared_ptr<const void> owner_;
  const format::Header* header_ = nullptr;
  std::optional<absl::string_view> segments_, weights_;
  Package package_;
};

}  // namespace

bool IsPackage(absl::string_view bytes) {
  constexpr size_t kSize = sizeof(uint32_t), kIdentified = kSize + 2 * sizeof(uint32_t);
  return bytes.size() >= kIdentified && format::HeaderBufferHasIdentifier(bytes.data() + kSize);
}

absl::StatusOr<Package> ReadPackage(absl::string_view bytes, std::shared_ptr<const void> owner,
                                    std::vector<Tensor> sources) {
  return Guarded("read a package", [&]() -> absl::StatusOr<Package> {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(uint64_t) == 0) {
      return Reader(bytes, std::move(owner), std::move(sources)).Read();
    }
    const auto copy = std::make_shared<const std::string>(bytes);  // aligned by malloc
    return Reader(*copy, copy, std::move(sources)).Read();
  });
}

absl::StatusOr<Package> OpenPackage(const std::string& path) {
  ANEMONE_ASSIGN_OR_RETURN(auto file, MappedFile::Open(path));
  absl::StatusOr<Package> package = ReadPackage(file->text(), file);
  if (package.ok()) return package;
  return Annotated(package.status(), absl::StrCat("'", path, "'"));
}

}  // namespace anemone
