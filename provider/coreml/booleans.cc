#include "provider/coreml/booleans.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

constexpr const char* kComparisons[] = {"equal",      "not_equal", "less",
                                        "less_equal", "greater",   "greater_equal"};

bool Compares(const MilStatement& statement) {
  return std::find(std::begin(kComparisons), std::end(kComparisons), statement.op) !=
         std::end(kComparisons);
}

class Caster {
 public:
  explicit Caster(MilProgram& program) : program_(program) {
    for (const MilOutput& input : program.inputs) taken_.insert(input.name);
    for (const MilStatement& statement : program.statements) {
      for (const MilOutput& output : statement.outputs) taken_.insert(output.name);
    }
  }

  void Run() {
    std::vector<MilStatement> statements;
    statements.swap(program_.statements);
    for (MilStatement& statement : statements) {
      const bool is_number =
          statement.outputs.size() == 1 && statement.outputs[0].type.dtype == "fp16";
      if (is_number && statement.op == "logical_not") {
        statement.op = "equal";
        statement.arguments.push_back({"y", {Constant({"fp16", std::nullopt}, 0.0)}});
      }
      const bool casts = is_number && Compares(statement);
      const MilOutput number = statement.outputs[0];
      if (casts) {
        statement.outputs[0] = {{"bool", number.type.shape}, Take(number.name)};
        Name(statement);
      }
      const std::string result = statement.outputs[0].name;
      program_.statements.push_back(std::move(statement));
      if (casts) AddCast(result, number);
    }
  }

 private:
  std::string Take(const std::string& wish) {
    std::string name = absl::StrCat(wish, "_as_bool");
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  static void Name(MilStatement& statement) {
    statement.attributes = {
        {"name", {{"string", std::nullopt}, statement.outputs[0].name, std::nullopt}}};
  }

  std::string Constant(MilType type, Json value) {
    std::string name = Take("const");
    MilStatement made{.outputs = {{type, name}}, .op = "const"};
    Name(made);
    made.attributes.emplace_back("val", MilValue{std::move(type), std::move(value), std::nullopt});
    program_.statements.push_back(std::move(made));
    return name;
  }

  void AddCast(const std::string& from, const MilOutput& to) {
    const std::string dtype = Constant({"string", std::nullopt}, "fp16");
    MilStatement cast{
        .outputs = {to}, .op = "cast", .arguments = {{"x", {from}}, {"dtype", {dtype}}}};
    Name(cast);
    program_.statements.push_back(std::move(cast));
  }

  MilProgram& program_;
  std::set<std::string> taken_;
};

}  // namespace

void CastComparisons(MilProgram& program) { Caster(program).Run(); }

}  // namespace anemone
