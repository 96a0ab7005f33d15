#include "tools/command/setting_flags.h"

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/target_names.h"
#include "kernels/lowering.h"
#include "provider/settings.h"

namespace anemone {
namespace {

// A setting whose flag has other texts or choices in some commands.
struct FlagVariant {
  const char* setting;
  unsigned commands;
  const char *value, *fallback, *brief, *help;  // null: as the setting has it
  std::vector<std::string> (*choices)();
  std::vector<std::string> (*next_choices)();
};

// "latency", "refuse:Conv"; several units are separated by commas.
std::vector<std::string> PolicyNames() {
  std::vector<std::string> names = {"max-engine", "latency", "fewest-segments", "cpu",
                                    "insist:fp16-range"};
  for (const std::string& type : UnitTypes()) names.push_back(absl::StrCat("refuse:", type));
  return names;
}

const FlagVariant kVariants[] = {
    {.setting = "target",
     .commands = kReadsModel & ~kTakesSeveralTargets,
     .value = "NAME",
     .brief = "Plan and compile for this target.",
     .help = "One target or product name in any case (h13, m1-pro, A15); `check` and `confirm` "
             "take several. `anemone targets` lists them.",
     .choices = TargetAndProductNames},
    {.setting = "route",
     .commands = kConfirm,
     .fallback = "both for a MIL operation, netplist for a Type of the netplist",
     .brief = "Ask only this compile path of the engine: netplist or mil."},
    {.setting = "policy",
     .commands = kReadsModel,
     .choices = PolicyNames,
     .next_choices = UnitTypes},
};

void Vary(const FlagVariant& variant, Flag& flag) {
  flag.commands &= variant.commands;
  if (variant.value != nullptr) flag.value = variant.value;
  if (variant.fallback != nullptr) flag.fallback = variant.fallback;
  if (variant.brief != nullptr) flag.brief = variant.brief;
  if (variant.help != nullptr) flag.help = variant.help;
  if (variant.choices != nullptr) flag.choices = variant.choices;
  flag.next_choices = variant.next_choices;
}

}  // namespace

std::vector<Flag> SettingFlags() {
  std::vector<Flag> flags;
  for (const Setting& setting : AllSettings()) {
    if ((setting.entries & (kReadsModel | kConfirm | kPatch)) == 0) continue;  // not of the command
    const bool repeats =
        absl::StartsWith(setting.type, "Mapping") || absl::StartsWith(setting.type, "Sequence");
    const bool shows_default = setting.value != nullptr && *setting.fallback != '\0';
    flags.push_back({.name = setting.flag,
                     .value = setting.value,
                     .commands = setting.entries,
                     .fallback = shows_default ? setting.fallback : nullptr,
                     .brief = setting.brief,
                     .help = repeats ? absl::StrCat(setting.help, *setting.help == '\0' ? "" : " ",
                                                    "Can be given several times.")
                                     : setting.help,
                     .choices = setting.choices,
                     .store = [&setting](Options& o, const std::string& value) {
                       if (absl::string_view(setting.name) != "target") {
                         o.setting_words.push_back(absl::StrCat("--", setting.flag));
                         if (setting.value != nullptr) o.setting_words.push_back(value);
                       }
                       return setting.store(o.settings, value);
                     }});
    for (const FlagVariant& variant : kVariants) {
      if (absl::string_view(setting.name) != variant.setting) continue;
      Flag varied = flags.back();
      Vary(variant, varied);
      flags.back().commands &= ~variant.commands;
      flags.push_back(std::move(varied));
    }
  }
  return flags;
}

}  // namespace anemone
