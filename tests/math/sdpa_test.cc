#include "math/attention/sdpa.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "math/attention/hidden_keys.h"
#include "tests/math/math_testing.h"

namespace anemone::math {
namespace {

// Rounds where sdpa.h says; computes sums of scores in fp32, the rest in double.
std::vector<double> Reference(const SdpaShape& s, float scale, const std::vector<Half>& q,
                              const std::vector<Half>& k, const std::vector<Half>& v,
                              const SdpaMask& mask) {
  std::vector<double> y(s.batch * s.queries * s.heads * s.value_dim);
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t h = 0; h < s.heads; ++h) {
      for (int64_t i = 0; i < s.queries; ++i) {
        std::vector<double> scores;
        double max = -HUGE_VAL, sum = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          float dot = 0;
          for (int64_t d = 0; d < s.dim; ++d) {
            dot += ToFloat(q[((b * s.queries + i) * s.heads + h) * s.dim + d]) *
                   ToFloat(k[((b * s.keys + j) * s.heads + h) * s.dim + d]);
          }
          double score = static_cast<double>(RoundToHalf(dot)) * scale;
          if (!mask.values.empty()) {
            const int64_t mb = mask.batch == 1 ? 0 : b, mq = mask.queries == 1 ? 0 : i;
            const int64_t mh = mask.heads == 1 ? 0 : h;
            const int64_t row = (mb * mask.queries + mq) * mask.heads + mh;
            score = ToDouble(ToHalf(score + ToDouble(mask.values[row * s.keys + j])));
          }
          scores.push_back(score);
          max = std::fmax(max, score);
        }
        for (double& score : scores) {
          const double d = score - max;
          score = std::isnan(d) ? 1 : std::exp(d);
          sum += score;
        }
        for (int64_t e = 0; e < s.value_dim; ++e) {
          double out = 0;
          for (int64_t j = 0; j < s.keys; ++j) {
            out +=
                scores[j] / sum * ToDouble(v[((b * s.keys + j) * s.heads + h) * s.value_dim + e]);
          }
          y[((b * s.queries + i) * s.heads + h) * s.value_dim + e] = out;
        }
      }
    }
  }
  return y;
}

struct SdpaCase {
  std::string name;
  SdpaShape shape;
  SdpaMask mask;  // the test sets its values
  bool masked = false;
};

void PrintTo(const SdpaCase& c, std::ostream* out) { *out << c.name; }

const SdpaCase kSdpaCases[] = {
    {"one", {1, 1, 1, 1, 1, 1}, {}},
    {"small", {2, 3, 5, 7, 9, 11}, {}},
    {"square", {1, 2, 50, 50, 64, 64}, {}},
    {"decode", {2, 3, 1, 100, 32, 32}, {}},
    {"few_keys", {1, 2, 70, 3, 16, 50}, {}},
    {"keys_beyond_a_block", {1, 2, 20, 450, 512, 20}, {}},
    {"a_last_query_alone", {1, 2, 9, 200, 512, 64}, {}},
    {"one_plane_masked", {2, 3, 18, 20, 8, 8}, {{}, 1, 18, 1}, true},
    {"padding_masked", {2, 3, 18, 20, 8, 8}, {{}, 2, 1, 1}, true},
    {"heads_masked", {2, 3, 18, 20, 8, 8}, {{}, 2, 18, 3}, true},
};

class SdpaTest : public testing::TestWithParam<SdpaCase> {};

TEST_P(SdpaTest, EqualsThePlainForm) {
  const SdpaShape& s = GetParam().shape;
  SdpaMask mask = GetParam().mask;
  std::vector<Half> mask_values;
  if (GetParam().masked) {
    mask_values = Numbers(mask.batch * mask.queries * mask.heads * s.keys, 4);
    for (size_t i = 0; i < mask_values.size(); i += 3) mask_values[i].bits = 0xfc00;
    mask.values = mask_values;
  }
  const std::vector<Half> q = Numbers(s.batch * s.queries * s.heads * s.dim, 1);
  const std::vector<Half> k = Numbers(s.batch * s.keys * s.heads * s.dim, 2);
  const std::vector<Half> v = Numbers(s.batch * s.keys * s.heads * s.value_dim, 3);
  const std::vector<double> want = Reference(s, 0.3f, q, k, v, mask);
  ForEachSimdTarget([&] {
    const std::vector<Half> got =
        ExpectThreadsDoNotShow(static_cast<int64_t>(want.size()),
                               [&](absl::Span<Half> y) { Sdpa(s, 0.3f, q, k, v, mask, y); });
    // A score's fp32 sum may round to a neighboring Half, 5e-4 of its value; weights sum to 1.
    ExpectClose(got, want, 5e-4);
  });
}

// Rows of (batch, rows, heads, dim) as two tensors of (batch, heads, rows, dim).
struct TwoParts {
  TwoParts(const SdpaShape& s, int64_t dim, int64_t split, const std::vector<Half>& x)
      : rows{split, s.keys - split} {
    for (int part : {0, 1}) {
      for (int64_t b = 0; b < s.batch; ++b) {
        for (int64_t h = 0; h < s.heads; ++h) {
          for (int64_t i = 0; i < rows[part]; ++i) {
            const auto from = x.begin() + ((b * s.keys + part * split + i) * s.heads + h) * dim;
            data[part].insert(data[part].end(), from, from + dim);
          }
        }
      }
    }
    const auto at = [&](int part) {
      return SdpaRows{data[part].data(), rows[part], dim, rows[part] * dim,
                      s.heads * rows[part] * dim};
    };
    parts = {at(0), at(1)};
  }
  int64_t rows[2];
  std::vector<Half> data[2];
  SdpaParts parts;
};

TEST_P(SdpaTest, PlacesOfTheRowsDoNotShow) {
  const SdpaShape& s = GetParam().shape;
  SdpaMask mask = GetParam().mask;
  const std::vector<Half> values = Numbers(mask.batch * mask.queries * mask.heads * s.keys, 4);
  if (GetParam().masked) mask.values = values;
  const std::vector<Half> q = Numbers(s.batch * s.queries * s.heads * s.dim, 1);
  const std::vector<Half> k = Numbers(s.batch * s.keys * s.heads * s.dim, 2);
  const std::vector<Half> v = Numbers(s.batch * s.keys * s.heads * s.value_dim, 3);
  ForEachSimdTarget([&] {
    std::vector<Half> want(s.batch * s.queries * s.heads * s.value_dim), got(want.size());
    Sdpa(s, 0.3f, q, k, v, mask, absl::MakeSpan(want));
    for (const int64_t split : {int64_t{0}, int64_t{1}, s.keys / 2, s.keys - 1, s.keys}) {
      const TwoParts keys(s, s.dim, split, k), at_values(s, s.value_dim, s.keys - split, v);
      Sdpa(s, 0.3f, q, keys.parts, at_values.parts, mask, absl::MakeSpan(got));
      ExpectSame(got, want);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, SdpaTest, testing::ValuesIn(kSdpaCases),
                         [](const auto& info) { return info.param.name; });

// Each query is summed in the same order, however queries are divided into tasks.
TEST(Sdpa, ThreadsDoNotShow) {
  for (const int64_t queries : {2, 9, 17, 137, 300}) {
    const SdpaShape s{1, 3, queries, 150, 64, 48};
    const std::vector<Half> q = Numbers(queries * 3 * 64, queries), k = Numbers(150 * 3 * 64, 2);
    const std::vector<Half> v = Numbers(150 * 3 * 48, 3);
    ExpectThreadsDoNotShow(queries * 3 * 48,
                           [&](absl::Span<Half> y) { Sdpa(s, 0.2f, q, k, v, {}, y); });
  }
}

// 100 keys; a mask hides the last `hidden` of the first 80 from 20 queries, and from each of them
// those of later queries.
struct HiddenCase {
  explicit HiddenCase(int64_t hidden, bool two_places = true, uint16_t removes = 0xfbff)
      : in_first(two_places ? kOld : 100) {
    for (int64_t i = 0; i < s.queries; ++i) {
      for (int64_t key = 0; key < s.keys; ++key) {
        const bool is_hidden = key < kOld ? key >= kOld - hidden : key - kOld > i;
        mask.push_back(is_hidden ? Half{removes} : kHalfZero);
      }
    }
  }
  KeyRange Hidden() const {
    return HiddenKeys(s, 0.3f, q, Parts(k), Parts(v), {mask, 1, s.queries, 1});
  }
  // Of queries [first, last).
  std::vector<Half> Of(int64_t first, int64_t last) const {
    SdpaShape some = s;
    some.queries = last - first;
    std::vector<Half> y(some.queries * kRow);
    Sdpa(some, 0.3f, absl::MakeConstSpan(q).subspan(first * kRow, y.size()), Parts(k), Parts(v),
         {absl::MakeConstSpan(mask).subspan(first * s.keys, some.queries * s.keys), 1, some.queries,
          1},
         absl::MakeSpan(y));
    return y;
  }
  SdpaParts Parts(const std::vector<Half>& x) const {
    return {.first = {x.data(), in_first, kRow, s.dim, 0},
            .more = {x.data() + in_first * kRow, s.keys - in_first, kRow, s.dim, 0}};
  }

  static constexpr int64_t kOld = 80, kRow = 3 * 24;
  int64_t in_first;
  SdpaShape s{1, 3, 20, 100, 24, 24};
  std::vector<Half> q = Numbers(20 * kRow, 1), k = Numbers(100 * kRow, 2),
                    v = Numbers(100 * kRow, 3), mask;
};

TEST(Sdpa, HiddenKeysAreLeftOut) {
  ForEachSimdTarget([] {
    for (const uint16_t removes : {0xfbff, 0xfc00}) {
      for (const int64_t hidden : {0, 31, 32, 70, 80}) {
        for (const bool two_places : {false, true}) {
          const HiddenCase c(hidden, two_places, removes);
          EXPECT_EQ(c.Hidden().size(), hidden / 32 * 32);
          const std::vector<Half> all = c.Of(0, 20);
          for (int64_t i = 0; i < 20; i += 5) {  // of few queries none is left out
            const auto from = all.begin() + i * HiddenCase::kRow;
            ExpectSame(c.Of(i, i + 5), {from, from + 5 * HiddenCase::kRow});
          }
        }
      }
    }
  });
}

TEST(Sdpa, KeysThatMayMatterAreNotLeftOut) {
  const auto hidden_after = [](const std::function<void(HiddenCase&)>& change) {
    HiddenCase c(80);
    change(c);
    return c.Hidden().size();
  };
  EXPECT_EQ(hidden_after([](HiddenCase&) {}), 64);
  // A query sees one.
  EXPECT_EQ(hidden_after([](HiddenCase& c) { c.mask[7 * 100 + 79] = kHalfZero; }), 0);
  EXPECT_EQ(hidden_after([](HiddenCase& c) { c.mask[7 * 100 + 40] = kHalfZero; }), 32);
  // A query sees none at all: all have the same weight.
  EXPECT_EQ(hidden_after([](HiddenCase& c) { c.mask[80] = Half{0xfc00}; }), 0);
  // Scores may be as large as the mask.
  EXPECT_EQ(hidden_after([](HiddenCase& c) { c.q[5] = ToHalf(30000.0f); }), 0);
  EXPECT_EQ(hidden_after([](HiddenCase& c) { c.k[5] = c.q[5] = ToHalf(250.0f); }), 0);
  // Infinity times a weight of almost 0 is not 0.
  EXPECT_EQ(hidden_after([](HiddenCase& c) { c.k[70 * HiddenCase::kRow] = kHalfInfinity; }), 0);
  EXPECT_EQ(hidden_after([](HiddenCase& c) { c.v[70 * HiddenCase::kRow] = kHalfInfinity; }), 0);
  EXPECT_EQ(hidden_after([](HiddenCase& c) { c.v[70 * HiddenCase::kRow] = Half{0x7e00}; }), 0);
}

// If all keys of a query are masked by -infinity, they get equal weights (softmax.h), not NaN.
TEST(Sdpa, FullyMaskedRowIsTheMean) {
  const SdpaShape s{1, 1, 1, 4, 2, 1};
  const std::vector<Half> q = Numbers(2), k = Numbers(8, 2), mask(4, Half{0xfc00});
  const std::vector<Half> v = {ToHalf(1.0f), ToHalf(2.0f), ToHalf(3.0f), ToHalf(6.0f)};
  std::vector<Half> y(1);
  Sdpa(s, 1.0f, q, k, v, {mask, 1, 1, 1}, absl::MakeSpan(y));
  EXPECT_EQ(ToFloat(y[0]), 3.0f);
}

}  // namespace
}  // namespace anemone::math
