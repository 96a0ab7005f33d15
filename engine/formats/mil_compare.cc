#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/formats/mil_program.h"

namespace anemone {
namespace {

absl::Status Differs(absl::string_view where) {
  return absl::FailedPreconditionError(absl::StrCat("the programs differ: ", where));
}

// Maps names of the first program to names of the second.
class Names {
 public:
  // Pairs two names. False if one of them is already paired with another name.
  bool Match(const std::string& a, const std::string& b) {
    return to_b_.emplace(a, b).first->second == b && to_a_.emplace(b, a).first->second == a;
  }

 private:
  std::map<std::string, std::string> to_b_, to_a_;
};

absl::Status ComparePorts(const std::vector<MilOutput>& a, const std::vector<MilOutput>& b,
                          Names& names) {
  if (a.size() != b.size()) return Differs("number of inputs");
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name || a[i].type != b[i].type) {
      return Differs(absl::StrCat("input ", i + 1, ", '", a[i].name, "'"));
    }
    names.Match(a[i].name, b[i].name);
  }
  return absl::OkStatus();
}

bool SameArguments(const MilStatement& a, const MilStatement& b, Names& names) {
  if (a.arguments.size() != b.arguments.size()) return false;
  for (size_t i = 0; i < a.arguments.size(); ++i) {
    const MilArgument &x = a.arguments[i], &y = b.arguments[i];
    if (x.name != y.name || x.is_list != y.is_list || x.values.size() != y.values.size()) {
      return false;
    }
    for (size_t k = 0; k < x.values.size(); ++k) {
      if (!names.Match(x.values[k], y.values[k])) return false;
    }
  }
  return true;
}

bool SameOutputs(const MilStatement& a, const MilStatement& b, Names& names) {
  if (a.outputs.size() != b.outputs.size()) return false;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (a.outputs[i].type != b.outputs[i].type) return false;
    if (!names.Match(a.outputs[i].name, b.outputs[i].name)) return false;
  }
  return true;
}

// Compares all attributes except `name`, which is for display only.
bool SameAttributes(const MilStatement& a, const MilStatement& b) {
  for (const auto& [key, value] : a.attributes) {
    if (key == "name") continue;
    const MilValue* other = b.attribute(key);
    if (other == nullptr || *other != value) return false;
  }
  return a.attributes.size() == b.attributes.size();
}

}  // namespace

absl::Status CompareMil(const MilProgram& a, const MilProgram& b) {
  if (a.version != b.version || a.opset != b.opset) return Differs("version or opset");
  Names names;
  ANEMONE_RETURN_IF_ERROR(ComparePorts(a.inputs, b.inputs, names));
  if (a.statements.size() != b.statements.size()) return Differs("number of statements");
  for (size_t i = 0; i < a.statements.size(); ++i) {
    const MilStatement &x = a.statements[i], &y = b.statements[i];
    if (x.op != y.op || !SameArguments(x, y, names) || !SameOutputs(x, y, names) ||
        !SameAttributes(x, y)) {
      return Differs(absl::StrCat("statement ", i + 1, ", ", x.op, " '",
                                  x.outputs.empty() ? "" : x.outputs[0].name, "'"));
    }
  }
  return a.outputs == b.outputs ? absl::OkStatus() : Differs("outputs");
}

}  // namespace anemone
