#include "importer/read/free_dimensions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/quoted_for_shell.h"
#include "importer/read/bindings.h"

namespace anemone {
namespace {

constexpr int64_t kBatch = 1, kChannels = 3, kImage = 224, kSequence = 128;
constexpr int64_t kSecond = 16000;  // of sound

// By a part of the name, or by the whole name for short ones. The first row that matches counts.
struct NamedSize {
  const char* part;
  bool whole;
  int64_t size;
};
constexpr NamedSize kNamedSizes[] = {
    {"batch", false, kBatch},
    {"n", true, kBatch},
    {"b", true, kBatch},
    {"bs", true, kBatch},
    {"height", false, kImage},
    {"width", false, kImage},
    {"h", true, kImage},
    {"w", true, kImage},
    {"channel", false, kChannels},
    {"c", true, kChannels},
    {"total", false, 2 * kSequence},
    {"seq", false, kSequence},
    {"past", false, kSequence},
    {"len", false, kSequence},
    {"token", false, kSequence},
    {"time", false, kSequence},
    {"frame", false, kSequence},
    {"samples", false, kSecond},
};

// Exporters write sums as names: "past_sequence_length + 1".
std::optional<int64_t> TypicalOfName(absl::string_view name) {
  if (absl::StrContains(name, '+')) {
    int64_t sum = 0;
    for (absl::string_view part : absl::StrSplit(name, '+')) {
      part = absl::StripAsciiWhitespace(part);
      int64_t number = 0;
      if (!absl::SimpleAtoi(part, &number)) {
        const std::optional<int64_t> size = TypicalOfName(part);
        if (!size) return std::nullopt;
        number = *size;
      }
      sum += number;
    }
    return sum;
  }
  const std::string lower = absl::AsciiStrToLower(name);
  for (const NamedSize& row : kNamedSizes) {
    if (row.whole ? lower == row.part : absl::StrContains(lower, row.part)) return row.size;
  }
  return std::nullopt;
}

// In an image, channels are the second axis, or the last one if that has few elements.
int64_t TypicalOfPlace(const Shape& shape, int axis) {
  if (axis == 0) return kBatch;
  if (shape.size() < 4) return kSequence;
  const bool channels_last = shape.back().known() && shape.back().size <= 4;
  const int channels = channels_last ? static_cast<int>(shape.size()) - 1 : 1;
  return axis == channels ? kChannels : kImage;
}

const Value& InputOf(const Model& model, const std::string& name) {
  const std::vector<ValueId>& inputs = model.graph.inputs;
  return model.graph.values[*std::find_if(inputs.begin(), inputs.end(), [&](ValueId id) {
    return model.graph.values[id].name == name;
  })];
}

}  // namespace

std::vector<FreeDimension> FreeDimensionsOf(const Model& model) {
  std::vector<FreeDimension> all;
  for (const UnboundDim& dim : UnboundDims(model)) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const FreeDimension& other) {
      return !dim.symbol.empty() && other.name == dim.symbol;
    });
    if (known != all.end()) {
      known->places.push_back({dim.input, dim.axis});
      continue;
    }
    FreeDimension& added = all.emplace_back();
    added.name = dim.symbol;
    added.places.push_back({dim.input, dim.axis});
    if (dim.axis == kNone) continue;
    added.typical = TypicalOfName(dim.symbol)
                        .value_or(TypicalOfPlace(*InputOf(model, dim.input).shape, dim.axis));
  }
  return all;
}

std::string FreeDimensionNames(const Model& model) {
  return absl::StrJoin(FreeDimensionsOf(model), ", ", [](std::string* to, const auto& dimension) {
    if (!dimension.name.empty()) return absl::StrAppend(to, dimension.name);
    const FreeDimension::Place& place = dimension.places.front();
    if (place.axis == kNone) return absl::StrAppend(to, "all of '", place.input, "'");
    absl::StrAppend(to, "dimension ", place.axis, " of '", place.input, "'");
  });
}

std::vector<Binding> TypicalBindings(const Model& model) {
  const std::vector<FreeDimension> all = FreeDimensionsOf(model);
  std::vector<Binding> bindings;
  for (const FreeDimension& dim : all) {
    if (!dim.name.empty()) {
      bindings.push_back({.option = Binding::kDim, .name = dim.name, .sizes = {dim.typical}});
      continue;
    }
    const std::string& input = dim.places.front().input;
    const auto is_of_input = [&](const Binding& binding) {
      return binding.option == Binding::kShape && binding.name == input;
    };
    if (std::any_of(bindings.begin(), bindings.end(), is_of_input)) continue;
    std::vector<int64_t> sizes = {kBatch, kChannels, kImage, kImage};
    if (const Value& value = InputOf(model, input); value.shape) {
      sizes.clear();
      for (const Dim& axis : *value.shape) sizes.push_back(axis.size);
      for (const FreeDimension& each : all) {
        for (const FreeDimension::Place& place : each.places) {
          if (place.input == input) sizes[place.axis] = each.typical;
        }
      }
    }
    bindings.push_back({.option = Binding::kShape, .name = input, .sizes = std::move(sizes)});
  }
  return bindings;
}

std::vector<std::string> BindingFlags(const Model& model) {
  std::vector<std::string> flags;
  for (const Binding& binding : TypicalBindings(model)) {
    const std::string word = absl::StrCat(binding.name, "=", absl::StrJoin(binding.sizes, "x"));
    flags.push_back(absl::StrCat(binding.option == Binding::kDim ? "--dim " : "--shape ",
                                 QuotedForShell(word)));
  }
  return flags;
}

}  // namespace anemone
