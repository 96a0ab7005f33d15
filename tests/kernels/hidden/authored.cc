#include "tests/kernels/hidden/authored.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/authored_unit.h"
#include "kernels/lowering.h"
#include "tests/round_trip.h"

namespace anemone {
namespace {

using math::Half;
using math::ToDouble;
using math::ToHalf;

// Calls `at(i, place)` for every element of a port.
template <class F>
void ForEachPlace(const SurfaceLayout& layout, F at) {
  for (int64_t i = 0; i < layout.dims.elements(); ++i) {
    int64_t place = 0;
    for (int64_t axis = kAxisCount - 1, left = i; axis >= 0; --axis) {
      place += left % layout.dims.extent[axis] * layout.strides[axis];
      left /= layout.dims.extent[axis];
    }
    at(i, place);
  }
}

// NaN becomes +infinity, as in every port.
void Store(const Input& input, const SurfaceLayout& layout, std::byte* bytes) {
  ForEachPlace(layout, [&](int64_t i, int64_t place) {
    const double value = std::isnan(input.values[i]) ? INFINITY : input.values[i];
    if (input.format == Format::kUInt8) {
      bytes[place] = static_cast<std::byte>(value);
    } else {
      const Half half = ToHalf(value);
      std::memcpy(bytes + place * sizeof(half), &half, sizeof(half));
    }
  });
}

}  // namespace

Dims At(int64_t n, int64_t d, int64_t c, int64_t h, int64_t w) { return Dims{{n, d, c, h, w}}; }

Input Random(const Dims& dims, double most, int seed) {
  std::mt19937 random(seed);
  Input input{dims, {}};
  for (int64_t i = 0; i < dims.elements(); ++i) {
    input.values.push_back(ToDouble(ToHalf(most * (random() % 20001 / 10000.0 - 1))));
  }
  return input;
}

Input OnGrid(const Dims& dims, int most, int seed) {
  std::mt19937 random(seed);
  Input input{dims, {}};
  for (int64_t i = 0; i < dims.elements(); ++i) {
    const int steps = static_cast<int>(random() % (2 * 64 * most + 1)) - 64 * most;
    input.values.push_back(steps / 64.0);
  }
  return input;
}

Input InputOf(const Tensor& tensor) {
  Input input{PlaceShape(tensor.dims()), {}};
  for (int64_t i = 0; i < tensor.elements(); ++i) input.values.push_back(tensor.at<float>(i));
  return input;
}

absl::StatusOr<Network> NetworkOf(const Authored& unit) {
  ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(unit.target));
  NetworkBuilder c(*target, Route::kNetplist);
  std::vector<Operand> bottoms;
  for (const Input& input : unit.inputs) {
    bottoms.push_back(c.AddInput(absl::StrCat("x", bottoms.size()), input.dims, input.format));
  }
  for (const auto& [place, constant] : unit.constants) {
    bottoms.insert(bottoms.begin() + place, c.AddConstant(constant.tensor, constant.dims));
  }
  const Operand made =
      AddAuthoredUnit(c, *FindUnitKind(unit.type), unit.keys, bottoms, unit.weights, "u");
  if (!c.ok()) {
    return c.refusal() ? absl::FailedPreconditionError(c.refusal()->message) : c.status();
  }
  c.AddOutput("y", made);
  return c.TakeNetwork();
}

absl::StatusOr<Result> RunNetwork(const Network& network, const Authored& unit,
                                  const SoftwareOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(unit.target));
  std::unique_ptr<Device> device = MakeSoftwareDevice(options);
  ANEMONE_ASSIGN_OR_RETURN(auto program, device->Compile(network, *target, Route::kNetplist));
  std::vector<std::vector<std::byte>> memory;
  std::vector<const std::byte*> in;
  for (size_t i = 0; i < unit.inputs.size(); ++i) {
    const SurfaceLayout& layout = program->inputs()[i].layout;
    std::byte* bytes = memory.emplace_back(layout.bytes()).data();
    Store(unit.inputs[i], layout, bytes);
    in.push_back(bytes);  // stays valid when `memory` grows
  }
  const SurfaceLayout& layout = program->outputs()[0].layout;
  std::vector<std::byte> bytes(layout.bytes());
  std::byte* out = bytes.data();
  ANEMONE_RETURN_IF_ERROR(device->Run(*program, {in, {&out, 1}}));
  Result result{layout.dims, std::vector<Half>(layout.dims.elements())};
  ForEachPlace(layout, [&](int64_t i, int64_t place) {
    std::memcpy(&result.values[i], out + place * sizeof(Half), sizeof(Half));
  });
  return result;
}

absl::StatusOr<Result> RunUnit(const Authored& unit) {
  ANEMONE_ASSIGN_OR_RETURN(Network network, NetworkOf(unit));
  ANEMONE_ASSIGN_OR_RETURN(Result result, RunNetwork(network, unit));
  ANEMONE_RETURN_IF_ERROR(
      CheckPackageRoundTrip(network, **FindTarget(unit.target), Route::kNetplist));
  return result;
}

absl::StatusOr<Errors> ErrorsOf(const Example& example, const Result& got) {
  if (got.dims != example.dims || got.values.size() != example.want.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("made ", DimsToString(got.dims), ", want ", DimsToString(example.dims)));
  }
  Errors errors;
  for (size_t i = 0; i < got.values.size(); ++i) {
    const double value = ToDouble(got.values[i]), want = example.want[i];
    if (value == ToDouble(ToHalf(want))) continue;
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(want), -14) - 10);
    const double error = std::abs(value - want);
    errors.ulps = std::max(errors.ulps, error / ulp);
    errors.absolute = std::max(errors.absolute, error);
    const bool fits = error <= std::max(example.ulps * ulp, example.absolute);  // false for NaN
    if (fits || !errors.beyond.empty()) continue;
    errors.beyond = absl::StrCat("[", i, "]: got ", value, ", want ", want);
  }
  return errors;
}

void ExpectNear(const Example& example) {
  SCOPED_TRACE(absl::StrCat(example.unit.type, " ", example.unit.keys.dump()));
  absl::StatusOr<Result> got = RunUnit(example.unit);
  ASSERT_TRUE(got.ok()) << got.status();
  absl::StatusOr<Errors> errors = ErrorsOf(example, *got);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_EQ(errors->beyond, "");
}

}  // namespace anemone
