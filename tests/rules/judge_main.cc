// judge: the compiler's side of the drift test, in a process of its own. Each line of stdin is
// {"target": "h13", "route": "netplist", "network": {...}}, or with a property list's text at
// "netplist"; for each a verdict goes to stdout.
//
//   judge [--broken TYPE]
//
// --broken accepts whatever the validator of that unit type refuses: the drift test must notice.
#include <iostream>
#include <string>

#include "kernels/lowering.h"
#include "tests/rules/judge.h"

namespace anemone {
namespace {

const UnitKind* broken = nullptr;

const UnitKind* Find(absl::string_view type) {
  return broken != nullptr && type == broken->type ? broken : FindUnitKind(type);
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--broken") {
    const UnitKind* kind = FindUnitKind(argv[2]);
    if (kind == nullptr) return 2;
    auto* accepting = new UnitKind(*kind);
    accepting->judge.validate = nullptr;
    broken = accepting;
  }
  for (std::string line; std::getline(std::cin, line);) {
    Json asked = Json::parse(line);
    const Target& target = **FindTarget(asked["target"].get<std::string>());
    Route route = asked["route"] == "mil" ? Route::kMil : Route::kNetplist;
    std::cout << Judged(asked.contains("netplist") ? asked["netplist"] : asked["network"], Find,
                        target, route)
                     .dump()
              << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace anemone

int main(int argc, char** argv) { return anemone::Main(argc, argv); }
