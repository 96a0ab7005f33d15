#include "engine/field.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/formats/json_keys.h"

namespace anemone {

Json Plain::Write(float value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value < 0 ? "-inf" : "inf";
}

Json Plain::Write(const std::vector<Axis>& axes) {
  Json names = Json::array();
  for (Axis axis : axes) names.push_back(AxisName(axis));
  return names;
}

absl::Status Plain::Read(const Json& from, int64_t& value) {
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!from.is_number_integer() || (from.is_number_unsigned() && from.get<uint64_t>() > kMost)) {
    return Unwanted("a 64-bit integer", from);
  }
  value = from.get<int64_t>();
  return absl::OkStatus();
}

absl::Status Plain::Read(const Json& from, bool& value) {
  if (!from.is_boolean()) return Unwanted("true or false", from);
  value = from.get<bool>();
  return absl::OkStatus();
}

absl::Status Plain::Read(const Json& from, float& value) {
  if (IsText(from, "inf") || IsText(from, "-inf") || IsText(from, "nan")) {
    value = std::strtof(from.get_ref<const std::string&>().c_str(), nullptr);
    return absl::OkStatus();
  }
  if (!from.is_number()) return Unwanted("a number", from);
  value = from.get<float>();
  return absl::OkStatus();
}

absl::Status Plain::Read(const Json& from, std::string& value) {
  if (!from.is_string()) return Unwanted("a string", from);
  value = from.get<std::string>();
  return absl::OkStatus();
}

absl::Status Plain::Read(const Json& from, std::vector<int64_t>& values) {
  if (!from.is_array()) return Unwanted("an array of integers", from);
  values.clear();
  for (const Json& item : from) {
    if (absl::Status status = Read(item, values.emplace_back()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Plain::Read(const Json& from, std::vector<Axis>& axes) {
  axes.clear();
  if (!from.is_array()) return Read(from, axes.emplace_back());
  for (const Json& item : from) {
    if (absl::Status status = Read(item, axes.emplace_back()); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Plain::ReadName(const Json& from, absl::Span<const char* const> names, size_t& index) {
  for (index = 0; index < names.size(); ++index) {
    if (IsText(from, names[index])) return absl::OkStatus();
  }
  return Unwanted(absl::StrCat("one of ", absl::StrJoin(names, ", ")), from);
}

absl::Status AsHalfBits::Read(const Json& from, float& value) {
  if (!from.is_number_integer() || from < 0 || from > 0xffff) {
    return Unwanted("the bits of an fp16 number as an integer", from);
  }
  value = math::ToFloat(math::Half{from.get<uint16_t>()});
  return absl::OkStatus();
}

}  // namespace anemone
