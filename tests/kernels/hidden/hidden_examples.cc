#include "tests/kernels/hidden/hidden_examples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "math/core/half.h"

namespace anemone {
namespace {

using math::ToDouble;
using math::ToHalf;

double DistanceBetween(const Input& a, int64_t i, const Input& b, int64_t j, int64_t cloud) {
  double sum = 0;
  for (int64_t axis = 0; axis < 3; ++axis) {
    sum += std::pow(a.values[(cloud * 3 + axis) * a.dims.w() + i] -
                        b.values[(cloud * 3 + axis) * b.dims.w() + j],
                    2);
  }
  return std::sqrt(sum);
}

// The indices of the chosen points, by the definition: all distances are computed again for each
// point.
std::vector<int64_t> Furthest(const Input& points, int64_t count, int64_t cloud) {
  std::vector<int64_t> chosen = {0};
  while (static_cast<int64_t>(chosen.size()) < count) {
    int64_t best = 0;
    double furthest = -1;
    for (int64_t i = 0; i < points.dims.w(); ++i) {
      double nearest = INFINITY;
      for (int64_t j : chosen) {
        nearest = std::min(nearest, DistanceBetween(points, i, points, j, cloud));
      }
      if (nearest > furthest) {
        furthest = nearest;
        best = i;
      }
    }
    chosen.push_back(best);
  }
  return chosen;
}

// The index in a row of element `i` of `dims`, in the given order.
int64_t PlaceInRow(const Dims& dims, int64_t i, bool channels_last) {
  if (!channels_last) return i;
  const int64_t w = i % dims.w(), h = i / dims.w() % dims.h();
  const int64_t c = i / (dims.w() * dims.h()) % dims.c(),
                rest = i / (dims.w() * dims.h() * dims.c());
  return ((rest * dims.h() + h) * dims.w() + w) * dims.c() + c;
}

Input RowOf(const Input& x, bool channels_last) {
  const int64_t count = x.dims.elements();
  Input row{At(x.dims.n(), 1, 1, 1, count / x.dims.n()), std::vector<double>(count)};
  for (int64_t i = 0; i < count; ++i) {
    row.values[PlaceInRow(x.dims, i, channels_last)] = x.values[i];
  }
  return row;
}

double Repeated(const Input& operand, const Dims& dims, int64_t i) {
  int64_t place = 0, stride = 1;
  for (int axis = kAxisCount - 1; axis >= 0; --axis) {
    place += i % dims.extent[axis] % operand.dims.extent[axis] * stride;
    stride *= operand.dims.extent[axis];
    i /= dims.extent[axis];
  }
  return operand.values[place];
}

}  // namespace

Example CorrelationExample(const Dims& map_dims, const Template& t, bool flat) {
  const Input map = Random(map_dims), pattern = Random(At(1, 1, 1, t.height, t.width), 2, 7);
  Input bottom = pattern;
  if (flat) bottom.dims = At(1, 1, 1, 1, t.height * t.width);
  const int64_t planes = map_dims.n() * map_dims.d(), h = map_dims.h(), w = map_dims.w();
  Dims out = map_dims;
  out[Axis::kH] = h + t.top + t.bottom - t.height + 1;
  out[Axis::kW] = w + t.left + t.right - t.width + 1;
  std::vector<double> want;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t i = 0; i < out.h(); ++i) {
      for (int64_t j = 0; j < out.w(); ++j) {
        double sum = 0;
        for (int64_t u = 0; u < t.height; ++u) {
          for (int64_t v = 0; v < t.width; ++v) {
            const int64_t y = i + u - t.top, x = j + v - t.left;
            if (y < 0 || y >= h || x < 0 || x >= w) continue;
            sum += map.values[(plane * h + y) * w + x] * pattern.values[u * t.width + v];
          }
        }
        want.push_back(sum);
      }
    }
  }
  const Json keys = {{"TemplateWidth", t.width},
                     {"TemplateHeight", t.height},
                     {"PadTop", t.top},
                     {"PadBot", t.bottom},
                     {"PadLeft", t.left},
                     {"PadRight", t.right},
                     {"NumGroups", 1}};
  const double terms = static_cast<double>(t.height * t.width);
  return {{"CrossCorrelation", keys, {map, bottom}}, out, want, 0.5, 1e-5 * terms};
}

Example CrossProductExample(int64_t vectors) {
  const Dims dims = At(vectors, 1, 3, 1, 1);
  const Input x = Random(dims, 100), z = Random(dims, 0.5, 3);
  std::vector<double> want;
  for (int64_t i = 0; i < vectors; ++i) {
    const double *a = &x.values[3 * i], *b = &z.values[3 * i];
    want.insert(want.end(),
                {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]});
  }
  return {{"CrossProduct", Json::object(), {x, z}}, dims, want, 0.5, 1e-6};
}

Example FurthestPointExample(int64_t clouds, int64_t points, int64_t count) {
  const Input x = OnGrid(At(clouds, 1, 3, 1, points));
  std::vector<double> want;
  for (int64_t cloud = 0; cloud < clouds; ++cloud) {
    const std::vector<int64_t> chosen = Furthest(x, count, cloud);
    for (int64_t axis = 0; axis < 3; ++axis) {
      for (int64_t i : chosen) want.push_back(x.values[(cloud * 3 + axis) * points + i]);
    }
  }
  return {{"FurthestPointSampling", {{"CentroidCount", count}, {"DistanceMetric", "L2"}}, {x}},
          At(clouds, 1, 3, 1, count),
          want};
}

// The flag is the low byte of a two-byte element.
Example RadiusExample(int64_t clouds, int64_t centroids, int64_t points, double radius) {
  constexpr double kMember = 0x1p-24;  // the bits 0x0001
  const Input centers = OnGrid(At(clouds, 1, 3, 1, centroids), 4, 5);
  const Input x = OnGrid(At(clouds, 1, 3, 1, points));
  std::vector<double> want;
  for (int64_t cloud = 0; cloud < clouds; ++cloud) {
    for (int64_t i = 0; i < points; ++i) {
      for (int64_t j = 0; j < centroids; ++j) {
        want.push_back(DistanceBetween(x, i, centers, j, cloud) <= radius ? kMember : 0);
      }
    }
  }
  return {{"RadiusSearch", {{"Radius", radius}}, {centers, x}},
          At(clouds, 1, 1, points, centroids),
          want};
}

Example CostVolumeExample(const Dims& aux_dims, int64_t range, int64_t more) {
  Dims wide = aux_dims, out = aux_dims;
  wide[Axis::kW] += range + more;
  out[Axis::kC] = range + 1;
  const Input aux = Random(aux_dims), ref = Random(wide, 3, 9);
  std::vector<double> want;
  for (int64_t plane = 0; plane < out.n() * out.d(); ++plane) {
    for (int64_t d = 0; d <= range; ++d) {
      for (int64_t h = plane * out.h(); h < (plane + 1) * out.h(); ++h) {
        for (int64_t x = 0; x < out.w(); ++x) {
          want.push_back(std::abs(aux.values[h * out.w() + x] - ref.values[h * wide.w() + x + d]));
        }
      }
    }
  }
  return {{"CostVolume", {{"DisparityDirection", 0}, {"DisparityRange", range}}, {aux, ref}},
          out,
          want};
}

Json SliceKeys(const Slices& slices) {
  Json keys = {{"DynamicSliceAxisOrder", Json::array()}, {"DynamicSliceInfo", Json::array()},
               {"CoordinateInfo", Json::array()},        {"CoordinateMode", "NonNormalized"},
               {"PaddingInfo", Json::array()},           {"BackgroundValue", slices.background}};
  for (size_t i = 0; i < slices.order.size(); ++i) {
    const char* axis = AxisName(slices.order[i]);
    keys["DynamicSliceAxisOrder"].push_back(axis);
    keys["DynamicSliceInfo"].push_back({{"Coordinate", axis}, {"SliceSize", slices.sizes[i]}});
    keys["CoordinateInfo"].push_back({{"Coordinate", axis}, {"CoordinateMode", "NonNormalized"}});
    keys["PaddingInfo"].push_back({{"Coordinate", axis}, {"PaddingMode", slices.padding}});
  }
  return keys;
}

// x[start + i], or outside x the value by the padding mode: the nearest element, zero or the
// background.
Example SliceExample(const Input& x, const Slices& slices) {
  Dims out = x.dims;
  std::array<int64_t, kAxisCount> start = {};
  for (size_t i = 0; i < slices.order.size(); ++i) {
    constexpr double kFar = 1 << 20;
    out[slices.order[i]] = slices.sizes[i];
    const double floor = std::clamp(std::floor(slices.index.values[i]), -kFar, kFar);
    start[static_cast<int>(slices.order[i])] = static_cast<int64_t>(floor);
  }
  const double beyond = slices.padding == "Zero" ? 0 : slices.background;
  std::vector<double> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    bool inside = true;
    int64_t place = 0, stride = 1;
    for (int64_t axis = kAxisCount - 1, left = i; axis >= 0; --axis) {
      const int64_t extent = x.dims.extent[axis];
      const int64_t at = left % out.extent[axis] + start[axis];
      left /= out.extent[axis];
      inside = inside && at >= 0 && at < extent;
      place += std::clamp<int64_t>(at, 0, extent - 1) * stride;
      stride *= extent;
    }
    want.push_back(inside || slices.padding == "Replication" ? x.values[place] : beyond);
  }
  return {{"DynamicSlice", SliceKeys(slices), {x, slices.index}}, out, want};
}

Example FlattenExample(const Dims& dims, bool channels_last) {
  const char* order = channels_last ? "NHWC" : "NCHW";
  const Input x = Random(dims), row = RowOf(x, channels_last);
  return {{"Flatten", {{"FlattenType", order}, {"Mode", order}}, {x}}, row.dims, row.values};
}

Example UnflattenExample(const Dims& dims, bool channels_last) {
  const Input x = Random(dims), row = RowOf(x, channels_last);
  return {{"Unflatten",
           {{"Mode", channels_last ? "NHWC" : "NCHW"},
            {"DestinationWidth", dims.w()},
            {"DestinationHeight", dims.h()},
            {"DestinationChannels", dims.c()}},
           {row}},
          dims,
          x.values};
}

Example DropoutExample(const Dims& dims) {
  const Input x = Random(dims);
  return {{"Dropout", {{"DropoutRate", 0}, {"Seed", 0}}, {x}}, dims, x.values};
}

Example DynamicGocExample(const Dims& dims, const Dims& scale_dims, const Dims& bias_dims,
                          bool bias_only) {
  const Input x = Random(dims), scale = Random(scale_dims, 3, 4), bias = Random(bias_dims, 1, 5);
  std::vector<double> want;
  for (int64_t i = 0; i < dims.elements(); ++i) {
    const double gain = bias_only ? 1 : Repeated(scale, dims, i);
    want.push_back(x.values[i] * gain + Repeated(bias, dims, i));
  }
  if (bias_only) return {{"DynamicGOC", {{"BiasOnly", true}}, {x, bias}}, dims, want};
  return {{"DynamicGOC", Json::object(), {x, scale, bias}}, dims, want, 0.5, 1e-6};
}

double ScaledElementWiseValue(const ScaledElementWiseForm& form, double x, double z) {
  if (form.negate_first) x = -x;
  if (form.negate_second) z = -z;
  const double made = form.type == "Add"         ? x + z
                      : form.type == "Mult"      ? x * z
                      : form.type == "Max"       ? std::max(x, z)
                      : form.type == "Min"       ? std::min(x, z)
                      : form.type == "SumSquare" ? x * x + z * z
                                                 : std::numeric_limits<double>::quiet_NaN();
  const double scale = form.type == "Mult" ? 1 : form.scale;  // netplist.md
  return ToDouble(ToHalf(made)) * scale + form.bias;
}

Example ScaledElementWiseExample(const Dims& dims, const ScaledElementWiseForm& form) {
  const Input x = Random(dims, 20), z = Random(dims, 20, 6);
  Json keys = {{"Type", form.type}, {"Scale", ToHalf(form.scale).bits}};
  if (form.bias != 0) keys.update({{"Bias", form.bias}, {"BiasType", "Float32"}});
  if (form.negate_first) keys["NegateSrc1"] = true;
  if (form.negate_second) keys["NegateSrc2"] = true;
  std::vector<double> want;
  for (int64_t i = 0; i < dims.elements(); ++i) {
    want.push_back(ScaledElementWiseValue(form, x.values[i], z.values[i]));
  }
  return {{"ScaledElementWise", keys, {x, z}}, dims, want, 0.5, 1e-6};
}

// Output channel (c, i, j) at (h, w) is x[c, h + i, w + j].
Example RasterizedExample(const Dims& dims, int64_t height, int64_t width, int64_t groups) {
  const Input x = Random(dims);
  const Json keys = {{"KernelWidth", width},
                     {"KernelHeight", height},
                     {"NumGroups", groups},
                     {"RasterizerMode", "UnfoldedChannels"}};
  Dims out = dims;
  out[Axis::kC] *= height * width;
  out[Axis::kH] -= height - 1;
  out[Axis::kW] -= width - 1;
  std::vector<double> want;
  for (int64_t i = 0; i < out.elements(); ++i) {
    const int64_t w = i % out.w(), h = i / out.w() % out.h();
    const int64_t channel = i / (out.w() * out.h());  // counted over all images
    const int64_t row = channel / width % height, column = channel % width;
    const int64_t plane = channel / (height * width);
    want.push_back(x.values[(plane * dims.h() + h + row) * dims.w() + w + column]);
  }
  return {{"KernelRasterizer", keys, {x}}, out, want};
}

}  // namespace anemone
