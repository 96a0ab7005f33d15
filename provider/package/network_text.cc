#include "provider/package/network_text.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

// An object finds a key by comparing it with all keys before it.
constexpr size_t kMostDepth = 16, kMostKeys = 256;

// Builds the document while it is parsed, so that parsing stops at the first limit passed.
class NetworkReader final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return Fail("has binary values"); }  // which no text has
  bool key(string_t& name) override {
    Json& object = *open_.back();
    member_ = &object[std::move(name)];
    return object.size() <= kMostKeys ||
           Fail(absl::StrCat("has an object of more than ", kMostKeys, " keys"));
  }
  bool start_object(size_t) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return Fail(absl::StrCat("is not JSON at byte ", position));
  }

  Json Take() { return std::move(root_); }
  const std::string& failure() const { return failure_; }

 private:
  // Where the value is now.
  Json* Place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) return &open_.back()->emplace_back(std::move(value));
    return &(*member_ = std::move(value));
  }
  bool Put(Json value) {
    Place(std::move(value));
    return true;
  }
  bool Open(Json empty) {
    if (open_.size() == kMostDepth) {
      return Fail(absl::StrCat("is nested deeper than ", kMostDepth));
    }
    open_.push_back(Place(std::move(empty)));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }
  bool Fail(std::string why) {
    failure_ = std::move(why);
    return false;
  }

  Json root_;
  std::vector<Json*>
      open_;                // arrays and objects, outermost first; none grows while one inside does
  Json* member_ = nullptr;  // of the innermost object: where its next value goes
  std::string failure_;
};

}  // namespace

std::string WriteNetworkText(const Json& network) {
  return network.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

absl::StatusOr<Json> ReadNetworkText(absl::string_view text) {
  NetworkReader reader;
  if (Json::sax_parse(text.begin(), text.end(), &reader)) return reader.Take();
  return absl::DataLossError(absl::StrCat("its network ", reader.failure()));
}

}  // namespace anemone
