#include "tools/command/flag_values.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "engine/numerics_mode.h"
#include "engine/target.h"
#include "partitioner/plan.h"
#include "provider/planning.h"

namespace anemone {
absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

namespace {

// "NAME=REST", split at the last '=', since a name may hold one.
absl::Status SplitPair(const std::string& text, std::string& name, std::string& rest) {
  size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) {
    return Bad(absl::StrCat("want NAME=VALUE, got '", text, "'"));
  }
  name = text.substr(0, at);
  rest = text.substr(at + 1);
  return absl::OkStatus();
}

// What --dim, --shape or --range says of `name`, which is said once.
template <class T>
absl::StatusOr<T*> NewEntry(std::map<std::string, T>& of, const std::string& name) {
  const auto [place, is_new] = of.try_emplace(name);
  if (!is_new) return Bad(absl::StrCat("'", name, "' is given twice, want it once"));
  return &place->second;
}

// "1x3x8x8" or "scalar"; `?` for a dimension without a size.
absl::Status ReadShape(const std::string& text, std::vector<int64_t>& dims) {
  dims.clear();
  if (text == "scalar") return absl::OkStatus();
  for (absl::string_view size : absl::StrSplit(text, 'x')) {
    dims.push_back(-1);
    if (size == "?") continue;
    ANEMONE_RETURN_IF_ERROR(
        StoreInteger(std::string(size), 0, std::numeric_limits<int32_t>::max(), dims.back()));
  }
  return absl::OkStatus();
}

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

absl::Status StoreTargets(Options& o, const std::string& value) {
  o.targets = absl::StrSplit(value, ',');
  for (const std::string& name : ExpandTargets(o.targets)) {
    ANEMONE_RETURN_IF_ERROR(FindTarget(name).status());
  }
  return absl::OkStatus();
}

absl::Status StoreDim(Options& o, const std::string& value) {
  std::string name, size;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, size));
  ANEMONE_ASSIGN_OR_RETURN(int64_t * dim, NewEntry(o.dims, name));
  return StoreInteger(size, 0, std::numeric_limits<int32_t>::max(), *dim);
}

absl::Status StoreBucket(Options& o, const std::string& value) {
  std::string name, sizes;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, sizes));
  for (absl::string_view size : absl::StrSplit(sizes, ',')) {
    ANEMONE_RETURN_IF_ERROR(StoreInteger(std::string(size), 1, std::numeric_limits<int32_t>::max(),
                                         o.buckets[name].emplace_back()));
  }
  return absl::OkStatus();
}

absl::Status StoreShape(Options& o, const std::string& value) {
  std::string name, shape;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, shape));
  ANEMONE_ASSIGN_OR_RETURN(std::vector<int64_t> * dims, NewEntry(o.shapes, name));
  return ReadShape(shape, *dims);
}

absl::Status StoreChoice(const std::string& value, const std::vector<std::string>& choices,
                         std::string& to) {
  for (const std::string& choice : choices) {
    if (value == choice) {
      to = value;
      return absl::OkStatus();
    }
  }
  std::string known;
  for (const std::string& choice : choices)
    absl::StrAppend(&known, known.empty() ? "" : ", ", choice);
  return Bad(absl::StrCat("want one of ", known, "; got '", value, "'"));
}

absl::Status StoreNumerics(Options& o, const std::string& value) {
  o.numerics = value;
  return NumericsMode::Parse(value).status();
}

absl::Status StorePolicy(Options& o, const std::string& value) {
  o.policy = value;
  return Policy::Parse(value).status();
}

absl::Status StoreRange(Options& o, const std::string& value) {
  std::string name, range;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, range));
  std::vector<std::string> ends = absl::StrSplit(range, ':');
  if (ends.size() != 2) return Bad(absl::StrCat("want NAME=LOW:HIGH, got '", value, "'"));
  ANEMONE_ASSIGN_OR_RETURN(Range * r, NewEntry(o.ranges, name));
  ANEMONE_RETURN_IF_ERROR(StoreNumber(ends[0], r->low));
  ANEMONE_RETURN_IF_ERROR(StoreNumber(ends[1], r->high));
  return r->low <= r->high ? absl::OkStatus() : Bad("want LOW not above HIGH");
}

absl::Status StoreTolerance(Options& o, const std::string& value) {
  std::string name, number;
  ANEMONE_RETURN_IF_ERROR(SplitPair(value, name, number));
  if (name != "cosine" && name != "max_abs" && name != "max_rel") {
    return Bad(absl::StrCat("want cosine=, max_abs= or max_rel=, got '", name, "'"));
  }
  return StoreNumber(number, o.tolerance[name]);
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
  Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  o.call.attributes[value.substr(0, at)] = parsed.is_discarded() ? Json(text) : std::move(parsed);
  return absl::OkStatus();
}

}  // namespace anemone
