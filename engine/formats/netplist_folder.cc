#include "engine/formats/netplist_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/mapped_file.h"
#include "base/real_file.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/formats/json_keys.h"
#include "engine/formats/netplist_keys.h"

namespace anemone {
namespace {

constexpr size_t kLargestList = size_t{1} << 28;  // bytes of a net.plist

// Writes floats as fp16 and indices unchanged; packed, little endian.
void Append(const Tensor& tensor, std::ostream& out) {
  if (tensor.type() == DataType::kUInt16) {
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      const uint16_t value = tensor.at<uint16_t>(i);
      out.write(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    return;
  }
  constexpr int64_t kAtOnce = 1 << 16;
  std::vector<math::Half> halves;
  for (int64_t first = 0; first < tensor.elements(); first += kAtOnce) {
    halves.resize(std::min(kAtOnce, tensor.elements() - first));
    ReadHalves(tensor, first, absl::MakeSpan(halves));
    out.write(reinterpret_cast<const char*>(halves.data()),
              static_cast<std::streamsize>(halves.size() * sizeof(math::Half)));
  }
}

// The files that `Weights` of a network lists. A file is mapped when it is first read.
class WeightFiles {
 public:
  WeightFiles(std::string folder, std::vector<std::string> names)
      : folder_(std::move(folder)), names_(std::move(names)), files_(names_.size()) {}

  absl::StatusOr<Tensor> Read(int64_t file, int64_t offset, DataType type,
                              std::vector<int64_t> dims) {
    if (file < 0 || file >= static_cast<int64_t>(names_.size())) {
      return Wanted(absl::StrCat("a weights file that 'Weights' lists, not number ", file));
    }
    std::shared_ptr<const MappedFile>& mapped = files_[file];
    if (mapped == nullptr) {
      const std::string& name = names_[file];
      if (name.empty() || name.find('/') != std::string::npos || name == "..") {
        return Wanted(absl::StrCat("a file in the netplist's folder, not '", name, "'"));
      }
      ANEMONE_ASSIGN_OR_RETURN(mapped, MapFileBelow(folder_, name));
    }
    ANEMONE_RETURN_IF_ERROR(ElementCount(dims).status());
    const int64_t bytes = ByteSize(type, dims), size = static_cast<int64_t>(mapped->bytes().size());
    if (offset < 0 || offset > size || bytes > size - offset) {
      return Wanted(absl::StrCat(bytes, " bytes at offset ", offset, " of ", names_[file],
                                 ", which has ", size));
    }
    return Tensor::View(type, std::move(dims), mapped->bytes().subspan(offset, bytes), mapped);
  }

 private:
  std::string folder_;
  std::vector<std::string> names_;
  std::vector<std::shared_ptr<const MappedFile>> files_;
};

// The names in `Weights` of the network.
absl::StatusOr<std::vector<std::string>> WeightNames(const Json& document) {
  ANEMONE_ASSIGN_OR_RETURN(const Json* networks, ArrayAt(document, "Networks"));
  if (networks->empty() || !networks->front().is_string()) return Wanted("one network");
  ANEMONE_ASSIGN_OR_RETURN(const Json* body,
                           ObjectAt(document, networks->front().get<std::string>()));
  ANEMONE_ASSIGN_OR_RETURN(const Json* listed, ArrayAt(*body, kWeights));
  std::vector<std::string> names;
  for (const Json& name : *listed) {
    if (!name.is_string()) return Wanted("names in 'Weights'");
    names.push_back(name.get<std::string>());
  }
  return names;
}

// Reads a net.plist whose weights are in `folder`.
absl::Status ReadList(const MappedFile& list, const std::string& folder,
                      const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c) {
  if (list.bytes().size() > kLargestList) return Wanted("a net.plist of at most 256 MiB");
  ANEMONE_ASSIGN_OR_RETURN(Json document, ReadPropertyList(list.text()));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<std::string> names, WeightNames(document));
  WeightFiles files(folder, std::move(names));
  auto source = [&](int64_t file, int64_t offset, DataType type, std::vector<int64_t> dims) {
    return files.Read(file, offset, type, std::move(dims));
  };
  return ReadNetplist(document, source, find_kind, c);
}

}  // namespace

absl::StatusOr<PortNames> SaveNetplist(const Network& network, FormStatus least,
                                       PropertyListForm form, const std::string& folder) {
  ANEMONE_ASSIGN_OR_RETURN(Netplist written, WriteNetplist(network, least));
  const std::string list = WritePropertyList(written.document, form);
  const bool is_xml = form == PropertyListForm::kXml;
  if (is_xml && std::any_of(list.begin(), list.end(), [](unsigned char c) {
        return c < ' ' && c != '\t' && c != '\n' && c != '\r';
      })) {
    return absl::UnimplementedError(
        "the name of a port has a control character, which XML cannot hold; write the binary form "
        "(--binary)");
  }
  auto save = [&](const char* name, auto write) -> absl::Status {
    const std::string path = absl::StrCat(folder, "/", name);
    std::ofstream file(path, std::ios::binary);
    write(file);
    file.close();
    return file ? absl::OkStatus() : NotWritten(path);
  };
  ANEMONE_RETURN_IF_ERROR(save("weights.0", [](std::ostream&) {}));
  absl::Status in_time;
  ANEMONE_RETURN_IF_ERROR(save("weights.1", [&](std::ostream& out) {
    for (const Tensor& tensor : written.weights) {
      in_time = CheckTime(Phase::kWrite, [] { return "weights.1"; });
      if (!in_time.ok()) return;
      Append(tensor, out);
    }
  }));
  ANEMONE_RETURN_IF_ERROR(in_time);
  ANEMONE_RETURN_IF_ERROR(save("net.plist", [&](std::ostream& out) { out << list; }));
  return std::move(written.ports);
}

absl::Status ReadNetplistFile(const std::string& path,
                              const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c) {
  ANEMONE_ASSIGN_OR_RETURN(const auto list, MappedFile::Open(path));
  return ReadList(*list, std::filesystem::path(path).parent_path().string(), find_kind, c);
}

absl::Status ReadNetplistFolder(const std::string& folder,
                                const UnitKind* (*find_kind)(absl::string_view),
                                NetworkBuilder& c) {
  ANEMONE_ASSIGN_OR_RETURN(const auto list, MapFileBelow(folder, "net.plist"));
  return ReadList(*list, folder, find_kind, c);
}

absl::Status LoadNetplist(const std::string& folder,
                          const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c) {
  absl::Status status = ReadNetplistFolder(folder, find_kind, c);
  if (status.ok()) c.CleanUp();
  if (status.ok() || c.refusal()) return status;
  return absl::Status(status.code(), absl::StrCat("netplist '", folder, "': ", status.message()));
}

}  // namespace anemone
