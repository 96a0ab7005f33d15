#include "tools/compare/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "math/core/half.h"
#include "tools/compare/array_file.h"
#include "tools/compare/input_files.h"

namespace anemone {
namespace {

// The inputs without a file.
std::vector<std::string> RandomNames(const Arrays& inputs, const Options& options) {
  std::vector<std::string> names;
  for (const auto& input : inputs) names.push_back(input.first);
  const auto files = InputFiles(options, {names, {}});
  std::erase_if(names,
                [&](const std::string& name) { return files.ok() && files->contains(name); });
  return names;
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

absl::StatusOr<Arrays> MakeInputs(const std::vector<PortInfo>& ports,
                                  const std::vector<std::string>& constants,
                                  const Options& options) {
  for (const PortInfo& port : ports) {
    if (port.kind == PortKind::kTensor) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input '", port.name, "': ", port.type_text,
                     " is not a tensor; use Session of the Python package or of the C++ library"));
  }
  Arrays inputs;
  const InputNames names = NamesOf(ports, constants);
  ANEMONE_ASSIGN_OR_RETURN(const auto files, InputFiles(options, names));
  for (const auto& [name, file] : files) {
    ANEMONE_ASSIGN_OR_RETURN(inputs[name], ReadArrayFile(file));
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
      return UsageError(absl::StrCat("--range '", name, "': ", NoSuchInput(name, names)));
    }
  }
  return inputs;
}

std::string InputsText(const Arrays& inputs, const Options& options) {
  if (inputs.empty()) return "inputs: the model has none";
  const std::vector<std::string> random = RandomNames(inputs, options);
  if (random.empty()) return "inputs: from files";
  const bool all = random.size() == inputs.size();
  return absl::StrCat("inputs: ", all ? "" : absl::StrCat(absl::StrJoin(random, ", "), " "),
                      "random, seed ", options.seed, " (give --input for real ones)");
}

Json InputsJson(const Arrays& inputs, const Options& options) {
  return {{"random", RandomNames(inputs, options)}, {"seed", options.seed}};
}

}  // namespace anemone
