#include "tools/train/batches.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "importer/elements.h"

namespace anemone {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 34;

// SplitMix64 (Steele, Lea and Flood 2014): the same numbers everywhere.
uint64_t NextRandom(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::vector<int64_t> Order(int64_t count, uint64_t seed, int64_t pass) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  uint64_t state = seed ^ (static_cast<uint64_t>(pass) * 0xd1342543de82ef95);
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(order[i], order[NextRandom(state) % static_cast<uint64_t>(i + 1)]);
  }
  return order;
}

absl::StatusOr<Tensor> Converted(const std::string& name, const Tensor& array, DataType type) {
  if (array.type() == type) return array;
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("array '", Printable(name), "': ", what, "; save it as ", DataTypeName(type)));
  };
  const auto numbers = ToNumbers(array, kMostElements);
  if (!numbers)
    return bad(absl::StrCat("its type ", DataTypeName(array.type()), " is not supported"));
  if (IsFloating(type)) return FromDoubles(type, array.dims(), *numbers);
  Tensor made = Tensor::Uninitialized(type, array.dims());
  for (size_t i = 0; i < numbers->size(); ++i) {
    const double number = (*numbers)[i];
    if (number != std::floor(number) || std::abs(number) > 0x1p53) {
      return bad(absl::StrCat(number, " is not a whole number"));
    }
    if (type == DataType::kInt64) {
      made.mutable_data<int64_t>()[i] = static_cast<int64_t>(number);
    } else if (type == DataType::kInt32 && std::abs(number) < 0x1p31) {
      made.mutable_data<int32_t>()[i] = static_cast<int32_t>(number);
    } else {
      return bad(absl::StrCat("cannot be converted from ", DataTypeName(array.type())));
    }
  }
  return made;
}

// The engine takes a NaN for infinity, and a loss that depends on one means nothing.
absl::Status CheckNumbers(const std::string& name, const Tensor& array) {
  if (!IsFloating(array.type())) return absl::OkStatus();
  for (int64_t i = 0; i < array.elements(); ++i) {
    if (!std::isnan(ElementAsDouble(array, i))) continue;
    const int64_t samples = array.dims().empty() ? 1 : array.dims()[0];
    return absl::InvalidArgumentError(absl::StrCat("array '", Printable(name), "': sample ",
                                                   i / (array.elements() / samples),
                                                   " has a NaN; remove the sample, or correct it"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Batches> Batches::Make(std::map<std::string, Tensor> arrays,
                                      const std::vector<PortInfo>& ports, bool shuffle,
                                      uint64_t seed) {
  Batches made;
  made.ports_ = ports;
  made.shuffle_ = shuffle;
  made.seed_ = seed;
  std::string first;
  for (const PortInfo& port : ports) {
    const auto found = arrays.find(port.name);
    if (found == arrays.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the data has no array '", Printable(port.name), "' for the input of type ",
          port.type_text, " ", DimsToString(port.dims), "; add it to the --data file"));
    }
    ANEMONE_ASSIGN_OR_RETURN(Tensor array, Converted(port.name, found->second, port.type));
    const std::vector<int64_t>& dims = array.dims();
    const bool fits = !dims.empty() && dims.size() == port.dims.size() &&
                      std::equal(dims.begin() + 1, dims.end(), port.dims.begin() + 1);
    if (!fits && dims != port.dims) {
      return absl::InvalidArgumentError(
          absl::StrCat("array '", Printable(port.name), "': its sizes ", DimsToString(dims),
                       " do not fit the input's ", DimsToString(port.dims),
                       "; want samples along the first axis"));
    }
    if (fits && dims[0] == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("array '", Printable(port.name), "' has no samples; give at least one"));
    }
    ANEMONE_RETURN_IF_ERROR(CheckNumbers(port.name, array));
    if (fits && first.empty()) {
      made.samples_ = dims[0];
      made.batch_ = port.dims[0];
      first = port.name;
    } else if (fits && (dims[0] != made.samples_ || port.dims[0] != made.batch_)) {
      return absl::InvalidArgumentError(
          absl::StrCat("arrays '", Printable(first), "' and '", Printable(port.name),
                       "' have different numbers of samples: ", made.samples_, " and ", dims[0],
                       "; give as many of each"));
    }
    made.arrays_[port.name] = std::move(array);
  }
  if (first.empty()) {
    return absl::InvalidArgumentError(
        "the data has no array with samples along the first axis; give an array of several "
        "samples");
  }
  return made;
}

int64_t Batches::SampleAt(int64_t place) {
  const int64_t pass = place / samples_;
  if (!shuffle_) return place % samples_;
  if (pass != pass_) {
    order_ = Order(samples_, seed_, pass);
    pass_ = pass;
  }
  return order_[place % samples_];
}

std::string Batches::NamesOf(int64_t run, int64_t count) {
  constexpr int64_t kListed = 4;
  std::vector<int64_t> listed;
  for (int64_t i = 0; i < std::min(kListed, count * batch_); ++i) {
    listed.push_back(SampleAt(run * batch_ + i));
  }
  return absl::StrCat("samples ", absl::StrJoin(listed, ", "),
                      count * batch_ > kListed ? ", ..." : "");
}

std::map<std::string, Tensor> Batches::Of(int64_t run) {
  std::vector<int64_t> chosen(batch_);
  for (int64_t i = 0; i < batch_; ++i) chosen[i] = SampleAt(run * batch_ + i);
  std::map<std::string, Tensor> inputs;
  for (const PortInfo& port : ports_) {
    const Tensor& array = arrays_.at(port.name);
    const bool has_samples = !port.dims.empty() && port.dims[0] == batch_ &&
                             !array.dims().empty() && array.dims()[0] == samples_;
    if (!has_samples) {
      inputs[port.name] = array;
      continue;
    }
    Tensor batch = Tensor::Uninitialized(port.type, port.dims);
    const size_t size = array.bytes().size() / static_cast<size_t>(samples_);
    for (int64_t i = 0; i < batch_; ++i) {
      std::memcpy(batch.mutable_data<std::byte>() + i * size,
                  array.bytes().data() + chosen[i] * size, size);
    }
    inputs[port.name] = std::move(batch);
  }
  return inputs;
}

}  // namespace anemone
