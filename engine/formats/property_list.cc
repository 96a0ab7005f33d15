// Uses libplist. It does not limit how deeply a list may be nested, although its readers and
// plist_free() recurse; so the depth is checked here before libplist reads.
#include "engine/formats/property_list.h"

#include <plist/plist.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kMostObjects = size_t{1} << 22;

struct Freed {
  void operator()(plist_t node) const { plist_free(node); }
};
using Node = std::unique_ptr<void, Freed>;

using Text = std::unique_ptr<char, decltype(&std::free)>;

plist_t Write(const Json& json) {
  switch (json.type()) {
    case Json::value_t::object: {
      plist_t node = plist_new_dict();
      for (const auto& [key, value] : json.items()) {
        if (!value.is_null()) plist_dict_set_item(node, key.c_str(), Write(value));
      }
      return node;
    }
    case Json::value_t::array: {
      plist_t node = plist_new_array();
      for (const Json& value : json) plist_array_append_item(node, Write(value));
      return node;
    }
    case Json::value_t::boolean:
      return plist_new_bool(json.get<bool>() ? 1 : 0);
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      // libplist keeps 64 bits and reads the high one as a sign.
      return plist_new_uint(static_cast<uint64_t>(json.get<int64_t>()));
    case Json::value_t::number_float:
      return plist_new_real(json.get<double>());
    default:
      return plist_new_string(json.is_string() ? json.get_ref<const std::string&>().c_str() : "");
  }
}

absl::Status NotRead(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("property list: ", why));
}

absl::StatusOr<Json> Read(plist_t node);

absl::StatusOr<Json> ReadDictionary(plist_t node) {
  Json json = Json::object();
  plist_dict_iter at = nullptr;
  plist_dict_new_iter(node, &at);
  std::unique_ptr<void, decltype(&std::free)> owner(at, std::free);
  while (true) {
    char* key = nullptr;
    plist_t value = nullptr;
    plist_dict_next_item(node, at, &key, &value);
    Text name(key, std::free);
    if (value == nullptr) return json;
    ANEMONE_ASSIGN_OR_RETURN(json[std::string(name ? name.get() : "")], Read(value));
  }
}

absl::StatusOr<Json> ReadArray(plist_t node) {
  Json json = Json::array();
  plist_array_iter at = nullptr;
  plist_array_new_iter(node, &at);
  std::unique_ptr<void, decltype(&std::free)> owner(at, std::free);
  while (true) {
    plist_t value = nullptr;
    plist_array_next_item(node, at, &value);
    if (value == nullptr) return json;
    ANEMONE_ASSIGN_OR_RETURN(Json read, Read(value));
    json.push_back(std::move(read));
  }
}

absl::StatusOr<Json> Read(plist_t node) {
  switch (plist_get_node_type(node)) {
    case PLIST_DICT:
      return ReadDictionary(node);
    case PLIST_ARRAY:
      return ReadArray(node);
    case PLIST_BOOLEAN: {
      uint8_t value = 0;
      plist_get_bool_val(node, &value);
      return value != 0;
    }
    case PLIST_UINT: {
      uint64_t value = 0;
      plist_get_uint_val(node, &value);
      return static_cast<int64_t>(value);
    }
    case PLIST_REAL: {
      double value = 0;
      plist_get_real_val(node, &value);
      return value;
    }
    case PLIST_STRING: {
      uint64_t length = 0;
      const char* const text = plist_get_string_ptr(node, &length);
      return text == nullptr ? std::string() : std::string(text, length);
    }
    default:
      return NotRead("want dictionaries, arrays, strings, numbers and booleans only");
  }
}

// libplist ends the process at such text, or cuts it.
absl::Status ZeroByte() { return NotRead("text with a zero byte"); }

// Checks how deeply the tags of an XML list are nested, and its characters.
absl::Status CheckXml(absl::string_view text) {
  if (absl::StrContains(text, '\0')) return ZeroByte();
  int depth = 0;
  for (size_t at = text.find('<'); at != absl::string_view::npos; at = text.find('<', at + 1)) {
    absl::string_view tag = text.substr(at + 1);
    if (absl::StartsWith(tag, "dict>") || absl::StartsWith(tag, "array>")) {
      if (++depth > kDeepest) return NotRead(absl::StrCat("nested deeper than ", kDeepest));
    } else if (absl::StartsWith(tag, "/dict") || absl::StartsWith(tag, "/array")) {
      --depth;
    } else if (absl::StartsWith(tag, "dict") || absl::StartsWith(tag, "array")) {
      if (tag.substr(0, tag.find('>')).back() != '/') return NotRead("a tag with attributes");
    } else if (absl::StartsWith(tag, "!ENTITY")) {
      return NotRead("entities are not supported");
    }
  }
  return absl::OkStatus();
}

// The object table of a binary list, which is visited level by level. Objects may be referenced
// more than once, even by themselves, so a small file can describe an endless list.
class BinaryList {
 public:
  explicit BinaryList(absl::string_view bytes) : bytes_(bytes) {}

  // Checks how deeply objects are nested, and their text.
  absl::Status Check() {
    constexpr size_t kTrailer = 32, kMagic = 8;
    if (bytes_.size() < kMagic + kTrailer) return NotRead("cut short");
    const size_t trailer = bytes_.size() - kTrailer;
    offset_bytes_ = At(trailer + 6, 1);
    reference_bytes_ = At(trailer + 7, 1);
    count_ = At(trailer + 8, 8);
    table_ = At(trailer + 24, 8);
    const uint64_t root = At(trailer + 16, 8);
    if (offset_bytes_ < 1 || offset_bytes_ > 8 || reference_bytes_ < 1 || reference_bytes_ > 8 ||
        count_ > trailer || table_ > trailer || count_ * offset_bytes_ > trailer - table_ ||
        root >= count_) {
      return NotRead("a damaged trailer");
    }
    std::vector<uint64_t> level = {root};
    size_t visited = 1;
    for (int at = 1; !level.empty(); ++at) {
      if (at > kDeepest) return NotRead(absl::StrCat("nested deeper than ", kDeepest));
      std::vector<uint64_t> below;
      for (uint64_t object : level) {
        ANEMONE_RETURN_IF_ERROR(ForEachHeld(object, [&](uint64_t held) { below.push_back(held); }));
        if (visited + below.size() > kMostObjects) return NotRead("too many objects");
      }
      visited += below.size();
      level = std::move(below);
    }
    return absl::OkStatus();
  }

 private:
  uint64_t At(size_t offset, size_t count) const {
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8 | static_cast<unsigned char>(bytes_[offset + i]);
    }
    return value;
  }

  struct Object {
    uint64_t type = 0;   // the upper half of the marker
    uint64_t count = 0;  // of elements, bytes or characters
    uint64_t at = 0;     // where they begin
  };
  static constexpr uint64_t kAscii = 0x5, kUtf16 = 0x6, kArray = 0xA, kSet = 0xC, kDictionary = 0xD;

  absl::StatusOr<Object> Find(uint64_t object) const {
    const size_t end = bytes_.size();
    uint64_t at = At(table_ + object * offset_bytes_, offset_bytes_);
    if (at >= end) return NotRead("an object outside the file");
    const uint64_t marker = At(at++, 1);
    Object found{.type = marker >> 4, .count = marker & 0xF, .at = at};
    constexpr uint64_t kLong = 0xF;
    const bool has_count = found.type >= kAscii && found.type <= kDictionary;
    if (!has_count || found.count != kLong) return found;
    if (at >= end) return NotRead("cut short");
    const size_t bytes = size_t{1} << (At(at++, 1) & 0xF);
    if (bytes > 8 || bytes > end - at) return NotRead("cut short");
    found.count = At(at, bytes);
    found.at = at + bytes;
    return found;
  }

  static bool IsText(const Object& object) {
    return object.type == kAscii || object.type == kUtf16;
  }

  absl::Status CheckText(const Object& text) const {
    const uint64_t width = text.type == kAscii ? 1 : 2;
    if (text.count > (bytes_.size() - text.at) / width) return NotRead("cut short");
    for (uint64_t i = 0; i < text.count; ++i) {
      if (At(text.at + i * width, width) == 0) return ZeroByte();
    }
    return absl::OkStatus();
  }

  absl::Status CheckKey(uint64_t object) const {
    ANEMONE_ASSIGN_OR_RETURN(const Object key, Find(object));
    return IsText(key) ? CheckText(key) : NotRead("a key that is no text");
  }

  template <class Visit>
  absl::Status ForEachHeld(uint64_t object, Visit visit) const {
    ANEMONE_ASSIGN_OR_RETURN(const Object holder, Find(object));
    if (IsText(holder)) return CheckText(holder);
    if (holder.type != kArray && holder.type != kSet && holder.type != kDictionary) {
      return absl::OkStatus();
    }
    const bool is_dictionary = holder.type == kDictionary;  // first the keys, then the values
    const uint64_t places = (bytes_.size() - holder.at) / reference_bytes_;
    if (holder.count > (is_dictionary ? places / 2 : places)) return NotRead("cut short");
    const auto reference = [&](uint64_t i) {
      return At(holder.at + i * reference_bytes_, reference_bytes_);
    };
    const uint64_t keys = is_dictionary ? holder.count : 0;
    for (uint64_t i = 0; i < keys + holder.count; ++i) {
      if (reference(i) >= count_) return NotRead("a reference to a missing object");
      if (i >= keys) {
        visit(reference(i));
      } else {
        ANEMONE_RETURN_IF_ERROR(CheckKey(reference(i)));
      }
    }
    return absl::OkStatus();
  }

  absl::string_view bytes_;
  uint64_t offset_bytes_ = 0, reference_bytes_ = 0, count_ = 0, table_ = 0;
};

}  // namespace

std::string WritePropertyList(const Json& json, PropertyListForm form) {
  Node node(Write(json));
  char* bytes = nullptr;
  uint32_t length = 0;
  if (form == PropertyListForm::kXml) {
    plist_to_xml(node.get(), &bytes, &length);
  } else {
    plist_to_bin(node.get(), &bytes, &length);
  }
  Text owner(bytes, std::free);
  return bytes == nullptr ? std::string() : std::string(bytes, length);
}

absl::StatusOr<Json> ReadPropertyList(absl::string_view bytes) {
  if (bytes.size() > std::numeric_limits<uint32_t>::max()) return NotRead("larger than 4 GiB");
  const bool is_binary = absl::StartsWith(bytes, "bplist00");
  ANEMONE_RETURN_IF_ERROR(is_binary ? BinaryList(bytes).Check() : CheckXml(bytes));
  plist_t read = nullptr;
  if (is_binary) {
    plist_from_bin(bytes.data(), static_cast<uint32_t>(bytes.size()), &read);
  } else {
    plist_from_xml(bytes.data(), static_cast<uint32_t>(bytes.size()), &read);
  }
  if (read == nullptr) return NotRead("neither an XML nor a binary list");
  Node node(read);
  return Read(node.get());
}

}  // namespace anemone
