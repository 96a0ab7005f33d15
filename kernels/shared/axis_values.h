// kernels/shared/axis_values.h: parameters that a netplist gives for each axis, as an array of
// {"Coordinate": "Width", "SamplingMethod": "Linear"}. Source: compiler_texts.json netplist_keys.
#ifndef ANEMONE_KERNELS_SHARED_AXIS_VALUES_H_
#define ANEMONE_KERNELS_SHARED_AXIS_VALUES_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/dims.h"
#include "engine/field.h"
#include "engine/formats/json_keys.h"

namespace anemone {

template <class T>
struct AxisValue {
  Axis axis = Axis::kW;
  T value = {};
};

template <class T>
using AxisValues = std::vector<AxisValue<T>>;

// Converter for a Field. kKey is the second key of each item, next to "Coordinate".
template <const char* kKey>
struct PerAxis {
  template <class T>
  static Json Write(const AxisValues<T>& values) {
    if (values.empty()) return nullptr;
    Json items = Json::array();
    for (const AxisValue<T>& entry : values) {
      items.push_back({{"Coordinate", AxisName(entry.axis)}, {kKey, Plain::Write(entry.value)}});
    }
    return items;
  }

  template <class T>
  static absl::Status Read(const Json& from, AxisValues<T>& values) {
    values.clear();
    if (!from.is_array()) return NoSuchArray(from);
    for (const Json& item : from) {
      if (!item.is_object() || item.size() != 2 || !item.contains("Coordinate") ||
          !item.contains(kKey)) {
        return NoSuchArray(item);
      }
      AxisValue<T>& entry = values.emplace_back();
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item["Coordinate"], entry.axis));
      ANEMONE_RETURN_IF_ERROR(Plain::Read(item[kKey], entry.value));
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status NoSuchArray(const Json& from) {
    return Unwanted(absl::StrCat("an array of {Coordinate, ", kKey, "}"), from);
  }
};

template <class T>
bool AllSame(const AxisValues<T>& values) {
  return std::all_of(values.begin(), values.end(), [&](const AxisValue<T>& entry) {
    return entry.value == values.front().value;
  });
}

// Whether `axis` is listed with this value.
template <class T>
bool Says(const AxisValues<T>& values, Axis axis, const T& value) {
  return std::any_of(values.begin(), values.end(), [&](const AxisValue<T>& entry) {
    return entry.axis == axis && entry.value == value;
  });
}

}  // namespace anemone

#endif  // ANEMONE_KERNELS_SHARED_AXIS_VALUES_H_
