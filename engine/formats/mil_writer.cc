#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/formats/mil_program.h"

namespace anemone {
namespace {

std::string TypeText(const MilType& type) {
  if (!type.shape) return type.dtype;
  return absl::StrCat("tensor<", type.dtype, ", [", absl::StrJoin(*type.shape, ", "), "]>");
}

std::string StringText(absl::string_view text) {
  return absl::StrCat("string(\"", absl::CEscape(text), "\")");
}

// Floats are written in hexadecimal, so that they are not rounded.
std::string NumberText(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_string()) return absl::StrCat("\"", absl::CEscape(value.get<std::string>()), "\"");
  if (!value.is_number_float()) return absl::StrCat(value.get<int64_t>());
  const double number = value.get<double>();
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  return absl::StrFormat("%a", number);
}

std::string ValueText(const MilValue& value) {
  if (value.blob) {
    return absl::StrCat(TypeText(value.type), "(BLOBFILE(path = ", StringText(value.blob->path),
                        ", offset = uint64(", value.blob->offset, ")))");
  }
  if (!value.type.shape) return absl::StrCat(value.type.dtype, "(", NumberText(value.data), ")");
  std::vector<std::string> elements;
  for (const Json& element : value.data) elements.push_back(NumberText(element));
  return absl::StrCat(TypeText(value.type), "([", absl::StrJoin(elements, ", "), "])");
}

std::string OutputText(const MilOutput& output) {
  return absl::StrCat(TypeText(output.type), " ", output.name);
}

template <class Items, class Text>
std::string Listed(const Items& items, Text text) {
  std::vector<std::string> texts;
  texts.reserve(items.size());
  for (const auto& item : items) texts.push_back(text(item));
  return absl::StrJoin(texts, ", ");
}

std::string StatementText(const MilStatement& statement) {
  auto argument = [](const MilArgument& a) {
    const std::string values = absl::StrJoin(a.values, ", ");
    return absl::StrCat(a.name, " = ", a.is_list ? absl::StrCat("(", values, ")") : values);
  };
  auto attribute = [](const std::pair<std::string, MilValue>& a) {
    return absl::StrCat(a.first, " = ", ValueText(a.second));
  };
  return absl::StrCat(Listed(statement.outputs, OutputText), " = ", statement.op, "(",
                      Listed(statement.arguments, argument), ")[",
                      Listed(statement.attributes, attribute), "];\n");
}

}  // namespace

const MilValue* MilStatement::attribute(absl::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string WriteMil(const MilProgram& program) {
  std::string text = absl::StrCat("program(", program.version, ")\n");
  if (!program.build_info.empty()) {
    absl::StrAppend(&text, "[buildInfo = dict<string, string>({",
                    Listed(program.build_info,
                           [](const auto& entry) {
                             return absl::StrCat("{\"", absl::CEscape(entry.first), "\", \"",
                                                 absl::CEscape(entry.second), "\"}");
                           }),
                    "})]\n");
  }
  absl::StrAppend(&text, "{\n    func ", program.function, "<", program.opset, ">(",
                  Listed(program.inputs, OutputText), ") {\n");
  for (const MilStatement& statement : program.statements) {
    absl::StrAppend(&text, "            ", StatementText(statement));
  }
  absl::StrAppend(&text, "        } -> (", absl::StrJoin(program.outputs, ", "), ");\n}\n");
  return text;
}

}  // namespace anemone
