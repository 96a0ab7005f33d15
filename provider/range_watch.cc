#include "provider/range_watch.h"

#include "absl/strings/str_cat.h"
#include "base/fp16.h"
#include "base/printable.h"
#include "engine/unit_kind.h"

namespace anemone {
namespace {

std::string RemedyText(const RangeWarning& warning, absl::string_view option,
                       absl::string_view node) {
  if (warning.unit.empty()) return "";
  const std::string makes = Printable(ValueOf(warning.unit));
  const std::string who = node.empty() ? absl::StrCat("the node that makes '", makes, "'")
                                       : absl::StrCat("node ", node);
  return absl::StrCat("; ", who, warning.enters ? " reads" : " computes",
                      warning.count == 1 ? " it" : " them", warning.enters ? " first: " : ": ",
                      option, "refuse:node:", makes, " runs it on the CPU");
}

}  // namespace

absl::string_view ValueOf(absl::string_view unit) {
  const size_t mark = unit.rfind('#');
  const bool is_number = mark != absl::string_view::npos &&
                         unit.find_first_not_of("0123456789", mark + 1) == absl::string_view::npos;
  return is_number ? unit.substr(0, mark) : unit;
}

std::string ReaderOf(const Network& network, int input) {
  for (const Unit& unit : network.units) {
    for (const Operand& bottom : unit.bottoms) {
      if (bottom.source == Operand::Source::kInput && bottom.index == input) return unit.name;
    }
  }
  return {};
}

std::string MakerOf(const Network& network, int output) {
  Operand from = network.outputs[output].from;
  while (from.source == Operand::Source::kUnit) {
    const Unit& unit = network.units[from.index];
    if (unit.kind == nullptr || !unit.kind->run.is_view || unit.bottoms.empty()) return unit.name;
    from = unit.bottoms[0];
  }
  return {};
}

std::string RangeWarningText(const RangeWarning& warning, absl::string_view option,
                             absl::string_view node) {
  const char* verb = warning.count == 1 ? " is " : " are ";
  const std::string which = absl::StrCat(warning.count, " of ", warning.elements, " values of '",
                                         Printable(warning.value), "'", verb);
  const std::string what =
      warning.enters
          ? absl::StrCat("above ", fp16::kLargest, ", the largest number of fp16, or NaN, and ",
                         warning.count == 1 ? "enters" : "enter", " the engine as infinity")
          : "not finite, because the engine computes in fp16 or because an input is not finite; "
            "`anemone run --hazards` says where it starts";
  return absl::StrCat(which, what, RemedyText(warning, option, node));
}

void RangeWatch::Input(const math::Tally& tally, int64_t elements, absl::string_view name,
                       const std::string& unit) {
  if (tally.overflowed == 0 || input_told_.exchange(true)) return;
  warn_({true, tally.overflowed, elements, std::string(name), unit});
}

void RangeWatch::Output(const math::Tally& tally, int64_t elements, absl::string_view name,
                        const std::string& unit) {
  if (tally.not_finite == 0 || output_told_.exchange(true)) return;
  warn_({false, tally.not_finite, elements, std::string(name), unit});
}

std::vector<std::string> RangeWarnings::Texts(
    const std::function<std::string(absl::string_view)>& node_of) {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (texts_.size() < warnings_.size()) {
    const RangeWarning& warning = warnings_[texts_.size()];
    texts_.push_back(RangeWarningText(warning, "--policy ", node_of(warning.unit)));
  }
  return texts_;
}

}  // namespace anemone
