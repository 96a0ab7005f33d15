#include "tools/zoo/sha256.h"

#include <algorithm>
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

constexpr size_t kBlock = 64, kPiece = size_t{16} << 20;

class Hasher {
 public:
  // Of whole blocks.
  void Add(absl::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += kBlock) AddBlock(bytes.data() + at);
    size_ += bytes.size();
  }
  // `last` is less than a block.
  void AddEnd(absl::string_view last) {
    std::string end(last);
    end.push_back('\x80');
    end.resize(end.size() <= kBlock - 8 ? kBlock - 8 : 2 * kBlock - 8);
    const uint64_t bits = (size_ + last.size()) * 8;
    for (int shift = 56; shift >= 0; shift -= 8) end.push_back(static_cast<char>(bits >> shift));
    Add(end);
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
  uint64_t size_ = 0;
  std::array<uint32_t, 8> state_ = Fractions<8>([](long double prime) { return std::sqrt(prime); });
};

const std::array<uint32_t, kRounds> Hasher::kRound =
    Fractions<kRounds>([](long double prime) { return std::cbrt(prime); });

}  // namespace

std::optional<std::string> Sha256While(absl::string_view bytes, absl::FunctionRef<bool()> goes_on) {
  Hasher hasher;
  while (bytes.size() >= kBlock) {
    if (!goes_on()) return std::nullopt;
    const size_t size = std::min(kPiece, bytes.size() / kBlock * kBlock);
    hasher.Add(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  hasher.AddEnd(bytes);
  return hasher.Digest();
}

std::string Sha256(absl::string_view bytes) {
  return *Sha256While(bytes, [] { return true; });
}

}  // namespace anemone
