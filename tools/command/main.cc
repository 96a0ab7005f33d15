// The `anemone` command: parsing by CLI11 from the tables of flags.h, then the command's function.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "anemone/version.h"
#include "base/guarded.h"
#include "base/model_limits.h"
#include "base/near_names.h"
#include "base/wrapped_text.h"
#include "provider/temporaries.h"
#include "tools/command/commands.h"
#include "tools/command/flags.h"
#include "tools/command/help.h"
#include "tools/command/sudden_end.h"

namespace anemone {
namespace {

// "-q,--quiet"
std::string SpelledOut(const Flag& flag) {
  return absl::StrCat(flag.letter == nullptr ? "" : absl::StrCat("-", flag.letter, ","), "--",
                      flag.name);
}

// Adds one subcommand with its flags. Parsed values are stored in `options`.
void AddCommand(CLI::App& app, const Command& command, Options& options) {
  CLI::App* sub = app.add_subcommand(command.name, command.brief);
  sub->formatter_fn([&command](const CLI::App*, const std::string&, CLI::AppFormatMode) {
    return CommandHelp(command, TerminalWidth());
  });
  constexpr int kAny = 1 << 20;  // ArgumentProblem() checks how many there are
  sub->add_option_function<std::vector<std::string>>(
         "arguments",
         [&options](const std::vector<std::string>& values) { options.arguments = values; })
      ->expected(0, kAny);
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command.bit) == 0) continue;
    auto store = [&flag, &options](const std::string& value) {
      absl::Status status = flag.store(options, value);
      if (!status.ok()) {
        throw CLI::ValidationError(absl::StrCat("--", flag.name), std::string(status.message()));
      }
      options.given.insert(flag.name);
    };
    if (flag.value == nullptr) {
      sub->add_flag_callback(SpelledOut(flag), [store] { store(""); });
      continue;
    }
    sub->add_option_function<std::vector<std::string>>(
           SpelledOut(flag),
           [store](const std::vector<std::string>& values) {
             for (const std::string& value : values) store(value);
           })
        ->type_name(flag.value)
        ->expected(1)
        ->allow_extra_args(false)  // the next word is not a second value
        ->take_all();
  }
}

// A message if there are too few or too many arguments, or an empty one; else "".
std::string ArgumentProblem(const Command& command, const std::vector<std::string>& arguments) {
  const int count = static_cast<int>(arguments.size());
  const bool has_empty = std::find(arguments.begin(), arguments.end(), "") != arguments.end();
  if (has_empty && command.max_arguments > 0) {
    return absl::StrCat(command.name, ": an argument is empty, want ", command.arguments,
                        "; see anemone help ", command.name);
  }
  if (count < command.min_arguments) {
    return absl::StrCat(command.name, ": ", command.arguments, " is required; see anemone help ",
                        command.name);
  }
  if (count <= command.max_arguments) return "";
  const std::string& extra = arguments[static_cast<size_t>(command.max_arguments)];
  const std::string most = command.max_arguments == 0 ? "no argument"
                           : command.max_arguments == 1
                               ? "one argument"
                               : absl::StrCat(command.max_arguments, " arguments");
  return absl::StrCat(command.name, ": takes ", most, ", got also '", extra, "'; see anemone help ",
                      command.name);
}

int Execute(const Command& command, Options& options) {
  if (std::string problem = ArgumentProblem(command, options.arguments); !problem.empty()) {
    return FailUsage(problem);
  }
  if ((command.bit & kTakesSeveralTargets) == 0) {
    const std::vector<std::string> targets = TargetsOf(options.settings);
    if (targets.size() != 1) {
      return FailUsage(absl::StrCat("--target '", options.settings.target, "': ", command.name,
                                    " takes one target, got ", targets.size(),
                                    "; give one, or compare them with anemone check"));
    }
    options.settings.target = targets.front();  // `m1,h13` names one target
  }
  if (absl::Status status = RequireSizes(options.settings);
      command.bit != kConvert && !status.ok()) {
    return FailUsage(status.message());
  }
  RemoveTemporariesOnSignals();
  absl::StatusOr<int> code =
      Guarded(command.name, [&]() -> absl::StatusOr<int> { return command.run(options); });
  return code.ok() ? *code : Fail(code.status());
}

// "; did you mean --target?", from the command's flags.
std::string LongNamesFor(char letter, const Command& command) {
  std::vector<std::string> names;
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command.bit) != 0 && flag.name[0] == letter) {
      names.push_back(absl::StrCat("--", flag.name));
    }
  }
  return names.empty() ? absl::StrCat("; see anemone help ", command.name)
                       : absl::StrCat("; did you mean ", absl::StrJoin(names, " or "), "?");
}

// The same about the letters of "-qt", or that those of "-q=1" take no value.
std::string UnknownLetter(const Command& command, absl::string_view letters) {
  for (size_t i = 0; i < letters.size(); ++i) {
    const char letter = letters[i];
    if (letter == 'h') continue;
    if (letter == '=' && i > 0) {
      return absl::StrCat("-", letters.substr(i - 1, 1), ": takes no value, got '",
                          letters.substr(i + 1), "'; see anemone help ", command.name);
    }
    const Flag* known = nullptr;
    for (const Flag& flag : Flags()) {
      const bool has = (flag.commands & command.bit) != 0 && flag.letter != nullptr;
      if (has && *flag.letter == letter) known = &flag;
    }
    if (known == nullptr) {
      return absl::StrCat("-", std::string(1, letter), ": ", command.name,
                          " has no such option in this version", LongNamesFor(letter, command));
    }
    if (known->value != nullptr) return "";  // the rest is its value
  }
  return "";
}

std::string UnknownName(const Command& command, const std::string& option) {
  std::vector<std::string> known = {"--help"};
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command.bit) != 0) known.push_back(absl::StrCat("--", flag.name));
  }
  if (std::find(known.begin(), known.end(), option) != known.end()) return "";
  std::vector<std::string> takers;
  for (const Command& other : Commands()) {
    const bool takes =
        !other.hidden && std::any_of(Flags().begin(), Flags().end(), [&](const Flag& flag) {
          return (flag.commands & other.bit) != 0 && option == absl::StrCat("--", flag.name);
        });
    if (takes) takers.emplace_back(other.name);
  }
  const std::string question = DidYouMean(option, known);
  return absl::StrCat(option, ": ", command.name, " has no such option in this version; ",
                      !takers.empty()    ? absl::StrCat("only ", absl::StrJoin(takers, ", "),
                                                     takers.size() > 1 ? " have it" : " has it")
                      : question.empty() ? absl::StrCat("see anemone help ", command.name)
                                         : question);
}

// A message about the first option that `command` does not have; "" if it has all. CLI11 would
// treat the option's value as an argument, and report that.
std::string UnknownOption(const Command& command, int argc, char** argv) {
  for (int i = 2; i < argc && absl::string_view(argv[i]) != "--"; ++i) {
    const absl::string_view word = argv[i];
    std::string problem;
    if (absl::StartsWith(word, "--")) {
      const std::vector<std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
      problem = UnknownName(command, parts.front());
    } else if (word.size() > 1 && word[0] == '-' &&
               std::isdigit(static_cast<unsigned char>(word[1])) == 0) {
      problem = UnknownLetter(command, word.substr(1));
    }
    if (!problem.empty()) return problem;
  }
  return "";
}

// For those who ask for the version in another way.
std::string VersionHint(absl::string_view word) {
  return word == "-v" || word == "-V" ? "for the version give --version; " : "";
}

// What CLI11 refuses, in our words.
std::string ParseProblem(const Command* command, const CLI::ParseError& error, int argc,
                         char** argv) {
  if (command == nullptr) {
    return argc < 2 ? std::string("command line: a command is missing; see anemone help")
                    : absl::StrCat("command line: '", argv[1], "' is not a command; ",
                                   VersionHint(argv[1]), "see anemone help");
  }
  std::string unknown = UnknownOption(*command, argc, argv);
  if (!unknown.empty()) return unknown;
  std::string what = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    for (const Flag& flag : Flags()) {
      const bool named = (flag.commands & command->bit) != 0 && flag.value != nullptr &&
                         absl::StartsWith(what, absl::StrCat("--", flag.name, ":"));
      if (named) what = absl::StrCat("--", flag.name, ": its value is missing, want ", flag.value);
    }
  }
  return absl::StrCat(what, "; see anemone help ", command->name);
}

// Opens those of stdin, stdout and stderr that are closed, so that no file of the command takes
// their place. Writes to them fail, as they should.
void OpenStandardStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    const int opened = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened < 0) return;  // the lowest free number is this stream's
  }
}

// Official builds of ONNX Runtime report their use over the network. A user who wants that sets the
// variable to 0.
void TurnTelemetryOff() { setenv("ORT_DISABLE_TELEMETRY", "1", 0); }

bool WantsJson(const Command* command, int argc, char** argv) {
  if (command == nullptr || (command->bit & kPrintsTable) == 0) return false;
  for (int i = 2; i < argc && absl::string_view(argv[i]) != "--"; ++i) {
    if (absl::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

// A write beyond the size that files may have (ulimit -f) fails like one on a full disk.
void FailWritesBeyondTheLimitOfFiles() { std::signal(SIGXFSZ, SIG_IGN); }

int ParseAndRun(const Command* asked, int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-' && asked == nullptr) return FailUsage(NoSuchCommand(argv[1]));
  CLI::App app("", "anemone");
  app.formatter_fn([](const CLI::App*, const std::string&, CLI::AppFormatMode) {
    return ProgramHelp(TerminalWidth());
  });
  app.set_version_flag("--version", absl::StrCat("anemone ", kVersion));
  app.require_subcommand(1);
  Options options;
  for (const Command& command : Commands()) AddCommand(app, command, options);
  // All words after the first `--` are arguments. CLI11 would give them to the program.
  char** const end = argv + argc;
  char** const mark = std::find_if(std::min(argv + 2, end), end, [](const char* word) {
    return absl::string_view(word) == "--";
  });
  try {
    app.parse(static_cast<int>(mark - argv), argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return FailUsage(ParseProblem(asked, e, argc, argv));
  }
  if (mark != end) options.arguments.insert(options.arguments.end(), mark + 1, end);
  for (const Command& command : Commands()) {
    if (!app.got_subcommand(command.name)) continue;
    const ModelLimits limits(options.settings.limits);  // for each reader of the command
    return Execute(command, options);
  }
  return kExitUsage;
}

}  // namespace

int Main(int argc, char** argv) {
  EndIfMemoryRunsOut();
  EndIfAFileIsCutOff();
  OpenStandardStreams();
  TurnTelemetryOff();
  FailWritesBeyondTheLimitOfFiles();
  if (isatty(STDOUT_FILENO) == 1) {
    // Progress erases its line, then writes what was printed.
    static char buffer[1 << 20];
    std::setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
  }
  bool json = false;
  const absl::StatusOr<int> code = Guarded("read the command line", [&]() -> absl::StatusOr<int> {
    const Command* asked = argc > 1 ? FindCommand(argv[1]) : nullptr;
    json = WantsJson(asked, argc, argv);
    if (json) TellInJsonIfItEnds();
    return ParseAndRun(asked, argc, argv);
  });
  return FinishOutput(code.ok() ? *code : Fail(code.status()), json);
}

}  // namespace anemone

int main(int argc, char** argv) { return anemone::Main(argc, argv); }
