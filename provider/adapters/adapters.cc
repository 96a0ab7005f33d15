#include "provider/adapters/adapters.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/annotated.h"
#include "base/near_names.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "importer/elements.h"
#include "provider/ports.h"

namespace anemone {
namespace {

// A matrix, transposed and times `scale`, in the first rows and columns of a tensor of zeros.
absl::StatusOr<Tensor> Placed(const Tensor& stored, double scale, const PortInfo& port) {
  const int64_t rows = stored.dims()[1], columns = stored.dims()[0];
  const int64_t to_rows = port.dims[0], to_columns = port.dims[1];
  if (rows > to_rows || columns > to_columns) {
    return absl::InvalidArgumentError(absl::StrCat("a matrix of ", DimsToString(stored.dims()),
                                                   " does not fit the input of ",
                                                   DimsToString(port.dims), " (transposed)"));
  }
  std::vector<double> placed(to_rows * to_columns, 0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      placed[r * to_columns + c] = scale * ElementAsDouble(stored, c * rows + r);
    }
  }
  return FromDoubles(port.type, port.dims, placed);
}

}  // namespace

absl::StatusOr<Adapters> Adapters::Read(const std::map<std::string, std::string>& files) {
  Adapters adapters;
  for (const auto& [name, path] : files) {
    ANEMONE_ASSIGN_OR_RETURN(AdapterFile file, ReadAdapterFile(path));
    for (const auto& [module, low] : file.modules) {
      int64_t& rank = adapters.ranks_[module];
      rank = std::max(rank, low.a.dims()[0]);
    }
    adapters.files_[name] = std::move(file);
  }
  return adapters;
}

std::shared_ptr<const AdapterModules> Adapters::modules() const {
  return ranks_.empty() ? nullptr : std::make_shared<const AdapterModules>(ranks_);
}

absl::Status Adapters::FitTo(const std::vector<PortInfo>& inputs) {
  for (const auto& [name, file] : files_) {
    const std::string where = absl::StrCat("adapter '", Printable(name), "'");
    std::map<std::string, Tensor>& values = values_[name];
    for (const auto& [module, low] : file.modules) {
      for (const char matrix : {'A', 'B'}) {
        const std::string input = AdapterInput(module, matrix);
        const PortInfo* port = FindPort(inputs, input);
        if (port == nullptr) return absl::InternalError(absl::StrCat("no input ", input));
        const bool is_a = matrix == 'A';
        const Tensor& stored = is_a ? low.a : low.b;
        // The axis that is not the rank must be the product's.
        const int64_t got = stored.dims()[is_a ? 1 : 0], want = port->dims[is_a ? 0 : 1];
        if (got != want) {
          return absl::InvalidArgumentError(absl::StrCat(
              where, ", module '", Printable(module), "': lora_", input.substr(input.size() - 1),
              " is ", DimsToString(stored.dims()), ", the product has ", want,
              is_a ? " inputs" : " outputs", "; it is an adapter of another model"));
        }
        auto placed = Placed(stored, is_a ? 1 : low.scale, *port);
        if (!placed.ok()) return Annotated(placed.status(), where);
        values[input] = *std::move(placed);
      }
    }
    for (const auto& [input, tensor] : file.inputs) {
      const PortInfo* port = FindPort(inputs, input);
      if (port != nullptr) {
        values[input] = tensor;
        continue;
      }
      std::vector<std::string> names;
      names.reserve(inputs.size());
      for (const PortInfo& known : inputs) names.push_back(known.name);
      return absl::InvalidArgumentError(absl::StrCat(where, ": the model has no input '",
                                                     Printable(input),
                                                     "'; near names: ", NearText(input, names)));
    }
  }
  files_.clear();
  return absl::OkStatus();
}

absl::Status Adapters::Unknown(const std::string& adapter) const {
  std::vector<std::string> names;
  names.reserve(values_.size());
  for (const auto& [name, values] : values_) names.push_back(name);
  const std::string known = names.empty() ? "the session was loaded without adapters"
                                          : absl::StrCat("it has ", NearText(adapter, names));
  return absl::InvalidArgumentError(
      absl::StrCat("adapter '", Printable(adapter), "': the session has no such adapter; ", known));
}

std::vector<PortInfo> Adapters::WithoutOurs(const std::vector<PortInfo>& ports) const {
  std::set<std::string> ours;
  for (const auto& [module, rank] : ranks_) {
    for (const char matrix : {'A', 'B'}) ours.insert(AdapterInput(module, matrix));
  }
  std::vector<PortInfo> others;
  for (const PortInfo& port : ports) {
    if (ours.contains(port.name)) continue;
    others.push_back(port);
    const bool is_given =
        !values_.empty() && std::all_of(values_.begin(), values_.end(), [&](const auto& adapter) {
          return adapter.second.contains(port.name);
        });
    if (is_given) others.back().has_default = true;
  }
  return others;
}

}  // namespace anemone
