#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "anemone/tensor.h"
#include "base/status_macros.h"
#include "engine/formats/mil_program.h"

namespace anemone {
namespace {

constexpr size_t kMostElements = size_t{1} << 20;  // larger tensors go into a weights file

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// As strtod() in the locale "C", whatever the program's locale is. False if `word` is no number.
bool ParseNumber(absl::string_view word, double& number) {
  const bool negative = absl::ConsumePrefix(&word, "-");
  if (!negative) absl::ConsumePrefix(&word, "+");
  if (absl::StartsWith(word, "-")) return false;
  const bool is_hex = absl::ConsumePrefix(&word, "0x") || absl::ConsumePrefix(&word, "0X");
  const char* const end = word.data() + word.size();
  const auto [at, error] = absl::from_chars(
      word.data(), end, number, is_hex ? absl::chars_format::hex : absl::chars_format::general);
  if (at != end || error == std::errc::invalid_argument) return false;
  if (error == std::errc::result_out_of_range && number > 1) {
    number = std::numeric_limits<double>::infinity();
  }
  if (negative) number = -number;
  return true;
}

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<MilProgram> Program() {
    MilProgram program;
    ANEMONE_RETURN_IF_ERROR(Take("program"));
    ANEMONE_RETURN_IF_ERROR(Take("("));
    ANEMONE_ASSIGN_OR_RETURN(program.version, Until(')'));
    ANEMONE_RETURN_IF_ERROR(Take(")"));
    if (TryTake("[")) ANEMONE_RETURN_IF_ERROR(BuildInfo(program));
    ANEMONE_RETURN_IF_ERROR(Take("{"));
    ANEMONE_RETURN_IF_ERROR(Take("func"));
    ANEMONE_ASSIGN_OR_RETURN(program.function, Word());
    ANEMONE_RETURN_IF_ERROR(Take("<"));
    ANEMONE_ASSIGN_OR_RETURN(program.opset, Word());
    ANEMONE_RETURN_IF_ERROR(Take(">"));
    ANEMONE_RETURN_IF_ERROR(Take("("));
    while (!TryTake(")")) {
      if (!program.inputs.empty()) ANEMONE_RETURN_IF_ERROR(Take(","));
      ANEMONE_ASSIGN_OR_RETURN(MilOutput input, Output());
      ANEMONE_RETURN_IF_ERROR(Define(input.name));
      program.inputs.push_back(std::move(input));
    }
    ANEMONE_RETURN_IF_ERROR(Take("{"));
    while (!TryTake("}")) {
      ANEMONE_ASSIGN_OR_RETURN(MilStatement statement, Statement());
      program.statements.push_back(std::move(statement));
    }
    ANEMONE_RETURN_IF_ERROR(Take("->"));
    ANEMONE_RETURN_IF_ERROR(Take("("));
    ANEMONE_ASSIGN_OR_RETURN(program.outputs, Names());
    ANEMONE_RETURN_IF_ERROR(Take(";"));
    ANEMONE_RETURN_IF_ERROR(Take("}"));
    Skip();
    if (at_ != text_.size()) return Wrong("want nothing after the program");
    return program;
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    size_t line = 1, column = 1;
    for (char c : text_.substr(0, at_)) {
      line += c == '\n';
      column = c == '\n' ? 1 : column + 1;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("MIL, line ", line, ", column ", column, ": ", what));
  }

  void Skip() {
    while (at_ < text_.size()) {
      if (absl::ascii_isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else if (text_.substr(at_, 2) == "//") {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }

  bool TryTake(absl::string_view token) {
    Skip();
    if (text_.substr(at_, token.size()) != token) return false;
    const size_t end = at_ + token.size();
    if (IsWord(token.back()) && end < text_.size() && IsWord(text_[end])) return false;
    at_ = end;
    return true;
  }

  absl::Status Take(absl::string_view token) {
    return TryTake(token) ? absl::OkStatus() : Wrong(absl::StrCat("want '", token, "'"));
  }

  absl::StatusOr<std::string> Word() {
    Skip();
    const size_t begin = at_;
    while (at_ < text_.size() && IsWord(text_[at_])) ++at_;
    if (at_ == begin) return Wrong("want a name");
    return std::string(text_.substr(begin, at_ - begin));
  }

  absl::StatusOr<std::string> Until(char end) {
    Skip();
    const size_t found = text_.find(end, at_);
    if (found == absl::string_view::npos) {
      return Wrong(absl::StrCat("want '", std::string(1, end), "'"));
    }
    std::string taken(text_.substr(at_, found - at_));
    at_ = found;
    return taken;
  }

  absl::StatusOr<std::string> Quoted() {
    ANEMONE_RETURN_IF_ERROR(Take("\""));
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) return Wrong("a string is not terminated");
    std::string raw(text_.substr(begin, at_++ - begin)), text;
    if (!absl::CUnescape(raw, &text)) return Wrong("a string has an invalid escape");
    return text;
  }

  absl::StatusOr<int64_t> Integer() {
    Skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (IsWord(text_[at_]) || text_[at_] == '-')) ++at_;
    int64_t value = 0;
    if (absl::SimpleAtoi(text_.substr(begin, at_ - begin), &value)) return value;
    return Wrong("want an integer");
  }

  absl::Status BuildInfo(MilProgram& program) {
    for (const char* token :
         {"buildInfo", "=", "dict", "<", "string", ",", "string", ">", "(", "{"}) {
      ANEMONE_RETURN_IF_ERROR(Take(token));
    }
    while (!TryTake("}")) {
      if (!program.build_info.empty()) ANEMONE_RETURN_IF_ERROR(Take(","));
      ANEMONE_RETURN_IF_ERROR(Take("{"));
      ANEMONE_ASSIGN_OR_RETURN(std::string key, Quoted());
      ANEMONE_RETURN_IF_ERROR(Take(","));
      ANEMONE_ASSIGN_OR_RETURN(std::string value, Quoted());
      ANEMONE_RETURN_IF_ERROR(Take("}"));
      program.build_info.emplace_back(std::move(key), std::move(value));
    }
    ANEMONE_RETURN_IF_ERROR(Take(")"));
    return Take("]");
  }

  absl::StatusOr<MilType> Type() {
    MilType type;
    if (!TryTake("tensor")) {
      ANEMONE_ASSIGN_OR_RETURN(type.dtype, Word());
      return type;
    }
    ANEMONE_RETURN_IF_ERROR(Take("<"));
    ANEMONE_ASSIGN_OR_RETURN(type.dtype, Word());
    ANEMONE_RETURN_IF_ERROR(Take(","));
    ANEMONE_RETURN_IF_ERROR(Take("["));
    type.shape.emplace();
    while (!TryTake("]")) {
      if (!type.shape->empty()) ANEMONE_RETURN_IF_ERROR(Take(","));
      ANEMONE_ASSIGN_OR_RETURN(int64_t extent, Integer());
      type.shape->push_back(extent);
    }
    if (!ElementCount(*type.shape).ok()) return Wrong("an invalid shape");
    ANEMONE_RETURN_IF_ERROR(Take(">"));
    return type;
  }

  absl::StatusOr<MilOutput> Output() {
    MilOutput output;
    ANEMONE_ASSIGN_OR_RETURN(output.type, Type());
    ANEMONE_ASSIGN_OR_RETURN(output.name, Word());
    return output;
  }

  absl::Status Define(const std::string& name) {
    if (defined_.insert(name).second) return absl::OkStatus();
    return Wrong(absl::StrCat("'", name, "' is defined twice"));
  }

  // Defined names, up to the closing bracket; the opening one has been read.
  absl::StatusOr<std::vector<std::string>> Names() {
    std::vector<std::string> names;
    while (!TryTake(")")) {
      if (!names.empty()) ANEMONE_RETURN_IF_ERROR(Take(","));
      ANEMONE_ASSIGN_OR_RETURN(std::string name, Defined());
      names.push_back(std::move(name));
    }
    return names;
  }

  absl::StatusOr<std::string> Defined() {
    ANEMONE_ASSIGN_OR_RETURN(std::string name, Word());
    if (defined_.contains(name)) return name;
    return Wrong(absl::StrCat("'", name, "' is not defined here"));
  }

  absl::StatusOr<Json> Number() {
    Skip();
    if (at_ < text_.size() && text_[at_] == '"') {
      ANEMONE_ASSIGN_OR_RETURN(std::string text, Quoted());
      return Json(std::move(text));
    }
    const size_t begin = at_;
    while (at_ < text_.size() && (IsWord(text_[at_]) || std::strchr("+-.", text_[at_]))) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    if (word == "true" || word == "false") return Json(word == "true");
    int64_t integer = 0;
    if (absl::SimpleAtoi(word, &integer)) return Json(integer);
    double number = 0;
    if (!ParseNumber(word, number)) return Wrong("want a number, true, false or a string");
    return Json(number);
  }

  absl::StatusOr<MilBlob> Blob() {
    MilBlob blob;
    for (const char* token : {"(", "path", "=", "string", "("})
      ANEMONE_RETURN_IF_ERROR(Take(token));
    ANEMONE_ASSIGN_OR_RETURN(blob.path, Quoted());
    for (const char* token : {")", ",", "offset", "=", "uint64", "("}) {
      ANEMONE_RETURN_IF_ERROR(Take(token));
    }
    ANEMONE_ASSIGN_OR_RETURN(blob.offset, Integer());
    if (blob.offset < 0) return Wrong("want an offset of at least 0");
    ANEMONE_RETURN_IF_ERROR(Take(")"));
    ANEMONE_RETURN_IF_ERROR(Take(")"));
    return blob;
  }

  absl::StatusOr<MilValue> Value() {
    MilValue value;
    ANEMONE_ASSIGN_OR_RETURN(value.type, Type());
    ANEMONE_RETURN_IF_ERROR(Take("("));
    if (TryTake("BLOBFILE")) {
      ANEMONE_ASSIGN_OR_RETURN(value.blob, Blob());
    } else if (!value.type.shape) {
      ANEMONE_ASSIGN_OR_RETURN(value.data, Number());
    } else {
      ANEMONE_RETURN_IF_ERROR(Elements(value));
    }
    ANEMONE_RETURN_IF_ERROR(Take(")"));
    return value;
  }

  // "[1, 2]"; a tensor of one element may be written as a number without brackets.
  absl::Status Elements(MilValue& value) {
    value.data = Json::array();
    if (TryTake("[")) {
      while (!TryTake("]")) {
        if (!value.data.empty()) ANEMONE_RETURN_IF_ERROR(Take(","));
        if (value.data.size() == kMostElements) return Wrong("too many elements");
        ANEMONE_ASSIGN_OR_RETURN(Json number, Number());
        value.data.push_back(std::move(number));
      }
    } else {
      ANEMONE_ASSIGN_OR_RETURN(Json number, Number());
      value.data.push_back(std::move(number));
    }
    ANEMONE_ASSIGN_OR_RETURN(int64_t count, ElementCount(*value.type.shape));
    if (static_cast<int64_t>(value.data.size()) == count) return absl::OkStatus();
    return Wrong(absl::StrCat("want ", count, " elements"));
  }

  absl::StatusOr<MilStatement> Statement() {
    MilStatement statement;
    do {
      ANEMONE_ASSIGN_OR_RETURN(MilOutput output, Output());
      statement.outputs.push_back(std::move(output));
    } while (TryTake(","));
    ANEMONE_RETURN_IF_ERROR(Take("="));
    ANEMONE_ASSIGN_OR_RETURN(statement.op, Word());
    ANEMONE_RETURN_IF_ERROR(Take("("));
    while (!TryTake(")")) {
      if (!statement.arguments.empty()) ANEMONE_RETURN_IF_ERROR(Take(","));
      ANEMONE_ASSIGN_OR_RETURN(MilArgument argument, Argument());
      statement.arguments.push_back(std::move(argument));
    }
    if (TryTake("[")) {
      while (!TryTake("]")) {
        if (!statement.attributes.empty()) ANEMONE_RETURN_IF_ERROR(Take(","));
        ANEMONE_ASSIGN_OR_RETURN(std::string name, Word());
        if (statement.attribute(name) != nullptr) {
          return Wrong(absl::StrCat("attribute '", name, "' is given twice"));
        }
        ANEMONE_RETURN_IF_ERROR(Take("="));
        ANEMONE_ASSIGN_OR_RETURN(MilValue value, Value());
        statement.attributes.emplace_back(std::move(name), std::move(value));
      }
    }
    ANEMONE_RETURN_IF_ERROR(Take(";"));
    // The outputs are defined only now: a statement must not read its own output.
    for (const MilOutput& output : statement.outputs) {
      ANEMONE_RETURN_IF_ERROR(Define(output.name));
    }
    return statement;
  }

  absl::StatusOr<MilArgument> Argument() {
    MilArgument argument;
    ANEMONE_ASSIGN_OR_RETURN(argument.name, Word());
    ANEMONE_RETURN_IF_ERROR(Take("="));
    if (TryTake("(")) {
      argument.is_list = true;
      ANEMONE_ASSIGN_OR_RETURN(argument.values, Names());
    } else {
      ANEMONE_ASSIGN_OR_RETURN(std::string name, Defined());
      argument.values.push_back(std::move(name));
    }
    return argument;
  }

  absl::string_view text_;
  size_t at_ = 0;
  std::set<std::string> defined_;
};

}  // namespace

absl::StatusOr<MilProgram> ReadMil(absl::string_view text) { return Parser(text).Program(); }

}  // namespace anemone
