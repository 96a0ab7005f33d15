// drift: checks random units and networks for all targets, here as the planner does, and in another
// process from their written form (judge_main.cc). The answers must be the same every time.
//
//   drift JUDGE PROBES.json [--units N] [--networks N] [--seed N]
//
// The units are those of the probes with random changes to dims, keys, operands and formats.
// Networks that are accepted here are written again from memory. So a key that is lost, or a
// validator that only one side calls, shows as a difference. Then the validator of every kind that
// refused something is disabled in the other process, and the test must notice.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/mil.h"
#include "tests/rules/judge.h"

namespace anemone {
namespace {

constexpr int64_t kExtents[] = {1,    2,     3,     4,     5,     7,     8,    13,   16,
                                17,   24,    64,    191,   2048,  2049,  4096, 4097, 8192,
                                8193, 16384, 16385, 32768, 32769, 65536, 65537};
constexpr int64_t kNumbers[] = {-1, 0,  1,  2,  3,  4,  5,  6,    8,   9,
                                13, 14, 16, 17, 29, 30, 31, 1024, 1025};

using Random = std::mt19937_64;

template <class T>
const T& OneOf(const T* values, size_t count, Random& random) {
  return values[random() % count];
}

// Rules that are checked for every unit, in addition to the validator of its kind.
bool IsOfAnyUnit(const std::string& rule, const UnitKind& kind) {
  static const std::set<std::string> rules = {
      "max-extent",    "max-width",         "max-height",   "max-depth",   "max-channels",
      "max-dimension", "max-dimension-a13", "bottom-count", "unit-family", "unit-shape"};
  return rules.contains(rule) || (kind.bottoms.rule != nullptr && rule == kind.bottoms.rule->id);
}

// The written networks of all probes that some target accepts.
std::vector<Json> Seeds(const std::string& path) {
  std::ifstream file(path);
  Json probes = Json::parse(file)["compile"];
  std::vector<Json> seeds;
  for (const Json& probe : probes) {
    MilCall call;
    if (!ReadMilCall(probe, call).ok()) continue;
    Route route = *ParseRoute(probe.value("route", "netplist"));
    for (const char* target : {"h13", "h16", "h18"}) {
      auto answer = JudgeOperation(call, **FindTarget(target), route, /*rewrites=*/true);
      if (!answer.ok() || answer->network.units.empty()) continue;
      seeds.push_back(WriteNetwork(answer->network));
      break;
    }
  }
  return seeds;
}

void ChangeDims(Json& dims, Random& random) {
  int64_t axis = static_cast<int64_t>(random() % dims.size());
  dims[axis] = OneOf(kExtents, std::size(kExtents), random);
}

// The values that occur at each key.
using Words = std::map<std::string, std::vector<Json>>;

void CollectWords(const Json& params, Words& words) {
  for (const auto& [key, value] : params.items()) words[key].push_back(value);
}

void ChangeParam(Json& params, const Words& words, Random& random) {
  if (params.empty()) return;
  auto at = params.begin();
  std::advance(at, random() % params.size());
  auto known = words.find(at.key());
  if (at.value().is_number_integer() && random() % 3 != 0) {
    at.value() = OneOf(kNumbers, std::size(kNumbers), random);
  } else if (at.value().is_boolean()) {
    at.value() = !at.value().get<bool>();
  } else if (random() % 8 == 0) {
    params.erase(at);
  } else if (known != words.end()) {
    at.value() = OneOf(known->second.data(), known->second.size(), random);
  }
}

Json Changed(Json network, const Words& words, Random& random) {
  for (uint64_t changes = random() % 4; changes > 0; --changes) {
    Json& unit = network["units"][random() % network["units"].size()];
    switch (random() % 6) {
      case 0:
      case 1:
        if (!network["inputs"].empty()) {
          ChangeDims(network["inputs"][random() % network["inputs"].size()]["dims"], random);
        }
        break;
      case 2:
        if (!network["constants"].empty()) {
          ChangeDims(network["constants"][random() % network["constants"].size()]["dims"], random);
        }
        break;
      case 3:
      case 4:
        ChangeParam(unit["params"], words, random);
        break;
      default:
        if (random() % 2 == 0 && !unit["bottoms"].empty()) {
          Json first = unit["bottoms"][0];
          unit["bottoms"].push_back(first);
        } else if (!network["inputs"].empty()) {
          const char* formats[] = {"fp16", "uint8", "uint16", "int8"};
          network["inputs"][random() % network["inputs"].size()]["format"] =
              OneOf(formats, 4, random);
        }
    }
  }
  return network;
}

// Appends `b` to `a`. If `joined`, the output of `a` becomes the first input of `b`.
void Append(Json& a, const Json& b, bool joined) {
  const std::string made = a["outputs"].empty() ? "" : a["outputs"].back()["from"];
  const std::map<std::string, size_t> base = {{"input", a["inputs"].size()},
                                              {"constant", a["constants"].size()},
                                              {"unit", a["units"].size()}};
  auto moved = [&](const Json& operand) {
    std::string text = operand.get<std::string>();
    if (joined && !made.empty() && text == "input 0") return Json(made);
    std::string source = text.substr(0, text.find(' '));
    return Json(
        absl::StrCat(source, " ", std::stoul(text.substr(source.size())) + base.at(source)));
  };
  for (const Json& port : b["inputs"]) a["inputs"].push_back(port);
  for (const Json& constant : b["constants"]) a["constants"].push_back(constant);
  for (Json unit : b["units"]) {
    for (Json& operand : unit["bottoms"]) operand = moved(operand);
    a["units"].push_back(std::move(unit));
  }
  for (Json port : b["outputs"]) {
    port["from"] = moved(port["from"]);
    a["outputs"].push_back(std::move(port));
  }
}

struct Question {
  std::string line;  // the input of the other process
  bool as_netplist = false;
  Json answer;  // of this process
};

// Computes the answer of this process and the line for the other one. The line has the network that
// was read, if there is one: as a netplist if all its kinds have a known form, else as JSON.
Question Ask(const Json& written, const Target& target, Route route) {
  Network network;
  Json answer = Judged(written, FindUnitKind, target, route, &network);
  Json sent = {{"target", std::string(target.option_name())},
               {"route", std::string(RouteName(route))}};
  absl::StatusOr<Netplist> netplist = WriteNetplist(network, FormStatus::kKnown);
  if (network.units.empty()) {
    sent["network"] = written;
  } else if (netplist.ok()) {
    sent["netplist"] = WritePropertyList(netplist->document, PropertyListForm::kXml);
  } else {
    sent["network"] = WriteNetwork(network);
  }
  return {sent.dump(), sent.contains("netplist"), std::move(answer)};
}

// The answers of the other process, one line for each question.
std::vector<std::string> Answers(const std::string& judge, const std::vector<Question>& questions) {
  std::string base =
      absl::StrCat(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp", "/drift.", getpid());
  {
    std::ofstream file(base + ".in");
    for (const Question& q : questions) file << q.line << "\n";
  }
  int code =
      std::system(absl::StrCat(judge, " < ", base, ".in > ", base, ".out 2> /dev/null").c_str());
  std::vector<std::string> answers;
  std::ifstream file(base + ".out");
  for (std::string line; std::getline(file, line);) answers.push_back(line);
  std::remove((base + ".in").c_str());
  std::remove((base + ".out").c_str());
  if (code != 0) answers.clear();
  return answers;
}

int64_t Differences(const std::vector<Question>& questions, const std::vector<std::string>& answers,
                    bool shown) {
  if (answers.size() != questions.size()) return static_cast<int64_t>(questions.size());
  int64_t count = 0;
  for (size_t i = 0; i < questions.size(); ++i) {
    if (questions[i].answer.dump() == answers[i]) continue;
    ++count;
    if (shown && count <= 5) {
      std::cout << questions[i].line << "\n  here:  " << questions[i].answer.dump()
                << "\n  there: " << answers[i] << "\n";
    }
  }
  return count;
}

int Main(int argc, char** argv) {
  int64_t units = 5000, networks = 200;
  uint64_t seed = 0;
  for (int i = 3; i < argc; i += 2) {
    const std::string flag = argv[i];
    const int64_t value = i + 1 < argc ? std::atoll(argv[i + 1]) : 0;
    if (flag == "--units") {
      units = value;
    } else if (flag == "--networks") {
      networks = value;
    } else if (flag == "--seed") {
      seed = static_cast<uint64_t>(value);
    } else {
      std::fprintf(stderr, "drift: no flag '%s'\n", argv[i]);
      return 2;
    }
  }
  Random random(seed);
  std::vector<Json> seeds = Seeds(argv[2]);
  Words words;
  for (const Json& network : seeds) {
    for (const Json& unit : network["units"]) CollectWords(unit["params"], words);
  }
  std::vector<Question> questions;
  std::map<std::string, int64_t> refused;  // by the kind of the only unit
  std::set<std::string> kinds;
  int64_t accepted = 0, errors = 0, netplists = 0;
  for (int64_t i = 0; i < units + networks; ++i) {
    Json network = Changed(seeds[random() % seeds.size()], words, random);
    if (i >= units) {
      for (uint64_t more = 1 + random() % 11; more > 0; --more) {
        Append(network, Changed(seeds[random() % seeds.size()], words, random), random() % 2 == 0);
      }
    }
    const Target& target = AllTargets()[random() % AllTargets().size()];
    Route route = random() % 3 == 0 && target.mil_route() ? Route::kMil : Route::kNetplist;
    questions.push_back(Ask(network, target, route));
    for (const Json& unit : network["units"]) kinds.insert(unit["type"].get<std::string>());
    const Json& answer = questions.back().answer;
    errors += answer.contains("error");
    netplists += questions.back().as_netplist;
    if (answer.contains("accepted") && answer["accepted"].get<bool>()) {
      ++accepted;
    } else if (answer.contains("layer") && answer["layer"] == "validator" &&
               network["units"].size() == 1) {
      const UnitKind& kind = *FindUnitKind(network["units"][0]["type"].get<std::string>());
      if (!IsOfAnyUnit(answer["rule"], kind)) ++refused[kind.type];
    }
  }
  int64_t different = Differences(questions, Answers(argv[1], questions), /*shown=*/true);
  std::printf(
      "drift: %lld units and %lld networks of %zu kinds on %zu targets: %lld accepted, "
      "%lld malformed, %lld sent as netplists, %lld answers differ\n",
      static_cast<long long>(units), static_cast<long long>(networks), kinds.size(),
      AllTargets().size(), static_cast<long long>(accepted), static_cast<long long>(errors),
      static_cast<long long>(netplists), static_cast<long long>(different));
  int64_t unnoticed = 0, broken = 0;
  for (const auto& [kind, count] : refused) {
    ++broken;
    auto answers = Answers(absl::StrCat(argv[1], " --broken ", kind), questions);
    if (Differences(questions, answers, /*shown=*/false) == 0) {
      ++unnoticed;
      std::printf("a disabled validator of %s is not noticed\n", kind.c_str());
    }
  }
  std::printf("disabled on purpose: %lld validators, %lld unnoticed\n",
              static_cast<long long>(broken), static_cast<long long>(unnoticed));
  return different == 0 && unnoticed == 0 && broken > 0 ? 0 : 1;
}

}  // namespace
}  // namespace anemone

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return anemone::Main(argc, argv);
}
