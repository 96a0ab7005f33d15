#include "importer/read/external_data.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/real_file.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// True if `path` is `folder` or inside it; both must be canonical.
bool Inside(const fs::path& path, const fs::path& folder) {
  auto part = path.begin();
  for (const fs::path& want : folder) {
    if (part == path.end() || *part++ != want) return false;
  }
  return true;
}

constexpr char kExportAgain[] = "; correct the model, or export it again";

struct Place {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

// Fills `out` from one entry of external_data whose value is a number.
absl::Status ReadNumber(const onnx::StringStringEntryProto& entry, int64_t* out) {
  if (!absl::SimpleAtoi(entry.value(), out)) {
    return absl::InvalidArgumentError(absl::StrCat("external data: ", entry.key(), " '",
                                                   entry.value(), "' is not a 64-bit number",
                                                   kExportAgain));
  }
  if (*out < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data: ", entry.key(), " ", *out, " is negative", kExportAgain));
  }
  return absl::OkStatus();
}

absl::StatusOr<Place> ReadPlace(const onnx::TensorProto& tensor) {
  Place place;
  for (const onnx::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") {
      place.location = entry.value();
    } else if (entry.key() == "offset") {
      ANEMONE_RETURN_IF_ERROR(ReadNumber(entry, &place.offset));
    } else if (entry.key() == "length") {
      ANEMONE_RETURN_IF_ERROR(ReadNumber(entry, &place.length.emplace()));
    }  // "checksum" is for tools; others are not defined
  }
  if (place.location.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data: the model names no file (no `location`)", kExportAgain));
  }
  return place;
}

absl::Status Leaves(const std::string& location, absl::string_view how) {
  return absl::InvalidArgumentError(
      absl::StrCat("external data file '", location, "' ", how,
                   ", but must be in the model's folder; move it there and correct the model"));
}

}  // namespace

ExternalData ExternalData::BesideModel(const std::string& model_path) {
  const fs::path folder = fs::path(model_path).parent_path();
  ExternalData data = InFolder((folder.empty() ? fs::path(".") : folder).string());
  data.model_path_ = model_path;
  return data;
}

ExternalData ExternalData::InFolder(const std::string& folder) {
  ExternalData data;
  data.folder_ = folder;
  return data;
}

// The real path of `location`, by rules 1 and 2 at the top of external_data.h.
absl::StatusOr<std::string> ExternalData::Resolve(const std::string& location) const {
  if (folder_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("external data file '", location,
                                                   "': a model in memory has no folder to search; "
                                                   "give one, or import the model from a file"));
  }
  if (location.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("external data: the file's name contains a zero byte", kExportAgain));
  }
  const fs::path relative(location);
  if (relative.is_absolute()) return Leaves(location, "is an absolute path");
  const fs::path normal = relative.lexically_normal();
  if (*normal.begin() == "..") return Leaves(location, "leaves the folder with '..'");

  std::error_code error;
  const fs::path path = fs::path(folder_) / normal;
  const fs::path real = fs::canonical(path, error);
  if (error == std::errc::no_such_file_or_directory) {
    return absl::NotFoundError(absl::StrCat("external data file '", path.string(),
                                            "' does not exist; put the file there"));
  }
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat("external data file '", path.string(),
                                                   "': ", error.message(),
                                                   "; check the folder and its permissions"));
  }
  if (!IsInside(path, real)) {
    return Leaves(location, absl::StrCat("is a link to '", real.string(), "'"));
  }
  return real.string();
}

// Whether `path`, whose real path is `real`, follows rule 2.
bool ExternalData::IsInside(const fs::path& path, const fs::path& real) const {
  std::error_code error;
  const fs::path real_folder = fs::canonical(folder_, error);
  if (!error && Inside(real, real_folder)) return true;
  const fs::path link_folder = fs::canonical(path.parent_path(), error);
  if (error || !Inside(link_folder, real_folder) || model_path_.empty()) return false;
  const fs::path real_model = fs::canonical(model_path_, error);
  return !error && real.parent_path() == real_model.parent_path();
}

absl::StatusOr<std::shared_ptr<const MappedFile>> ExternalData::Open(const std::string& location) {
  if (auto it = files_.find(location); it != files_.end()) return it->second;
  ANEMONE_ASSIGN_OR_RETURN(const std::string path, Resolve(location));
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MapRealFile(path, location);
  if (!file.ok()) {
    return absl::Status(file.status().code(),
                        absl::StrCat("external data file ", file.status().message()));
  }
  files_[location] = *file;
  return *file;
}

absl::StatusOr<ExternalData::Bytes> ExternalData::Find(const onnx::TensorProto& tensor,
                                                       int64_t size, absl::string_view what) {
  const auto find = [&]() -> absl::StatusOr<Bytes> {
    ANEMONE_ASSIGN_OR_RETURN(const Place place, ReadPlace(tensor));
    if (place.length.has_value() && *place.length != size) {
      return absl::InvalidArgumentError(
          absl::StrCat("external data in '", place.location, "': its length is ", *place.length,
                       " bytes, but the tensor's type and dims need ", size, kExportAgain));
    }
    ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, Open(place.location));
    const auto file_size = static_cast<int64_t>(file->bytes().size());
    if (place.offset > file_size || size > file_size - place.offset) {
      return absl::DataLossError(absl::StrCat("external data file '", place.location,
                                              "' is too short: want ", size, " bytes from byte ",
                                              place.offset, ", the file ends at byte ", file_size,
                                              "; copy or export the file again"));
    }
    const absl::Span<const std::byte> bytes = file->bytes().subspan(place.offset, size);
    return Bytes{bytes, std::move(file)};
  };
  absl::StatusOr<Bytes> bytes = find();
  if (bytes.ok()) return bytes;
  return absl::Status(bytes.status().code(), absl::StrCat(what, ": ", bytes.status().message()));
}

}  // namespace anemone
