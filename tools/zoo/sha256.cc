#include "tools/zoo/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "absl/strings/escaping.h"

namespace anemone {
namespace {

constexpr int kRounds = 64;

// The first 32 bits of the fractional parts of a root of the first primes: the constants of the
// standard. long double has at least the 53 bits of a double, which are enough for both roots.
template <size_t kCount, class Root>
std::array<uint32_t, kCount> Fractions(const Root& root) {
  std::array<uint32_t, kCount> fractions;
  size_t count = 0;
  for (int n = 2; count < kCount; ++n) {
    bool is_prime = true;
    for (int d = 2; d * d <= n; ++d) is_prime &= n % d != 0;
    if (!is_prime) continue;
    const long double value = root(static_cast<long double>(n));
    fractions[count++] = static_cast<uint32_t>((value - std::floor(value)) * 4294967296.0L);
  }
  return fractions;
}

class Hasher {
 public:
  void Add(absl::string_view bytes) {
    for (size_t at = 0; at + 64 <= bytes.size(); at += 64) AddBlock(bytes.data() + at);
    std::string last(bytes.substr(bytes.size() / 64 * 64));
    last.push_back('\x80');
    last.resize(last.size() <= 56 ? 56 : 120);
    const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
    for (int shift = 56; shift >= 0; shift -= 8) last.push_back(static_cast<char>(bits >> shift));
    for (size_t at = 0; at < last.size(); at += 64) AddBlock(last.data() + at);
  }
  std::string Digest() const {
    std::string digest;
    for (uint32_t word : state_) {
      for (int shift = 24; shift >= 0; shift -= 8)
        digest.push_back(static_cast<char>(word >> shift));
    }
    return absl::BytesToHexString(digest);
  }

 private:
  void AddBlock(const char* block) {
    std::array<uint32_t, kRounds> w;
    for (int i = 0; i < 16; ++i) {
      w[i] = 0;
      for (int j = 0; j < 4; ++j) w[i] = w[i] << 8 | static_cast<unsigned char>(block[4 * i + j]);
    }
    for (int i = 16; i < kRounds; ++i) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (int i = 0; i < kRounds; ++i) {
      const uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                          ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      const uint32_t t2 =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < added.size(); ++i) state_[i] += added[i];
  }

  static const std::array<uint32_t, kRounds> kRound;
  std::array<uint32_t, 8> state_ = Fractions<8>([](long double prime) { return std::sqrt(prime); });
};

const std::array<uint32_t, kRounds> Hasher::kRound =
    Fractions<kRounds>([](long double prime) { return std::cbrt(prime); });

}  // namespace

std::string Sha256(absl::string_view bytes) {
  Hasher hasher;
  hasher.Add(bytes);
  return hasher.Digest();
}

}  // namespace anemone
