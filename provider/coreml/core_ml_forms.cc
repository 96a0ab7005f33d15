#include "provider/coreml/core_ml_forms.h"

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

class Rewriter {
 public:
  explicit Rewriter(MilProgram& program) : program_(program) {
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
      if (is_number && (Compares(statement) || statement.op == "logical_not")) {
        Compare(statement);
      } else if (statement.op == "l2_norm") {
        Normalize(statement);
      } else {
        program_.statements.push_back(std::move(statement));
      }
    }
  }

 private:
  std::string Take(const std::string& wish) {
    std::string name = wish;
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  void Add(MilStatement statement) {
    statement.attributes.insert(
        statement.attributes.begin(),
        {"name", {{"string", std::nullopt}, statement.outputs[0].name, std::nullopt}});
    program_.statements.push_back(std::move(statement));
  }

  std::string Constant(const char* dtype, Json value) {
    const MilType type{dtype, std::nullopt};
    std::string name = Take("const_of_form");
    MilStatement made{.outputs = {{type, name}}, .op = "const"};
    made.attributes.emplace_back("val", MilValue{type, std::move(value), std::nullopt});
    Add(std::move(made));
    return name;
  }

  void Compare(const MilStatement& statement) {
    std::vector<MilArgument> arguments = statement.arguments;
    const bool is_not = statement.op == "logical_not";
    if (is_not) arguments.push_back({"y", {Constant("fp16", 0.0)}});
    const MilOutput& number = statement.outputs[0];
    const std::string truth = Take(absl::StrCat(number.name, "_as_bool"));
    Add({.outputs = {{{"bool", number.type.shape}, truth}},
         .op = is_not ? "equal" : statement.op,
         .arguments = std::move(arguments)});
    Add({.outputs = {number},
         .op = "cast",
         .arguments = {{"x", {truth}}, {"dtype", {Constant("string", "fp16")}}}});
  }

  // x / sqrt(sum of squares + epsilon).
  void Normalize(const MilStatement& statement) {
    auto of = [&](const char* name) {
      return std::find_if(statement.arguments.begin(), statement.arguments.end(),
                          [&](const MilArgument& argument) { return argument.name == name; });
    };
    const MilOutput& result = statement.outputs[0];
    MilType reduced = result.type;
    for (const MilStatement& made : program_.statements) {  // the constant axes
      if (made.outputs[0].name != of("axes")->values[0]) continue;
      for (const Json& axis : made.attribute("val")->data) {
        (*reduced.shape)[axis.get<int64_t>()] = 1;
      }
    }
    const std::string sum = Take(absl::StrCat(result.name, "_squares"));
    const std::string root = Take(absl::StrCat(result.name, "_inverse"));
    const std::string& x = of("x")->values[0];
    Add({.outputs = {{reduced, sum}},
         .op = "reduce_sum_square",
         .arguments = {{"x", {x}}, *of("axes"), {"keep_dims", {Constant("bool", true)}}}});
    Add({.outputs = {{reduced, root}}, .op = "rsqrt", .arguments = {{"x", {sum}}, *of("epsilon")}});
    Add({.outputs = {result}, .op = "mul", .arguments = {{"x", {x}}, {"y", {root}}}});
  }

  MilProgram& program_;
  std::set<std::string> taken_;
};

}  // namespace

void GiveCoreMlForms(MilProgram& program) { Rewriter(program).Run(); }

}  // namespace anemone
