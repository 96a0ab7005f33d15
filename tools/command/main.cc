// The `anemone` command: parsing by CLI11 from the tables of flags.h, then the command's function.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "anemone/version.h"
#include "base/guarded.h"
#include "base/near_names.h"
#include "base/printable.h"
#include "partitioner/plan_json.h"
#include "tools/command/commands.h"
#include "tools/command/flags.h"

namespace anemone {
namespace {

// "-q,--quiet"
std::string SpelledOut(const Flag& flag) {
  return absl::StrCat(flag.letter == nullptr ? "" : absl::StrCat("-", flag.letter, ","), "--",
                      flag.name);
}

std::string FullHelp(const Flag& flag) {
  std::string text = flag.brief;
  if (!flag.help.empty()) absl::StrAppend(&text, " ", flag.help);
  if (flag.fallback != nullptr) absl::StrAppend(&text, " Default: ", flag.fallback, ".");
  return text;
}

// Adds one subcommand with its flags. Parsed values are stored in `options`.
void AddCommand(CLI::App& app, const Command& command, Options& options) {
  CLI::App* sub = app.add_subcommand(command.name, command.brief);
  sub->footer(command.help);
  if (command.hidden) sub->group("");
  if (command.max_arguments > 0) {
    sub->add_option_function<std::vector<std::string>>(
           command.arguments,
           [&options](const std::vector<std::string>& values) { options.arguments = values; }, "")
        ->required(command.min_arguments > 0)
        ->expected(std::max(command.min_arguments, 1), command.max_arguments);
  }
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command.bit) == 0) continue;
    auto store = [&flag, &options](const std::string& value) {
      absl::Status status = flag.store(options, value);
      if (!status.ok()) {
        throw CLI::ValidationError(absl::StrCat("--", flag.name), std::string(status.message()));
      }
    };
    if (flag.value == nullptr) {
      sub->add_flag_callback(
          SpelledOut(flag), [store] { store(""); }, FullHelp(flag));
      continue;
    }
    sub->add_option_function<std::vector<std::string>>(
           SpelledOut(flag),
           [store](const std::vector<std::string>& values) {
             for (const std::string& value : values) store(value);
           },
           FullHelp(flag))
        ->type_name(flag.value)
        ->expected(1)
        ->allow_extra_args(false)  // the next word is not a second value
        ->take_all();
  }
}

constexpr unsigned kTakesSeveralTargets = kCheck | kConfirm;

// Runs the command and returns its exit code. It is an error if the output cannot be written.
int Finished(const Command& command, const Options& options) {
  if ((command.bit & kTakesSeveralTargets) == 0 && TargetsOf(options.settings).size() != 1) {
    return FailUsage(absl::StrCat("--target: ", command.name, " takes one target"));
  }
  absl::StatusOr<int> code =
      Guarded(command.name, [&]() -> absl::StatusOr<int> { return command.run(options); });
  if (!code.ok()) return Fail(code.status());
  if (std::fflush(stdout) != 0) {
    return Fail(absl::DataLossError(absl::StrCat(
        "standard output: write error: ", std::strerror(errno), "; redirect it elsewhere")));
  }
  return *code;
}

const Command* FindCommand(absl::string_view name) {
  for (const Command& command : Commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

// A message about the first option that `command` does not have; "" if it has all. CLI11 would
// treat the option's value as an argument, and report that.
std::string UnknownOption(const Command& command, int argc, char** argv) {
  std::vector<std::string> known = {"--help"};
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command.bit) != 0) known.push_back(absl::StrCat("--", flag.name));
  }
  for (int i = 2; i < argc && absl::string_view(argv[i]) != "--"; ++i) {
    const std::vector<std::string> parts = absl::StrSplit(argv[i], absl::MaxSplits('=', 1));
    const std::string& option = parts.front();
    if (!absl::StartsWith(option, "--")) continue;
    if (std::find(known.begin(), known.end(), option) != known.end()) continue;
    std::vector<std::string> takers;
    for (const Flag& flag : Flags()) {
      for (const Command& other : Commands()) {
        const bool takes = (flag.commands & other.bit) != 0 && !other.hidden;
        if (takes && option == absl::StrCat("--", flag.name)) takers.emplace_back(other.name);
      }
    }
    return absl::StrCat(option, ": ", command.name, " has no such option in this version; ",
                        takers.empty()
                            ? absl::StrCat("near: ", absl::StrJoin(NearNames(option, known), ", "))
                            : absl::StrCat("only ", absl::StrJoin(takers, ", "),
                                           takers.size() > 1 ? " have" : " has"));
  }
  return "";
}

}  // namespace

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "anemone: error: %s\n", Printable(status.message()).c_str());
  return kExitRefused;
}

void PrintJson(const Json& json) { std::puts(JsonText(json).c_str()); }

int FailUsage(absl::string_view message) {
  Fail(absl::InvalidArgumentError(message));
  return kExitUsage;
}

bool StdoutHasColour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

int Main(int argc, char** argv) {
  const Command* asked = argc > 1 ? FindCommand(argv[1]) : nullptr;
  if (argc > 1 && argv[1][0] != '-' && asked == nullptr) {
    return FailUsage(
        absl::StrCat("command '", argv[1], "': not in this version; see anemone --help"));
  }
  CLI::App app("ONNX models on the Apple Neural Engine: what runs there, what does not and why.",
               "anemone");
  app.set_version_flag("--version", absl::StrCat("anemone ", kVersion));
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  Options options;
  for (const Command& command : Commands()) AddCommand(app, command, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const std::string unknown = asked == nullptr ? "" : UnknownOption(*asked, argc, argv);
    if (!unknown.empty()) return FailUsage(unknown);
    return FailUsage(absl::StrCat("command line: ", e.what(), "; see anemone --help"));
  }
  for (const Command& command : Commands()) {
    if (app.got_subcommand(command.name)) return Finished(command, options);
  }
  return kExitUsage;
}

}  // namespace anemone

int main(int argc, char** argv) { return anemone::Main(argc, argv); }
