// `anemone completion`: scripts for bash, zsh and fish, from the tables of flags.h.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/command/commands.h"
#include "tools/command/flags.h"

namespace anemone {
namespace {

// What a value or an argument can be.
enum class Kind {
  kWord,     // one of several words
  kList,     // several of them, separated by commas
  kFile,     // a path
  kUnknown,  // something that cannot be guessed
};

struct Completion {
  Kind kind;
  std::string words;  // separated by blanks
  std::string next;   // of a list: the words after a comma
};

Completion CompletionOf(const Flag& flag) {
  const absl::string_view value = flag.value;
  if (flag.choices != nullptr) {
    const bool list = flag.next_choices != nullptr || absl::StrContains(value, "[,");
    const std::string words = absl::StrJoin(flag.choices(), " ");
    if (!list) return {Kind::kWord, words, ""};
    return {Kind::kList, words,
            flag.next_choices == nullptr ? words : absl::StrJoin(flag.next_choices(), " ")};
  }
  const bool file = absl::StrContains(value, "FILE") || absl::StrContains(value, "DIR");
  return {file ? Kind::kFile : Kind::kUnknown, "", ""};
}

Completion CompletionOf(const Command& command) {
  if (command.choices != nullptr) return {Kind::kWord, absl::StrJoin(command.choices(), " "), ""};
  const bool file = absl::StrContains(command.arguments, "MODEL");
  return {file ? Kind::kFile : Kind::kUnknown, "", ""};
}

std::vector<const Command*> ShownCommands() {
  std::vector<const Command*> shown;
  for (const Command& command : Commands()) {
    if (!command.hidden) shown.push_back(&command);
  }
  return shown;
}

std::vector<const Flag*> FlagsOf(const Command& command) {
  std::vector<const Flag*> flags;
  for (const Flag& flag : Flags()) {
    if ((flag.commands & command.bit) != 0) flags.push_back(&flag);
  }
  return flags;
}

std::string FlagNames(const Command& command) {
  std::string names = "--help";
  for (const Flag* flag : FlagsOf(command)) {
    absl::StrAppend(&names, " --", flag->name);
    if (flag->letter != nullptr) absl::StrAppend(&names, " -", flag->letter);
  }
  return names;
}

// The call of a function of the script below.
std::string BashCall(const Completion& completion) {
  switch (completion.kind) {
    case Kind::kWord:
      return absl::StrCat("_anemone_words \"", completion.words, "\"");
    case Kind::kList:
      return absl::StrCat("_anemone_list \"", completion.words, "\" \"", completion.next, "\"");
    case Kind::kFile:
      return "_anemone_files";
    case Kind::kUnknown:
      return ":";
  }
  return ":";
}

std::string Bash() {
  std::string script = R"(# bash completion of anemone; source <(anemone completion bash)
_anemone_words() {
  COMPREPLY=($(compgen -W "$1" -- "$word"))
  # `cosine=` goes on.
  if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
_anemone_list() {  # words, and the words after a comma
  local last=${word##*,} words=$1
  if [[ $word == *,* ]]; then words=$2; fi
  COMPREPLY=($(compgen -P "${word%"$last"}" -W "$words" -- "$last"))
}
_anemone_files() {
  compopt -o filenames 2>/dev/null
  local IFS=$'\n'
  COMPREPLY=($(compgen -f -- "$word"))
}
_anemone() {
  local word=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1))
  COMPREPLY=()
  # Bash splits at `:` too, and replaces only what follows it: refuse:Pool is three words.
  if [[ $word == ':' || ${COMP_WORDS[at]} == ':' ]]; then
    if [[ $word == ':' ]]; then word=; else at=$((at - 1)); fi
    local before=${COMP_WORDS[at]}
    COMP_WORDS=("${COMP_WORDS[@]:0:at}" "$before:$word") COMP_CWORD=$at
    _anemone
    COMPREPLY=("${COMPREPLY[@]#"$before:"}")
    return
  fi
  if (( COMP_CWORD == 1 )); then
    _anemone_words ")";
  absl::StrAppend(&script, absl::StrJoin(CommandNames(), " "), R"("
    return
  fi
  # Bash splits at `=`: --target=m1 is three words, and so is x=file.npy after --input.
  if [[ $word == '=' ]]; then
    word=
  elif [[ ${COMP_WORDS[at]} == '=' ]]; then
    at=$((at - 1))
  fi
  if [[ ${COMP_WORDS[at]} != -* && ${COMP_WORDS[at - 1]} == -* && ${COMP_WORDS[at + 1]} == '=' ]]; then
    at=$((at - 1))
  fi
  case "${COMP_WORDS[1]} ${COMP_WORDS[at]}" in
)");
  for (const Command* command : ShownCommands()) {
    for (const Flag* flag : FlagsOf(*command)) {
      if (flag->value == nullptr) continue;
      const std::string letter = flag->letter == nullptr
                                     ? ""
                                     : absl::StrCat(" | '", command->name, " -", flag->letter, "'");
      absl::StrAppend(&script, "    '", command->name, " --", flag->name, "'", letter, ") ",
                      BashCall(CompletionOf(*flag)), "; return ;;\n");
    }
  }
  absl::StrAppend(&script, "  esac\n  case ${COMP_WORDS[1]} in\n");
  for (const Command* command : ShownCommands()) {
    absl::StrAppend(&script, "    ", command->name,
                    ")\n      if [[ $word == -* ]]; then _anemone_words \"", FlagNames(*command),
                    "\"; else ", BashCall(CompletionOf(*command)), "; fi ;;\n");
  }
  return absl::StrCat(script, "  esac\n}\ncomplete -F _anemone anemone\n");
}

// Escapes text for single quotes and brackets.
std::string ZshText(const char* text) {
  return absl::StrReplaceAll(text, {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}});
}

// An action of _arguments.
std::string ZshAction(const Completion& completion) {
  switch (completion.kind) {
    case Kind::kWord:
      return absl::StrCat("{_anemone_words ", completion.words, "}");
    case Kind::kList:
      return absl::StrCat("{_anemone_list ", completion.words, " -- ", completion.next, "}");
    case Kind::kFile:
      return "_anemone_files";
    case Kind::kUnknown:
      return " ";
  }
  return " ";
}

std::string ZshCommand(const Command& command) {
  std::string text =
      absl::StrCat("    ", command.name, ")\n      _arguments '--help[Print this help.]'");
  for (const Flag* flag : FlagsOf(command)) {
    std::vector<std::string> names = {absl::StrCat("--", flag->name)};
    if (flag->letter != nullptr) names.push_back(absl::StrCat("-", flag->letter));
    for (const std::string& name : names) {
      const bool value = flag->value != nullptr;
      absl::StrAppend(
          &text, " \\\n        '*", name, value && name.size() > 2 ? "=" : "", "[",
          ZshText(flag->brief), "]",
          value ? absl::StrCat(":value:",
                               absl::StrReplaceAll(ZshAction(CompletionOf(*flag)), {{":", "\\:"}}))
                : "",
          "'");
    }
  }
  const Completion arguments = CompletionOf(command);
  if (arguments.kind != Kind::kUnknown) {
    absl::StrAppend(&text, " \\\n        '*:argument:", ZshAction(arguments), "'");
  }
  return absl::StrCat(text, " ;;\n");
}

std::string Zsh() {
  std::string script = R"(#compdef anemone
# zsh completion of anemone; source <(anemone completion zsh)
_anemone_words() {
  compadd -- ${@:#*=}
  compadd -S '' -- ${(M)@:#*=}  # `cosine=` goes on
}
_anemone_list() {  # words, --, and the words after a comma
  local at=${@[(i)--]}
  if compset -P '*,'; then
    compadd -qS , -- "${@[at+1,-1]}"
  else
    compadd -qS , -- "${@[1,at-1]}"
  fi
}
_anemone_files() {
  compset -P '*='  # NAME=FILE
  _files
}
_anemone() {
  local -a commands
  commands=(
)";
  for (const Command* command : ShownCommands()) {
    absl::StrAppend(&script, "    '", command->name, ":", ZshText(command->brief), "'\n");
  }
  absl::StrAppend(&script,
                  "  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
                  "  local command=$words[2]\n"
                  "  shift words; (( CURRENT-- ))\n"
                  "  case $command in\n");
  for (const Command* command : ShownCommands()) absl::StrAppend(&script, ZshCommand(*command));
  return absl::StrCat(script,
                      "  esac\n}\n"
                      "# As a file of $fpath it is called at once; else it is registered.\n"
                      "if [[ $funcstack[1] == _anemone ]]; then _anemone \"$@\"; "
                      "else compdef _anemone anemone; fi\n");
}

std::string FishText(const char* text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}});
}

// The options of `complete` for a value.
std::string FishValue(const Completion& completion) {
  switch (completion.kind) {
    case Kind::kWord:
      return absl::StrCat(" -f -a '", completion.words, "'");
    case Kind::kList:
      return absl::StrCat(" -f -a '(__anemone_list ", completion.words, " -- ", completion.next,
                          ")'");
    case Kind::kFile:
      return " -F";
    case Kind::kUnknown:
      return " -f";
  }
  return "";
}

std::string Fish() {
  std::string script = R"(# fish completion of anemone; anemone completion fish | source
function __anemone_first
  test (count (commandline -opc)) = 1
end
function __anemone_command
  set -l words (commandline -opc)
  test (count $words) -gt 1; and test "$words[2]" = $argv[1]
end
function __anemone_list
  set -l typed (commandline -ct | string replace -r '^--[a-z-]+=' '' | string match -r '.*,')
  # The words after -- are those after a comma.
  set -l wanted first
  test -n "$typed"; and set wanted next
  set -l kind first
  for word in $argv
    if test "$word" = --
      set kind next
    else if test $kind = $wanted
      echo "$typed$word"
    end
  end
end
complete -c anemone -f
)";
  for (const Command* command : ShownCommands()) {
    absl::StrAppend(&script, "complete -c anemone -n __anemone_first -a ", command->name, " -d '",
                    FishText(command->brief), "'\n");
    const std::string when =
        absl::StrCat("complete -c anemone -n '__anemone_command ", command->name, "'");
    const Completion arguments = CompletionOf(*command);
    if (arguments.kind != Kind::kUnknown) {
      absl::StrAppend(&script, when, FishValue(arguments), "\n");
    }
    for (const Flag* flag : FlagsOf(*command)) {
      absl::StrAppend(&script, when, " -l ", flag->name);
      if (flag->letter != nullptr) absl::StrAppend(&script, " -s ", flag->letter);
      if (flag->value != nullptr) {
        absl::StrAppend(&script, " -r", FishValue(CompletionOf(*flag)));
      }
      absl::StrAppend(&script, " -d '", FishText(flag->brief), "'\n");
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
