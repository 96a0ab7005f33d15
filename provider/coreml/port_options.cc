#include "provider/coreml/port_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/fp16.h"
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

// fp32 holds the numbers, and the program, which computes in fp16, holds every pixel.
absl::Status CheckNumbers(const ImageWish& image, const std::string& text) {
  constexpr double kHighestPixel = 255;
  const auto is_held = [](double number) {
    return std::abs(number) <= std::numeric_limits<float>::max() &&  // false if it is not a number
           (number == 0 || static_cast<float>(number) != 0);
  };
  if (!is_held(image.scale) || !std::all_of(image.bias.begin(), image.bias.end(), is_held)) {
    return UsageError(
        absl::StrCat("--image-input ", text, ": want finite numbers that fp32 represents"));
  }
  if (image.scale == 0) {
    return UsageError(absl::StrCat("--image-input ", text, ": want a scale other than 0"));
  }
  for (double bias : image.bias) {
    const double highest = std::max(std::abs(bias), std::abs(kHighestPixel * image.scale + bias));
    if (highest <= fp16::kLargest) continue;
    return UsageError(absl::StrCat("--image-input ", text, ": the model would read numbers up to ",
                                   highest, ", and fp16 ends at ", fp16::kLargest));
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
      std::set<absl::string_view> keys;
      for (absl::string_view part : absl::StrSplit(absl::string_view(text).substr(end + 1), ',')) {
        ANEMONE_RETURN_IF_ERROR(ReadPart(part, text, image));
        if (keys.insert(part.substr(0, part.find('='))).second) continue;
        return UsageError(absl::StrCat("--image-input ", text, ": a key is given twice"));
      }
      ANEMONE_RETURN_IF_ERROR(CheckNumbers(image, text));
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
    if (const std::string past = text.substr(0, at); wishes.images.count(past) != 0) {
      return UsageError(absl::StrCat("--state ", text, " and --image-input ", past,
                                     ": an input is a state or an image; drop one"));
    }
  }
  return wishes;
}

}  // namespace anemone
