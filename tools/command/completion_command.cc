// `anemone completion`: scripts for bash, zsh and fish, from the tables of flags.h.
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/command/commands.h"
#include "tools/command/flags.h"

namespace anemone {
namespace {

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Command& command : Commands()) {
    if (!command.hidden) names.emplace_back(command.name);
  }
  return names;
}

std::vector<std::string> FlagNames(const Command& command) {
  std::vector<std::string> names = {"--help"};
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command.bit) == 0) continue;
    names.push_back(absl::StrCat("--", flag.name));
    if (flag.letter != nullptr) names.push_back(absl::StrCat("-", flag.letter));
  }
  return names;
}

std::string Bash() {
  std::string script =
      "# bash completion of anemone; source <(anemone completion bash)\n"
      "_anemone() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  if (( COMP_CWORD == 1 )); then\n"
      "    COMPREPLY=($(compgen -W \"";
  absl::StrAppend(&script, absl::StrJoin(CommandNames(), " "),
                  "\" -- \"$word\")); return\n  fi\n  case $before in\n");
  for (const Flag& flag : Flags()) {
    if (flag.choices == nullptr) continue;
    absl::StrAppend(&script, "    --", flag.name, ") COMPREPLY=($(compgen -W \"",
                    absl::StrJoin(flag.choices(), " "), "\" -- \"$word\")); return ;;\n");
  }
  absl::StrAppend(&script, "  esac\n  if [[ $word == -* ]]; then\n    case ${COMP_WORDS[1]} in\n");
  for (const Command& command : Commands()) {
    if (command.hidden) continue;
    absl::StrAppend(&script, "      ", command.name, ") COMPREPLY=($(compgen -W \"",
                    absl::StrJoin(FlagNames(command), " "), "\" -- \"$word\")) ;;\n");
  }
  return absl::StrCat(script,
                      "    esac\n    return\n  fi\n"
                      "  COMPREPLY=($(compgen -f -- \"$word\"))\n}\n"
                      "complete -o filenames -F _anemone anemone\n");
}

// Escapes text for single quotes and brackets.
std::string ZshText(const char* text) {
  return absl::StrReplaceAll(text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

std::string Zsh() {
  std::string script =
      "#compdef anemone\n# zsh completion of anemone; source <(anemone completion zsh)\n"
      "_anemone() {\n  local -a commands\n  commands=(\n";
  for (const Command& command : Commands()) {
    if (command.hidden) continue;
    absl::StrAppend(&script, "    '", command.name, ":", ZshText(command.brief), "'\n");
  }
  absl::StrAppend(&script,
                  "  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
                  "  case $words[2] in\n");
  for (const Command& command : Commands()) {
    if (command.hidden) continue;
    absl::StrAppend(&script, "    ", command.name, ") _arguments");
    for (const Flag& flag : Flags()) {
      if ((flag.commands & command.bit) == 0) continue;
      absl::StrAppend(&script, " \\\n      '*--", flag.name, "[", ZshText(flag.brief), "]");
      if (flag.value != nullptr) {
        std::string choices =
            flag.choices == nullptr
                ? "_files"
                : absl::StrCat(
                      "(", absl::StrReplaceAll(absl::StrJoin(flag.choices(), " "), {{":", "\\:"}}),
                      ")");
        absl::StrAppend(&script, ":value:", choices);
      }
      script += "'";
    }
    absl::StrAppend(&script, " \\\n      '*:file:_files' ;;\n");
  }
  return absl::StrCat(script, "  esac\n}\ncompdef _anemone anemone\n");
}

std::string FishText(const char* text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}});
}

std::string Fish() {
  std::string script =
      "# fish completion of anemone; anemone completion fish | source\n"
      "complete -c anemone -n __fish_use_subcommand -f\n";
  for (const Command& command : Commands()) {
    if (command.hidden) continue;
    absl::StrAppend(&script, "complete -c anemone -n __fish_use_subcommand -a ", command.name,
                    " -d '", FishText(command.brief), "'\n");
    for (const Flag& flag : Flags()) {
      if ((flag.commands & command.bit) == 0) continue;
      absl::StrAppend(&script, "complete -c anemone -n '__fish_seen_subcommand_from ", command.name,
                      "' -l ", flag.name);
      if (flag.letter != nullptr) absl::StrAppend(&script, " -s ", flag.letter);
      if (flag.value != nullptr) script += " -r";
      if (flag.choices != nullptr) {
        absl::StrAppend(&script, " -f -a '", absl::StrJoin(flag.choices(), " "), "'");
      }
      absl::StrAppend(&script, " -d '", FishText(flag.brief), "'\n");
    }
  }
  return script;
}

}  // namespace

int CompletionCommand(const Options& options) {
  const std::string& shell = options.arguments[0];
  std::string script = shell == "bash"   ? Bash()
                       : shell == "zsh"  ? Zsh()
                       : shell == "fish" ? Fish()
                                         : "";
  if (script.empty()) {
    return FailUsage(absl::StrCat("completion '", shell, "': want bash, zsh or fish"));
  }
  std::fputs(script.c_str(), stdout);
  return kExitDone;
}

}  // namespace anemone
