// The list of examples, and the examples of layers whose other forms are tested by ONNX operators.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "math/core/half.h"
#include "tests/kernels/hidden/hidden_examples.h"

namespace anemone {
namespace {

using math::ToDouble;
using math::ToHalf;

// The index of an element in a dense tensor.
int64_t PlaceOf(const Dims& dims, int64_t n, int64_t c, int64_t h, int64_t w) {
  return ((n * dims.c() + c) * dims.h() + h) * dims.w() + w;
}

// Calls `at(n, c, h, w)` for every element of a tensor without depth, in their order.
template <class F>
void ForEach(const Dims& dims, F at) {
  for (int64_t i = 0; i < dims.elements(); ++i) {
    const int64_t plane = dims.h() * dims.w();
    at(i / plane / dims.c(), i / plane % dims.c(), i / dims.w() % dims.h(), i % dims.w());
  }
}

// softmax(Q K^T * s + M) V for each head; C = sequence, H = heads, W = head dimension. Scores of up
// to 8 are rounded to fp16 three times (math/attention/sdpa.h), which determines the relative error
// of each weight.
Example SdpaExample() {
  constexpr int64_t kQueries = 10, kKeys = 12, kHeads = 3, kDim = 8;
  const Dims dims = At(1, 1, kQueries, kHeads, kDim), keys = At(1, 1, kKeys, kHeads, kDim);
  const Input q = Random(dims), k = Random(keys, 2, 2), v = Random(keys, 2, 3),
              mask = Random(At(1, 1, kQueries, 1, kKeys), 1, 4);
  const double scale = ToDouble(ToHalf(1 / std::sqrt(kDim)));
  std::vector<double> want;
  ForEach(dims, [&](int64_t, int64_t query, int64_t head, int64_t d) {
    double sum = 0, weighted = 0;
    for (int64_t key = 0; key < kKeys; ++key) {
      double score = 0;
      for (int64_t i = 0; i < kDim; ++i) {
        score +=
            q.values[PlaceOf(dims, 0, query, head, i)] * k.values[PlaceOf(keys, 0, key, head, i)];
      }
      const double weight = std::exp(score * scale + mask.values[query * kKeys + key]);
      sum += weight;
      weighted += weight * v.values[PlaceOf(keys, 0, key, head, d)];
    }
    want.push_back(weighted / sum);
  });
  const float number = static_cast<float>(scale);
  const Constant constant{Tensor::Floats({1}, {number}), At(1, 1, 1, 1, 1)};
  return {{.type = "SDPA",
           .keys = {{"SubtractMax", true}},
           .inputs = {q, k, v, mask},
           .constants = {{3, constant}}},
          dims,
          want,
          0,
          4e-3};
}

// The order of one lane along W. The sort is stable.
std::vector<int64_t> OrderOf(const Input& x, int64_t lane) {
  std::vector<int64_t> order(x.dims.w());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return x.values[PlaceOf(x.dims, 0, lane, 0, a)] > x.values[PlaceOf(x.dims, 0, lane, 0, b)];
  });
  return order;
}

Json LaneKeys(int64_t lane, bool indices) {
  return {{"SortDimension", "Width"},
          {"VectorDimension", "Channel"},
          {"SortIndices", {lane}},
          {"Indices", indices}};
}

Example SortExample() {
  const Input x = OnGrid(At(1, 1, 3, 1, 37), 1);
  const std::vector<int64_t> order = OrderOf(x, 1);
  std::vector<double> want;
  ForEach(x.dims, [&](int64_t, int64_t c, int64_t, int64_t w) {
    want.push_back(x.values[PlaceOf(x.dims, 0, c, 0, order[w])]);
  });
  Json keys = LaneKeys(1, false);
  keys["Direction"] = "Descending";
  return {{"Sort", keys, {x}}, x.dims, want};
}

Example TopKExample() {
  constexpr int64_t kCount = 5;
  const Input x = OnGrid(At(1, 1, 3, 1, 37), 1);
  const std::vector<int64_t> order = OrderOf(x, 2);
  Json keys = LaneKeys(2, true);
  keys.update({{"Type", "Max"}, {"K", kCount}});
  return {{"TopK", keys, {x}},
          At(1, 1, 1, 1, kCount),
          std::vector<double>(order.begin(), order.begin() + kCount)};
}

Example ArgMinMaxExample() {
  const Input x = Random(At(2, 1, 4, 5, 7));
  const int64_t plane = 5 * 7;
  std::vector<double> want;
  for (auto at = x.values.begin(); at != x.values.end(); at += plane) {
    want.push_back(static_cast<double>(std::max_element(at, at + plane) - at));
  }
  const Json keys = {{"Mode", "SpatialArgMax"}, {"KernelWidth", 7}, {"KernelHeight", 5}};
  return {{"ArgMinMax", keys, {x}}, At(2, 1, 4, 1, 1), want};
}

Example GlobalArgMinMaxExample() {
  const Input x = Random(At(1, 1, 4, 9, 6));
  const Dims out = At(1, 1, 4, 1, 6);
  std::vector<double> want;
  ForEach(out, [&](int64_t n, int64_t c, int64_t, int64_t w) {
    int64_t best = 0;
    for (int64_t h = 1; h < x.dims.h(); ++h) {
      if (x.values[PlaceOf(x.dims, n, c, h, w)] < x.values[PlaceOf(x.dims, n, c, best, w)])
        best = h;
    }
    want.push_back(static_cast<double>(best));
  });
  return {{"GlobalArgMinMax", {{"Type", "Min"}, {"Dimension", "Height"}}, {x}}, out, want};
}

// Pixel (h, w) of the wide side and channel or image of the deep side, by the catalogue's formulas.
Example RearrangeExample(const std::string& type) {
  constexpr int64_t fy = 2, fx = 4;
  const bool by_image = type == "SpaceToBatch" || type == "BatchToSpace";
  const bool channel_major = type == "PixelShuffle" || type == "PixelUnshuffle";
  const bool to_pixels =
      type == "PixelShuffle" || type == "ChannelToSpace" || type == "BatchToSpace";
  const Dims wide = At(2, 1, 3, 6, 8);
  Dims deep = At(2, 1, 3, 6 / fy, 8 / fx);
  deep[by_image ? Axis::kN : Axis::kC] *= fy * fx;
  const Input x = Random(to_pixels ? deep : wide);
  std::vector<double> want(x.values.size());
  ForEach(wide, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    const int64_t i = h % fy, j = w % fx, pixel = PlaceOf(wide, n, c, h, w);
    const int64_t image = by_image ? (n * fy + i) * fx + j : n;
    const int64_t channel = by_image        ? c
                            : channel_major ? (c * fy + i) * fx + j
                                            : (i * fx + j) * wide.c() + c;
    const int64_t place = PlaceOf(deep, image, channel, h / fy, w / fx);
    want[to_pixels ? pixel : place] = x.values[to_pixels ? place : pixel];
  });
  return {{type, {{"FactorX", fx}, {"FactorY", fy}, {"FactorZ", 1}}, {x}},
          to_pixels ? wide : deep,
          want};
}

// The engine rounds after each of its steps.
Example MinMaxExample() {
  const Input x = Random(At(2, 1, 3, 4, 9));
  const math::Half epsilon = ToHalf(0.01);
  std::vector<double> want;
  for (auto row = x.values.begin(); row != x.values.end(); row += 9) {
    const auto [least, most] = std::minmax_element(row, row + 9);
    for (auto at = row; at != row + 9; ++at) {
      want.push_back((*at - *least) / (*most - *least + ToDouble(epsilon)));
    }
  }
  const Json keys = {{"Dimension", "Width"}, {"Epsilon", epsilon.bits}};
  return {{"MinMaxNormalization", keys, {x}}, x.dims, want, 2.5};
}

Example LrnExample() {
  constexpr int64_t kWindow = 5;
  const Input x = Random(At(2, 1, 7, 3, 4), 4);
  std::vector<double> want;
  ForEach(x.dims, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    double squares = 0;
    for (int64_t j = std::max<int64_t>(0, c - (kWindow - 1) / 2);
         j <= std::min(x.dims.c() - 1, c + kWindow / 2); ++j) {
      squares += std::pow(x.values[PlaceOf(x.dims, n, j, h, w)], 2);
    }
    // Only the first kWindow of the seven channels are normalized.
    const double factor = c < kWindow ? std::pow(2 + 0.5 / kWindow * squares, -0.75) : 1;
    want.push_back(x.values[PlaceOf(x.dims, n, c, h, w)] * factor);
  });
  const Json keys = {
      {"KernelChannel", kWindow}, {"Alpha", ToHalf(0.5).bits}, {"Beta", 0.75}, {"K", 2.0}};
  return {{"LocalResponseNormalization", keys, {x}}, x.dims, want, 0.51};
}

Example InputViewExample() {
  const Input x = Random(At(2, 1, 3, 4, 9));
  const Dims out = At(2, 1, 3, 4, 3);
  std::vector<double> want;
  ForEach(out, [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    want.push_back(x.values[PlaceOf(x.dims, n, c, h, 2 + 3 * w)]);
  });
  const Json keys = {{"Dimension", "Width"}, {"Offset", 2}, {"Size", 3}, {"Step", 3}};
  return {{"InputView", keys, {x}}, out, want};
}

Example BroadcastExample() {
  const Input x = Random(At(1, 1, 3, 1, 5));
  const Dims out = At(1, 1, 3, 4, 5);
  std::vector<double> want;
  ForEach(out, [&](int64_t, int64_t c, int64_t, int64_t w) {
    want.push_back(x.values[PlaceOf(x.dims, 0, c, 0, w)]);
  });
  Json info = Json::array();
  info.push_back({{"Dimension", "Height"}, {"Size", 4}});
  return {{"Broadcast", {{"BroadcastInfo", info}}, {x}}, out, want};
}

Example GocExample() {
  const Input x = Random(At(1, 1, 3, 4, 5));
  std::vector<double> want;
  for (double value : x.values) want.push_back(value * 2.5 - 0.375);
  const Json keys = {{"ScaleScalar", ToHalf(2.5).bits}, {"BiasScalar", ToHalf(-0.375).bits}};
  return {{"GOC", keys, {x}}, x.dims, want, 0.5, 1e-6};
}

}  // namespace

std::vector<Example> HiddenExamples() {
  const Input index{At(1, 1, 1, 1, 1), {3}};
  const Dims image = At(2, 1, 4, 3, 5), channels = At(1, 1, 4, 1, 1);
  std::vector<Example> examples = {
      SdpaExample(),
      SortExample(),
      TopKExample(),
      ArgMinMaxExample(),
      GlobalArgMinMaxExample(),
      MinMaxExample(),
      LrnExample(),
      ScaledElementWiseExample(image, {"Add", -3.25}),
      CorrelationExample(At(1, 1, 1, 9, 31), {2, 5, 1, 0, 3, 2}, true),
      CrossProductExample(9),
      FurthestPointExample(1, 100, 30),
      RadiusExample(1, 7, 33, 3),
      CostVolumeExample(At(1, 1, 1, 5, 20), 7, 0),
      InputViewExample(),
      SliceExample(Random(At(1, 1, 1, 1, 4)), {{Axis::kW}, {2}, index}),
      FlattenExample(image, false),
      DropoutExample(image),
      BroadcastExample(),
      GocExample(),
      DynamicGocExample(image, channels, channels, false),
      RasterizedExample(image, 2, 3, 2),
  };
  for (const char* type : {"PixelShuffle", "PixelUnshuffle", "ChannelToSpace", "SpaceToChannel",
                           "SpaceToBatch", "BatchToSpace"}) {
    examples.push_back(RearrangeExample(type));
  }
  return examples;
}

}  // namespace anemone
