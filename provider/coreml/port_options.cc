#include "provider/coreml/port_options.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/usage_error.h"

namespace anemone {
namespace {

absl::Status ReadPart(absl::string_view part, const std::string& text, ImageWish& to) {
  const std::pair<absl::string_view, absl::string_view> pair =
      absl::StrSplit(part, absl::MaxSplits('=', 1));
  std::vector<double> numbers;
  for (absl::string_view number : absl::StrSplit(pair.second, '/')) {
    numbers.push_back(0);
    if (!absl::SimpleAtod(number, &numbers.back())) numbers.clear();
    if (numbers.empty()) break;
  }
  if (pair.first == "scale" && numbers.size() == 1) {
    to.scale = numbers[0];
  } else if (pair.first == "bias" && (numbers.size() == 1 || numbers.size() == 3)) {
    to.bias = std::move(numbers);
  } else {
    return UsageError(absl::StrCat("--image-input ", text,
                                   ": want NAME, or NAME:scale=S,bias=B; B is a number, or R/G/B"));
  }
  return absl::OkStatus();
}

// A name may contain colons, so the parts begin at the last ":scale=" or ":bias=".
size_t EndOfName(const std::string& text) {
  size_t end = text.size();
  for (const char* key : {":scale=", ":bias="}) end = std::min(end, text.rfind(key));
  return end;
}

}  // namespace

absl::StatusOr<PortWishes> ReadPortWishes(const std::vector<std::string>& images,
                                          const std::vector<std::string>& states) {
  PortWishes wishes;
  for (const std::string& text : images) {
    const size_t end = EndOfName(text);
    ImageWish image;
    if (end < text.size()) {
      for (absl::string_view part : absl::StrSplit(text.substr(end + 1), ',')) {
        ANEMONE_RETURN_IF_ERROR(ReadPart(part, text, image));
      }
    }
    if (!wishes.images.emplace(text.substr(0, end), image).second) {
      return UsageError(absl::StrCat("--image-input ", text, ": the input is given twice"));
    }
  }
  std::set<std::string> presents;
  for (const std::string& text : states) {
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
      return UsageError(
          absl::StrCat("--state ", text, ": want PAST=PRESENT, an input and an output"));
    }
    if (!wishes.states.emplace(text.substr(0, at), text.substr(at + 1)).second ||
        !presents.insert(text.substr(at + 1)).second) {
      return UsageError(absl::StrCat("--state ", text, ": a name is given twice"));
    }
  }
  return wishes;
}

}  // namespace anemone
