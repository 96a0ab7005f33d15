#include "tools/compare/array_archive.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "tools/compare/array_file.h"

namespace anemone {
namespace {

// The records of a zip file (PKWARE's APPNOTE.TXT): signatures and sizes without variable parts.
constexpr uint32_t kEnd = 0x06054b50, kEntry = 0x02014b50, kLocal = 0x04034b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kEndBytes = 22, kEntryBytes = 46, kLocalBytes = 30, kLocator64Bytes = 20,
                 kEnd64Bytes = 56;
constexpr size_t kMostComment = 65535;
constexpr size_t kLongestName = 4096;   // errors have the name of an array
constexpr uint32_t kIn64 = 0xffffffff;  // the number is in the extra field
constexpr uint16_t kExtra64 = 1, kEncrypted = 1;

absl::Status DamagedArchive(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("file '", path, "': ", what, "; write it again with numpy.savez"));
}

// The number at `at`; the caller has checked that it is inside.
template <class T>
T At(absl::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

bool Has(absl::string_view file, uint64_t at, uint64_t size) {
  return at <= file.size() && size <= file.size() - at;
}

struct Directory {
  uint64_t start = 0, entries = 0;
};

absl::StatusOr<Directory> FindDirectory(const std::string& path, absl::string_view file) {
  if (file.size() < kEndBytes) return DamagedArchive(path, "is not a .npz file");
  const size_t lowest = file.size() - std::min(file.size(), kEndBytes + kMostComment);
  for (size_t at = file.size() - kEndBytes + 1; at-- > lowest;) {
    if (At<uint32_t>(file, at) != kEnd) continue;
    Directory found = {At<uint32_t>(file, at + 16), At<uint16_t>(file, at + 10)};
    if (at >= kLocator64Bytes && At<uint32_t>(file, at - kLocator64Bytes) == kLocator64) {
      const auto end64 = At<uint64_t>(file, at - kLocator64Bytes + 8);
      if (!Has(file, end64, kEnd64Bytes) || At<uint32_t>(file, end64) != kEnd64) {
        return DamagedArchive(path, "its directory is damaged");
      }
      found = {At<uint64_t>(file, end64 + 48), At<uint64_t>(file, end64 + 32)};
    }
    return found;
  }
  return DamagedArchive(path, "is not a .npz file, or ends early");
}

struct Entry {
  std::string name;
  uint64_t size = 0, local = 0;
  uint16_t method = 0, flags = 0;
  uint32_t crc = 0;
};

// The checksum of zip files, of eight bytes at a time: tables[k] is of a byte before k others.
using CrcTables = std::array<std::array<uint32_t, 256>, 8>;
constexpr CrcTables MakeCrcTables() {
  CrcTables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320 & (0 - (crc & 1)));
    tables[0][i] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t before = tables[k - 1][i];
      tables[k][i] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

uint32_t CrcOf(absl::string_view bytes) {
  static constexpr CrcTables kTables = MakeCrcTables();
  uint32_t crc = ~uint32_t{0};
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const uint64_t mixed = At<uint64_t>(bytes, 0) ^ crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][mixed >> 8 * k & 0xff];
  }
  for (const char byte : bytes) {
    crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  }
  return ~crc;
}

// Replaces sizes and the offset by those of the extra field, where they are there.
absl::Status ReadExtra(const std::string& path, absl::string_view extra, bool is_both,
                       Entry& entry) {
  while (extra.size() >= 4) {
    const auto id = At<uint16_t>(extra, 0), size = At<uint16_t>(extra, 2);
    if (extra.size() - 4 < size) break;
    absl::string_view field = extra.substr(4, size);
    extra.remove_prefix(4 + size);
    if (id != kExtra64) continue;
    const auto take = [&](uint64_t& number) {
      if (number != kIn64) return true;
      if (field.size() < 8) return false;
      number = At<uint64_t>(field, 0);
      field.remove_prefix(8);
      return true;
    };
    uint64_t whole = is_both ? kIn64 : 0;
    if (!take(whole) || !take(entry.size) || !take(entry.local)) {
      return DamagedArchive(path, "its directory is damaged");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Entry> ReadEntry(const std::string& path, absl::string_view file, uint64_t& at) {
  if (!Has(file, at, kEntryBytes) || At<uint32_t>(file, at) != kEntry) {
    return DamagedArchive(path, "its directory is damaged");
  }
  const auto name = At<uint16_t>(file, at + 28), extra = At<uint16_t>(file, at + 30),
             comment = At<uint16_t>(file, at + 32);
  if (!Has(file, at + kEntryBytes, uint64_t{name} + extra + comment)) {
    return DamagedArchive(path, "its directory is damaged");
  }
  if (name > kLongestName) {
    return absl::InvalidArgumentError(absl::StrCat("file '", path, "': an array has a name of ",
                                                   name, " bytes; write it with one of at most ",
                                                   kLongestName));
  }
  Entry entry = {.name = std::string(file.substr(at + kEntryBytes, name)),
                 .size = At<uint32_t>(file, at + 20),
                 .local = At<uint32_t>(file, at + 42),
                 .method = At<uint16_t>(file, at + 10),
                 .flags = At<uint16_t>(file, at + 8),
                 .crc = At<uint32_t>(file, at + 16)};
  const bool is_both = At<uint32_t>(file, at + 24) == kIn64;
  ANEMONE_RETURN_IF_ERROR(
      ReadExtra(path, file.substr(at + kEntryBytes + name, extra), is_both, entry));
  at += kEntryBytes + name + extra + comment;
  return entry;
}

absl::StatusOr<absl::string_view> BytesOf(const std::string& path, absl::string_view file,
                                          const Entry& entry) {
  if (!Has(file, entry.local, kLocalBytes) || At<uint32_t>(file, entry.local) != kLocal) {
    return DamagedArchive(path, absl::StrCat("'", Printable(entry.name), "' is damaged"));
  }
  if (entry.method != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "file '", path, "': is compressed; write it with numpy.savez, not savez_compressed"));
  }
  if ((entry.flags & kEncrypted) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("file '", path, "': is encrypted; write it with numpy.savez"));
  }
  const uint64_t name = At<uint16_t>(file, entry.local + 26);
  const uint64_t start = entry.local + kLocalBytes + name + At<uint16_t>(file, entry.local + 28);
  if (!Has(file, start, entry.size)) {
    return DamagedArchive(path, absl::StrCat("'", Printable(entry.name), "' ends early"));
  }
  const absl::string_view bytes = file.substr(start, entry.size);
  if (file.substr(entry.local + kLocalBytes, name) != entry.name || CrcOf(bytes) != entry.crc) {
    return DamagedArchive(path, absl::StrCat("'", Printable(entry.name), "' is damaged"));
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::map<std::string, Tensor>> ReadNpz(const std::string& path) {
  ANEMONE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> mapped, MappedFile::Open(path));
  const absl::string_view file = mapped->text();
  ANEMONE_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(path, file));
  std::map<std::string, Tensor> arrays;
  uint64_t at = directory.start, total = 0;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    ANEMONE_ASSIGN_OR_RETURN(const Entry entry, ReadEntry(path, file, at));
    ANEMONE_ASSIGN_OR_RETURN(const absl::string_view bytes, BytesOf(path, file, entry));
    // Entries may not share bytes: a small file would become arrays without a bound.
    total += bytes.size();
    if (total > file.size()) return DamagedArchive(path, "its entries overlap");
    const std::string name(absl::StripSuffix(entry.name, ".npy"));
    ANEMONE_ASSIGN_OR_RETURN(Tensor array,
                             ParseNpy(absl::StrCat(path, ":", Printable(entry.name)), bytes));
    if (!arrays.emplace(name, std::move(array)).second) {
      return DamagedArchive(path, absl::StrCat("'", Printable(name), "' is there twice"));
    }
  }
  return arrays;
}

absl::StatusOr<std::map<std::string, Tensor>> ReadArrayFolder(const std::string& path) {
  std::map<std::string, Tensor> arrays;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(path, error)) {
    if (file.path().extension() != ".npy") continue;
    ANEMONE_ASSIGN_OR_RETURN(arrays[file.path().stem().string()],
                             ReadArrayFile(file.path().string()));
  }
  if (error) {
    return absl::NotFoundError(absl::StrCat(
        "folder '", path, "': cannot be read: ", error.message(), "; make it readable"));
  }
  return arrays;
}

}  // namespace anemone
