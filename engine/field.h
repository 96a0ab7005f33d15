// engine/field.h: one key of a unit's parameters, for reading and writing. A kind's field table is
// the only place that spells its keys: the written form, its reader, equality and `anemone units`
// come from it.
//
//   struct PadParams { Axis axis = Axis::kW; int64_t before = 0; float value = 0; };
//   constexpr Field<PadParams> kFields[] = {
//       Required<&PadParams::axis>("Dimension"),
//       Key<&PadParams::before>("PadLeft"),
//       Key<&PadParams::value, AsHalfBits>("BackgroundValue"),
//   };
//
// A key that is not required and not there leaves the member as it is. Enumerations are spelled by
// `absl::Span<const char* const> NamesOf(E)`, declared beside the enumeration, in its order.
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

// What a key's value is in JSON.
enum class ValueType : uint8_t { kInt, kBool, kFloat, kInts, kName, kNames, kNested };

template <class P>
struct Field {
  const char* key;
  // The key's value; null where these parameters have no such key.
  Json (*get)(const P&);
  // kInvalidArgument if the value is none of the key's. Null: the key has one value, ours.
  absl::Status (*set)(P&, const Json&);
  bool required = false;
  ValueType type = ValueType::kNested;
  // The names that a value, or each of its elements, is one of. Null: it is no name of a list.
  absl::Span<const char* const> (*names)() = nullptr;
};

// A field whose parameter type is forgotten.
struct AnyField {
  const char* key;
  Hook<const void, Json()> get;
  Hook<void, absl::Status(const Json&)> set;
  bool required;
  ValueType type;
  absl::Span<const char* const> (*names)();
};

// A kind's field table. FieldsOf<void> is one whose parameter type is forgotten.
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

// How a member is written: to and from Json. `Plain` is by the member's type.
struct Plain {
  static Json Write(int64_t value) { return value; }
  static Json Write(bool value) { return value; }
  static Json Write(float value) { return value; }
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
  static absl::Status Read(const Json& from, std::vector<Axis>& axes);  // or one name
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

// A float as the integer that its fp16 bits are: 1.0 is 15360 (netplist.md).
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

// By the member's type, unless its encoding says another.
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

// `kWhen`: a predicate of the parameters that says when the key is there; null for always.
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

// Another spelling of a key, read and never written.
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
