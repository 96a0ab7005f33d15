#include "engine/formats/json_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/formats/json.h"

namespace anemone {

void JsonWriter::Separate() {
  if (needs_comma_) out_ += ',';
  needs_comma_ = true;
}

void JsonWriter::Quote(absl::string_view text) {
  out_ += '"';
  out_.append(text.data(), text.size());
  out_ += '"';
}

void JsonWriter::Begin(char bracket) {
  Separate();
  out_ += bracket;
  needs_comma_ = false;
}

void JsonWriter::End(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
}

JsonWriter& JsonWriter::Key(absl::string_view key) {
  Separate();
  Quote(key);
  out_ += ':';
  needs_comma_ = false;
  return *this;
}

void JsonWriter::Text(absl::string_view text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c < '\x7f' && c != '"' && c != '\\';
  });
  if (is_plain) {
    Separate();
    Quote(text);
  } else {
    Raw(Json(std::string(text))
            .dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
  }
}

void JsonWriter::TextOrNull(absl::string_view text) {
  if (text.empty()) {
    Null();
  } else {
    Text(text);
  }
}

void JsonWriter::Number(int64_t number) {
  Separate();
  absl::StrAppend(&out_, number);
}

void JsonWriter::Number(double number) { Raw(Json(number).dump()); }

void JsonWriter::Raw(absl::string_view json) {
  Separate();
  out_.append(json.data(), json.size());
}

}  // namespace anemone
