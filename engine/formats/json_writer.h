// engine/formats/json_writer.h: writes JSON as text, piece by piece, for documents that are too
// large to be built as Json first.
//
//   std::string text;
//   JsonWriter w(text);
//   w.BeginObject();
//   w.Key("nodes").Number(412);
//   w.Key("names").BeginArray();
//   w.Text("conv1");
//   w.EndArray();
//   w.EndObject();  // {"nodes":412,"names":["conv1"]}
//
// The text is that of JsonText() (partitioner/plan_json.h) for the same document.
#ifndef ANEMONE_ENGINE_FORMATS_JSON_WRITER_H_
#define ANEMONE_ENGINE_FORMATS_JSON_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace anemone {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginArray() { Begin('['); }
  void EndArray() { End(']'); }
  // `key` needs no escapes.
  JsonWriter& Key(absl::string_view key);

  // Bytes that are not UTF-8 are replaced.
  void Text(absl::string_view text);
  void TextOrNull(absl::string_view text);  // null if it is empty
  void Number(int64_t number);
  void Number(int number) { Number(int64_t{number}); }
  void Number(double number);  // null if it is not finite
  template <class N>
  void NumberOrNull(const std::optional<N>& number) {
    if (number) {
      Number(*number);
    } else {
      Null();
    }
  }
  void Null() { Raw("null"); }
  void Raw(absl::string_view json);

 private:
  void Begin(char bracket);
  void End(char bracket);
  void Separate();
  void Quote(absl::string_view text);

  std::string& out_;
  bool needs_comma_ = false;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_JSON_WRITER_H_
