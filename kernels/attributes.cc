#include "kernels/attributes.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace anemone {

template <class T>
absl::StatusOr<T> Attributes::Get(absl::string_view name, T fallback, const char* wanted) {
  read_.insert(std::string(name));
  const Attribute* attribute = node_.FindAttribute(name);
  if (attribute == nullptr) return fallback;
  if (const T* value = std::get_if<T>(&attribute->value)) return *value;
  return absl::InvalidArgumentError(absl::StrCat("node '", node_.name, "' (", node_.op_type,
                                                 "), attribute '", name, "': want ", wanted,
                                                 "; run the ONNX checker on the model"));
}

absl::StatusOr<int64_t> Attributes::Int(absl::string_view name, int64_t fallback) {
  return Get<int64_t>(name, fallback, "an integer");
}

absl::StatusOr<float> Attributes::Float(absl::string_view name, float fallback) {
  return Get<float>(name, fallback, "a float");
}

absl::StatusOr<std::string> Attributes::String(absl::string_view name, absl::string_view fallback) {
  return Get<std::string>(name, std::string(fallback), "a string");
}

absl::StatusOr<std::vector<int64_t>> Attributes::Ints(absl::string_view name,
                                                      std::vector<int64_t> fallback) {
  return Get<std::vector<int64_t>>(name, std::move(fallback), "a list of integers");
}

absl::Status Attributes::NoneLeft(NetworkBuilder& c) const {
  for (const Attribute& attribute : node_.attributes) {
    if (read_.count(attribute.name) == 0) {
      return c.NotLowered(absl::StrCat(node_.op_type, " with attribute '", attribute.name, "'"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<int> NormalAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " of a tensor of rank ", rank,
                                                   ": want ", -rank, "..", rank - 1));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace anemone
