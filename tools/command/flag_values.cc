#include "tools/command/flag_values.h"

#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/formats/parse_json.h"
#include "provider/settings.h"

namespace anemone {

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

namespace {

// "SHAPE[:DTYPE]"
absl::Status ReadTensor(const std::string& text, MilTensor& tensor) {
  size_t colon = text.find(':');
  if (colon != std::string::npos) tensor.dtype = text.substr(colon + 1);
  return ReadShape(text.substr(0, colon), tensor.shape);
}

}  // namespace

absl::Status StoreNumber(const std::string& text, double& to) {
  if (!absl::SimpleAtod(text, &to) || to != to) {
    return Bad(absl::StrCat("want a number, got '", text, "'"));
  }
  return absl::OkStatus();
}

absl::Status StoreRange(Options& o, const std::string& value) {
  std::string name, range;
  if (!SplitPair(value, name, range).ok()) {
    return Bad(absl::StrCat("want NAME=LOW:HIGH, got '", value, "'"));
  }
  std::vector<std::string> ends = absl::StrSplit(range, ':');
  if (ends.size() != 2) return Bad(absl::StrCat("want NAME=LOW:HIGH, got '", value, "'"));
  ANEMONE_ASSIGN_OR_RETURN(Range * r, NewEntry(o.ranges, name));
  ANEMONE_RETURN_IF_ERROR(StoreNumber(ends[0], r->low));
  ANEMONE_RETURN_IF_ERROR(StoreNumber(ends[1], r->high));
  if (!std::isfinite(static_cast<float>(r->high - r->low))) {
    return Bad(absl::StrCat("want LOW:HIGH within float32, got '", range, "'"));
  }
  return r->low <= r->high ? absl::OkStatus() : Bad("want LOW not above HIGH");
}

absl::Status StoreSeed(Options& o, const std::string& value) {
  int64_t seed = 0;
  ANEMONE_RETURN_IF_ERROR(StoreInteger(value, 0, std::numeric_limits<int64_t>::max(), seed));
  o.seed = static_cast<uint64_t>(seed);
  return absl::OkStatus();
}

absl::Status StoreTolerance(Options& o, const std::string& value) {
  std::string name, number;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, number));
  if (name != "cosine" && name != "max_abs" && name != "max_rel") {
    return Bad(absl::StrCat("want cosine=, max_abs= or max_rel=, got '", name, "'"));
  }
  double& bound = o.tolerance[name];
  ANEMONE_RETURN_IF_ERROR(StoreNumber(number, bound));
  if (name == "cosine" ? bound >= -1 && bound <= 1 : bound >= 0) return absl::OkStatus();
  return Bad(
      absl::StrCat(name == "cosine" ? "want a cosine from -1 to 1" : "want an error of at least 0",
                   ", got '", number, "'"));
}

absl::Status StoreInput(Options& o, const std::string& value) {
  size_t at = value.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == value.size()) {
    return Bad(absl::StrCat("want NAME=FILE, got '", value, "'"));
  }
  o.inputs.push_back(value);
  return absl::OkStatus();
}

absl::Status StoreArgument(Options& o, const std::string& value) {
  MilTensor tensor{.name = absl::StrCat("x", o.call.arguments.size())};
  ANEMONE_RETURN_IF_ERROR(ReadTensor(value, tensor));
  o.call.arguments.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status StoreConstant(Options& o, const std::string& value) {
  MilTensor tensor{.constant = true};
  std::string shape;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, tensor.name, shape));
  ANEMONE_RETURN_IF_ERROR(ReadTensor(shape, tensor));
  o.call.attributes[tensor.name] = {{"shape", tensor.shape}, {"dtype", tensor.dtype}};
  return absl::OkStatus();
}

absl::Status StoreAttribute(Options& o, const std::string& value) {
  size_t at = value.find('=');
  if (at == std::string::npos || at == 0) {
    return Bad(absl::StrCat("want KEY=VALUE, got '", value, "'"));
  }
  std::string text = value.substr(at + 1);
  o.call.attributes[value.substr(0, at)] = ParseJson(text).value_or(Json(text));
  return absl::OkStatus();
}

}  // namespace anemone
