#include "tools/compare/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "math/core/half.h"
#include "tools/compare/array_file.h"

namespace anemone {
namespace {

std::string NamesOf(const std::vector<PortInfo>& ports) {
  return absl::StrJoin(
      ports, ", ", [](std::string* out, const PortInfo& port) { absl::StrAppend(out, port.name); });
}

// "NAME=FILE": the longest input name that the text begins with, since a name may hold '='.
absl::StatusOr<std::pair<std::string, std::string>> SplitInput(const std::vector<PortInfo>& ports,
                                                               const std::string& text) {
  const PortInfo* best = nullptr;
  for (const PortInfo& port : ports) {
    bool fits = absl::StartsWith(text, absl::StrCat(port.name, "="));
    if (fits && (best == nullptr || port.name.size() > best->name.size())) best = &port;
  }
  if (best == nullptr) {
    return UsageError(absl::StrCat("--input '", text,
                                   "': the model has no such input; it has: ", NamesOf(ports)));
  }
  return std::make_pair(best->name, text.substr(best->name.size() + 1));
}

template <class T>
void FillWith(Tensor& tensor, std::mt19937_64& random, const std::function<T(double)>& from_unit) {
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    // 53 random bits: the same numbers with every standard library.
    double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    tensor.mutable_data<T>()[i] = from_unit(unit);
  }
}

// Floats are uniform in the range; integers too, including both ends.
absl::StatusOr<Tensor> RandomTensor(const PortInfo& port, Range range, std::mt19937_64& random) {
  auto count = ElementCount(port.dims);
  if (!count.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("input '", port.name, "': ", std::string(count.status().message())));
  }
  Tensor t = Tensor::Zeros(port.type, port.dims);
  auto real = [range](double unit) { return range.low + unit * (range.high - range.low); };
  auto whole = [range](double unit) {
    return std::floor(range.low + unit * (range.high - range.low + 1));
  };
  switch (port.type) {
    case DataType::kFloat:
      FillWith<float>(t, random, real);
      return t;
    case DataType::kDouble:
      FillWith<double>(t, random, real);
      return t;
    case DataType::kFloat16:
      FillWith<uint16_t>(t, random, [&](double u) { return math::ToHalf(real(u)).bits; });
      return t;
    case DataType::kBFloat16:
      FillWith<uint16_t>(t, random, [&](double u) {
        float value = static_cast<float>(real(u));
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        return static_cast<uint16_t>(bits >> 16);
      });
      return t;
    case DataType::kBool:
    case DataType::kUInt8:
      FillWith<uint8_t>(t, random, whole);
      return t;
    case DataType::kInt8:
      FillWith<int8_t>(t, random, whole);
      return t;
    case DataType::kInt16:
      FillWith<int16_t>(t, random, whole);
      return t;
    case DataType::kUInt16:
      FillWith<uint16_t>(t, random, whole);
      return t;
    case DataType::kInt32:
      FillWith<int32_t>(t, random, whole);
      return t;
    case DataType::kUInt32:
      FillWith<uint32_t>(t, random, whole);
      return t;
    case DataType::kInt64:
      FillWith<int64_t>(t, random, whole);
      return t;
    case DataType::kUInt64:
      FillWith<uint64_t>(t, random, whole);
      return t;
    default:
      return absl::UnimplementedError(
          absl::StrCat("input '", port.name, "': no random values of type ",
                       DataTypeName(port.type), "; give a file with --input"));
  }
}

}  // namespace

std::map<std::string, int64_t> BindingDims(const Options& options) {
  std::map<std::string, int64_t> dims = options.settings.dims;
  std::erase_if(dims,
                [&](const auto& dim) { return options.settings.buckets.contains(dim.first); });
  return dims;
}

std::map<std::string, int64_t> RandomDims(const Options& options) {
  std::map<std::string, int64_t> dims = options.settings.dims;
  for (const auto& [name, sizes] : options.settings.buckets) {
    dims.try_emplace(name, *std::min_element(sizes.begin(), sizes.end()));
  }
  return dims;
}

Settings SettingsOf(const Options& options) {
  Settings settings = options.settings;
  settings.dims = BindingDims(options);
  return settings;
}

absl::StatusOr<Arrays> MakeInputs(const std::vector<PortInfo>& ports, const Options& options) {
  for (const PortInfo& port : ports) {
    if (port.kind == PortKind::kTensor) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input '", port.name, "': ", port.type_text,
                     " is not a tensor; use Session of the Python package or of the C++ library"));
  }
  Arrays inputs;
  for (const std::string& text : options.inputs) {
    ANEMONE_ASSIGN_OR_RETURN(auto pair, SplitInput(ports, text));
    const auto [array, is_new] = inputs.try_emplace(pair.first);
    if (!is_new) {
      return UsageError(
          absl::StrCat("input '", pair.first, "': --input is given twice for it; drop one"));
    }
    ANEMONE_ASSIGN_OR_RETURN(array->second, ReadArrayFile(pair.second));
  }
  std::mt19937_64 random(options.seed);
  for (const PortInfo& port : ports) {
    auto range = options.ranges.find(port.name);
    bool ranged = range != options.ranges.end();
    if (inputs.count(port.name) > 0 || (port.has_default && !ranged)) continue;
    ANEMONE_ASSIGN_OR_RETURN(inputs[port.name],
                             RandomTensor(port, ranged ? range->second : Range(), random));
  }
  for (const auto& [name, range] : options.ranges) {
    if (inputs.count(name) == 0) {
      return UsageError(absl::StrCat("--range '", name,
                                     "': the model has no such input; it has: ", NamesOf(ports)));
    }
  }
  return inputs;
}

}  // namespace anemone
