// judge: the second process of the drift test. Each line of stdin is
// {"target": "h13", "route": "netplist", "network": {...}}, or has the text of a property list at
// "netplist" instead of "network". For each line a verdict is written to stdout.
//
//   judge [--broken TYPE]
//
// --broken accepts everything that the validator of that unit type refuses. The drift test must
// notice.
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
    Route route = *ParseRoute(asked.value("route", "netplist"));
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
