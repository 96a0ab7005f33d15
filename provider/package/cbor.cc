#include "provider/package/cbor.h"

#include <cstddef>
#include <utility>

namespace anemone {
namespace {

// Parses a document without storing it; stops if it exceeds a limit.
class Limits final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool key(string_t&) override { return ++keys_[depth_] <= kMostKeys; }
  bool start_object(size_t count) override {
    return (count == kUnknown || count <= kMostKeys) && Enter();
  }
  bool end_object() override { return Leave(); }
  bool start_array(size_t count) override {
    return (count == kUnknown || count <= kMostElements) && Enter();
  }
  bool end_array() override { return Leave(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  static constexpr size_t kUnknown = static_cast<size_t>(-1);
  // Json finds a key of an object by linear search, so the number of keys is limited.
  static constexpr size_t kMostDepth = 16, kMostKeys = 256, kMostElements = size_t{1} << 24;

  bool Enter() {
    if (++depth_ >= kMostDepth) return false;
    keys_[depth_] = 0;
    return true;
  }
  bool Leave() {
    --depth_;
    return true;
  }

  size_t depth_ = 0;
  size_t keys_[kMostDepth] = {};
};

}  // namespace

std::string WriteCbor(const Json& json) {
  std::string bytes;
  Json::to_cbor(json, bytes);
  return bytes;
}

absl::StatusOr<Json> ReadCbor(absl::string_view bytes) {
  Limits limits;
  if (Json::sax_parse(bytes, &limits, Json::input_format_t::cbor)) {
    Json json = Json::from_cbor(bytes, /*strict=*/true, /*allow_exceptions=*/false);
    if (!json.is_discarded()) return json;
  }
  return absl::DataLossError("the network is not valid CBOR");
}

}  // namespace anemone
