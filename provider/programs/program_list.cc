#include "provider/programs/program_list.h"

#include <algorithm>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/annotated.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "provider/package/package.h"
#include "provider/package/package_format.h"
#include "provider/programs/list_parts.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

struct KindRow {
  ProgramKind kind;
  const char *name, *text;
  const char* file;    // in a folder of this kind; null: it is not a folder
  const char* suffix;  // of a file of this kind; null: it is not told by its name
  absl::Status (*list)(const std::string& path, ProgramList& list);
};
constexpr KindRow kKinds[] = {
    {ProgramKind::kMil, "mil", "MIL program", "model.mil", ".mil", ListMil},
    {ProgramKind::kNetplist, "netplist", "netplist", "net.plist", ".plist", ListNetplist},
    {ProgramKind::kCoreMl, "mlpackage", "Core ML package", "Manifest.json", nullptr, ListCoreMl},
    {ProgramKind::kPackage, "package", "package of Anemone", nullptr, nullptr, ListPackage},
};

const KindRow& RowOf(ProgramKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const KindRow& row) { return row.kind == kind; });
}

}  // namespace

absl::string_view ProgramKindName(ProgramKind kind) { return RowOf(kind).name; }
absl::string_view ProgramKindText(ProgramKind kind) { return RowOf(kind).text; }

int64_t ProgramList::operations() const {
  return std::count_if(items.begin(), items.end(),
                       [](const ListedOperation& item) { return item.is_operation; });
}

std::optional<ProgramKind> KindOfProgram(const std::string& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  for (const KindRow& row : kKinds) {
    if (is_folder) {
      if (row.file != nullptr && fs::exists(fs::path(path) / row.file, error)) return row.kind;
    } else if (row.suffix != nullptr && absl::EndsWithIgnoreCase(path, row.suffix)) {
      return row.kind;
    }
  }
  if (is_folder) return std::nullopt;
  const auto file = MappedFile::Open(path);
  if (file.ok() && IsPackage((*file)->text())) return ProgramKind::kPackage;
  return std::nullopt;
}

absl::StatusOr<ProgramList> ListProgram(const std::string& path, ProgramKind kind) {
  return Guarded("read a program", [&]() -> absl::StatusOr<ProgramList> {
    ProgramList list{.path = path, .kind = kind};
    const absl::Status status = RowOf(kind).list(path, list);
    if (status.ok()) return list;
    return absl::StrContains(status.message(), path) ? status : Annotated(status, path);
  });
}

std::string HashText(absl::Span<const std::byte> bytes) {
  return HashText(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string HashText(absl::string_view bytes) {
  return absl::StrFormat("#%016x", format::Checksum({bytes}));
}

}  // namespace anemone
