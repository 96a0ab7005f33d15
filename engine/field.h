// engine/field.h: describes one key of a unit's parameters and how its value is read and written.
// The keys of a kind are spelled in its field table only: the writer, the reader, equality and
// `anemone units` use that table.
//
//   struct PadParams { Axis axis = Axis::kW; int64_t before = 0; float value = 0; };
//   constexpr Field<PadParams> kFields[] = {
//       Required<&PadParams::axis>("Dimension"),
//       Key<&PadParams::before>("PadLeft"),
//       Key<&PadParams::value, AsHalfBits>("BackgroundValue"),
//   };
//
// If a key that is not required is missing, its member keeps its default value. The names of an
// enumeration's values come from `absl::Span<const char* const> NamesOf(E)`, which is declared next
// to the enumeration and lists them in its order.
#ifndef ANEMONE_ENGINE_FIELD_H_
#define ANEMONE_ENGINE_FIELD_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/dims.h"
#include "engine/formats/json.h"
#include "engine/hook.h"
#include "math/core/half.h"

namespace anemone {

// The JSON type of a key's value.
enum class ValueType : uint8_t { kInt, kBool, kFloat, kInts, kName, kNames, kNested };

template <class P>
struct Field {
  const char* key;
  // The key's value, or null if these parameters do not have the key.
  Json (*get)(const P&);
  // Sets the member. kInvalidArgument if the value is not valid for the key. Null if the key has a
  // fixed value, which is written and not read.
  absl::Status (*set)(P&, const Json&);
  bool required = false;
  ValueType type = ValueType::kNested;
  // The names that a value, or each of its elements, may have; null if values are not names.
  absl::Span<const char* const> (*names)() = nullptr;
};

// A Field with its parameter type erased.
struct AnyField {
  const char* key;
  Hook<const void, Json()> get;
  Hook<void, absl::Status(const Json&)> set;
  bool required;
  ValueType type;
  absl::Span<const char* const> (*names)();
};

// The field table of a kind. FieldsOf<void> is a table with its parameter type erased.
template <class P>
class FieldsOf;

template <>
class FieldsOf<void> {
 public:
  size_t size() const { return size_; }
  AnyField operator[](size_t i) const { return at_(data_, i); }

 protected:
  const void* data_ = nullptr;
  size_t size_ = 0;
  AnyField (*at_)(const void* data, size_t i) = nullptr;
};

template <class P>
class FieldsOf : public FieldsOf<void> {
 public:
  FieldsOf() = default;
  template <size_t kCount>
  FieldsOf(const Field<P> (&fields)[kCount]) {  // NOLINT(google-explicit-constructor)
    data_ = fields;
    size_ = kCount;
    at_ = [](const void* data, size_t i) {
      const Field<P>& f = static_cast<const Field<P>*>(data)[i];
      return AnyField{f.key,
                      Hook<const P, Json()>(f.get),
                      Hook<P, absl::Status(const Json&)>(f.set),
                      f.required,
                      f.type,
                      f.names};
    };
  }
};

// Encodings convert a member to and from JSON. `Plain` is the encoding by the member's type. A
// float that is not finite, for which JSON has no number, is the string "inf", "-inf" or "nan".
struct Plain {
  static Json Write(int64_t value) { return value; }
  static Json Write(bool value) { return value; }
  static Json Write(float value);
  static Json Write(const std::string& value) { return value; }
  static Json Write(const std::vector<int64_t>& values) { return values; }
  static Json Write(const std::vector<Axis>& axes);
  template <class E, std::enable_if_t<std::is_enum_v<E>, int> = 0>
  static Json Write(E value) {
    return NamesOf(E())[static_cast<size_t>(value)];
  }

  static absl::Status Read(const Json& from, int64_t& value);
  static absl::Status Read(const Json& from, bool& value);
  static absl::Status Read(const Json& from, float& value);
  static absl::Status Read(const Json& from, std::string& value);
  static absl::Status Read(const Json& from, std::vector<int64_t>& values);
  static absl::Status Read(const Json& from, std::vector<Axis>& axes);  // also takes a single name
  template <class E, std::enable_if_t<std::is_enum_v<E>, int> = 0>
  static absl::Status Read(const Json& from, E& value) {
    size_t index = 0;
    absl::Status status = ReadName(from, NamesOf(E()), index);
    if (status.ok()) value = static_cast<E>(index);
    return status;
  }

  static absl::Status ReadName(const Json& from, absl::Span<const char* const> names,
                               size_t& index);
};

// A float written as the integer value of its fp16 bits: 1.0 is 15360 (netplist.md).
struct AsHalfBits {
  static constexpr ValueType kType = ValueType::kInt;
  static Json Write(float value) { return math::ToHalf(value).bits; }
  static absl::Status Read(const Json& from, float& value);
};

template <class T>
struct MemberOf;
template <class P, class T>
struct MemberOf<T P::*> {
  using Params = P;
  using Type = T;
};
template <auto kMember>
using ParamsOf = typename MemberOf<decltype(kMember)>::Params;
template <auto kMember>
using MemberTypeOf = typename MemberOf<decltype(kMember)>::Type;

// The value type of a member: that of its encoding, or else the one for the member's type.
template <class As, class T>
constexpr ValueType ValueTypeOf() {
  if constexpr (requires { As::kType; }) {
    return As::kType;
  } else if constexpr (std::is_same_v<T, bool>) {
    return ValueType::kBool;
  } else if constexpr (std::is_integral_v<T>) {
    return ValueType::kInt;
  } else if constexpr (std::is_floating_point_v<T>) {
    return ValueType::kFloat;
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    return ValueType::kInts;
  } else if constexpr (std::is_enum_v<T> || std::is_same_v<T, std::string>) {
    return ValueType::kName;
  } else if constexpr (std::is_same_v<T, std::vector<Axis>>) {
    return ValueType::kNames;
  } else {
    return ValueType::kNested;
  }
}

template <class T>
constexpr absl::Span<const char* const> (*NamesOfMember())() {
  if constexpr (std::is_enum_v<T>) {
    return [] { return NamesOf(T()); };
  } else if constexpr (std::is_same_v<T, std::vector<Axis>>) {
    return [] { return NamesOf(Axis()); };
  } else {
    return nullptr;
  }
}

// A field. `kWhen` is a predicate of the parameters: the key is written only if it is true; null
// means always.
template <auto kMember, class As = Plain, auto kWhen = nullptr>
constexpr auto Key(const char* key, bool required = false) {
  using P = ParamsOf<kMember>;
  return Field<P>{key,
                  [](const P& p) -> Json {
                    if constexpr (!std::is_null_pointer_v<decltype(kWhen)>) {
                      if (!kWhen(p)) return nullptr;
                    }
                    return As::Write(p.*kMember);
                  },
                  [](P& p, const Json& from) { return As::Read(from, p.*kMember); },
                  required,
                  ValueTypeOf<As, MemberTypeOf<kMember>>(),
                  NamesOfMember<MemberTypeOf<kMember>>()};
}

template <auto kMember, class As = Plain>
constexpr auto Required(const char* key) {
  return Key<kMember, As>(key, true);
}

// Another spelling of a key: it is read but never written.
template <auto kMember, class As = Plain>
constexpr auto Alias(const char* key) {
  using P = ParamsOf<kMember>;
  return Field<P>{key,
                  [](const P&) -> Json { return nullptr; },
                  [](P& p, const Json& from) { return As::Read(from, p.*kMember); },
                  false,
                  ValueTypeOf<As, MemberTypeOf<kMember>>(),
                  NamesOfMember<MemberTypeOf<kMember>>()};
}

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FIELD_H_
