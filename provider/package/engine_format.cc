#include "provider/package/engine_format.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/constant.h"
#include "engine/formats/mil_emitter.h"
#include "engine/formats/netplist_folder.h"
#include "engine/unit_kind.h"
#include "kernels/mil/mil_folder.h"
#include "kernels/mil/mil_network.h"
#include "provider/coreml/package_writer.h"

namespace anemone {
namespace {

UnitNote NoteOf(const Network& network, int unit, absl::string_view why) {
  if (unit < 0) return {"", "", std::string(why)};
  return {network.units[unit].name, network.units[unit].kind->type, std::string(why)};
}

FormStatus LeastForm(const NetplistOptions& options) {
  return options.verified_only ? FormStatus::kKnown : FormStatus::kUnverified;
}

// Composed forms are preferred to keys that have not been seen to compile.
absl::StatusOr<Network> PrepareNetplist(const Network& network, const Target& target) {
  return ComposeForms(network, FormStatus::kKnown, target);
}

Unwritable JudgeNetplist(const Network& network, const Target& target,
                         const NetplistOptions& options) {
  Unwritable found;
  for (size_t i = 0; i < network.units.size(); ++i) {
    const UnitForm form = FormOf(network.units[i], network.BottomsOf(network.units[i]));
    if (form.status == FormStatus::kKnown) continue;
    (form.status < LeastForm(options) ? found.missing : found.unverified)
        .push_back(NoteOf(network, static_cast<int>(i), form.why));
  }
  const NetworkVerdict checked = CheckNetwork(network, target, Route::kNetplist);
  if (!checked.verdict.accepted) {
    found.missing.push_back(
        NoteOf(network, checked.unit,
               absl::StrCat("the form in which it would be written is refused: ",
                            checked.verdict.message)));
  }
  return found;
}

absl::StatusOr<PortNames> SaveAsNetplist(const Network& network, const Target&,
                                         const NetplistOptions& options,
                                         const std::string& folder) {
  return SaveNetplist(network, LeastForm(options), options.form, folder);
}

absl::StatusOr<Network> PrepareMil(const Network& network, const Target&) { return network; }

// Checks that the target accepts the statements of the MIL program. They have intermediate tensors
// that the network does not have, and these may exceed other limits. (For example, a matrix product
// has its rows on the height, which has another limit than the channels.)
absl::Status ReadAsMil(const Network& network, const Target& target) {
  auto nowhere = [](const Tensor&, absl::string_view) { return int64_t{0}; };
  ANEMONE_ASSIGN_OR_RETURN(MilText written, WriteMilProgram(network, target, nowhere));
  auto zeros = [](const MilBlob&, DataType type, std::vector<int64_t> dims) {
    return ZeroFill(type, std::move(dims));
  };
  NetworkBuilder c(target, Route::kMil);
  absl::Status status = ReadMilProgram(written.program, zeros, c);
  if (!c.refusal()) return status;
  return absl::UnimplementedError(
      absl::StrCat("the target refuses its MIL program: ", c.refusal()->message));
}

Unwritable JudgeMil(const Network& network, const Target& target, const NetplistOptions&) {
  Unwritable found;
  for (const MilRefusal& refusal : RefusedByMil(network, target)) {
    found.missing.push_back(NoteOf(network, refusal.unit, refusal.status.message()));
  }
  if (!found.missing.empty()) return found;
  if (absl::Status status = ReadAsMil(network, target); !status.ok()) {
    found.missing.push_back(NoteOf(network, -1, status.message()));
  }
  return found;
}

absl::StatusOr<PortNames> SaveAsMil(const Network& network, const Target& target,
                                    const NetplistOptions&, const std::string& folder) {
  return SaveMil(network, target, folder);
}

absl::StatusOr<PortNames> SaveAsPackage(const Network& network, const Target& target,
                                        const NetplistOptions&, const std::string& folder) {
  return SaveSegmentPackage(network, target, folder);
}

constexpr EngineFormat kFormats[] = {
    {"netplist", Route::kNetplist, PrepareNetplist, JudgeNetplist, SaveAsNetplist, "", false},
    {"mil", Route::kMil, PrepareMil, JudgeMil, SaveAsMil, "", true},
    {"mlpackage", Route::kMil, PrepareMil, JudgeMil, SaveAsPackage, ".mlpackage", true},
};

}  // namespace

absl::StatusOr<const EngineFormat*> FindEngineFormat(absl::string_view name,
                                                     const NetplistOptions& options) {
  const EngineFormat* format =
      std::find_if(std::begin(kFormats), std::end(kFormats),
                   [&](const EngineFormat& row) { return name == row.name; });
  if (format == std::end(kFormats)) {
    return absl::InvalidArgumentError(
        absl::StrCat("format '", name, "': want netplist, mil or mlpackage"));
  }
  const bool asks_netplist = options.verified_only || options.form == PropertyListForm::kBinary;
  if (asks_netplist && format->route != Route::kNetplist) {
    return absl::InvalidArgumentError(
        absl::StrCat("format '", name,
                     "': --verified-only and --binary apply to netplists only; leave them out, or "
                     "use --to netplist"));
  }
  return format;
}

}  // namespace anemone
