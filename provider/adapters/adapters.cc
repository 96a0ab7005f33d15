#include "provider/adapters/adapters.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/annotated.h"
#include "base/near_names.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "importer/elements.h"
#include "importer/read/constant_inputs.h"
#include "provider/ports.h"

namespace anemone {
namespace {

// A matrix, transposed and times `scale`, in the first rows and columns of a tensor of zeros, which
// has the last two dimensions of the input.
absl::StatusOr<Tensor> Placed(const Tensor& stored, double scale, const PortInfo& port) {
  const int64_t rows = stored.dims()[1], columns = stored.dims()[0];
  const std::vector<int64_t> dims(port.dims.end() - 2, port.dims.end());
  const int64_t to_rows = dims[0], to_columns = dims[1];
  if (rows > to_rows || columns > to_columns) {
    return absl::InvalidArgumentError(
        absl::StrCat("a matrix of ", DimsToString(stored.dims()), " does not fit the input of ",
                     DimsToString(dims), " (transposed); give an adapter of this model"));
  }
  std::vector<double> placed(to_rows * to_columns, 0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      placed[r * to_columns + c] = scale * ElementAsDouble(stored, c * rows + r);
    }
  }
  return FromDoubles(port.type, dims, placed);
}

std::set<std::string> InputsOf(const AdapterModules& modules) {
  std::set<std::string> inputs;
  for (const auto& [module, rank] : modules.ranks) {
    for (const char matrix : {'A', 'B'}) inputs.insert(AdapterInput(module, matrix));
  }
  return inputs;
}

}  // namespace

absl::StatusOr<Adapters> Adapters::Read(const std::map<std::string, std::string>& files,
                                        bool by_row) {
  Adapters adapters;
  adapters.modules_.by_row = by_row;
  for (const auto& [name, path] : files) {
    ANEMONE_ASSIGN_OR_RETURN(AdapterFile file, ReadAdapterFile(path));
    for (const auto& [module, low] : file.modules) {
      int64_t& rank = adapters.modules_.ranks[module];
      rank = std::max(rank, low.a.dims()[0]);
    }
    if (by_row && !file.inputs.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path,
                       ": has values of inputs of the model, which all rows share; by row "
                       "give adapters of PEFT"));
    }
    adapters.files_[name] = std::move(file);
  }
  return adapters;
}

std::shared_ptr<const AdapterModules> Adapters::modules() const {
  return modules_.ranks.empty() ? nullptr : std::make_shared<const AdapterModules>(modules_);
}

std::vector<std::string> Adapters::GivenInputs() const {
  std::set<std::string> names;
  for (const auto& [name, file] : files_) {
    for (const auto& [input, tensor] : file.inputs) names.insert(input);
  }
  return {names.begin(), names.end()};
}

absl::Status Adapters::FitTo(const Graph& graph, const std::vector<PortInfo>& inputs) {
  const std::set<std::string> ours = InputsOf(modules_);
  if (modules_.by_row) {
    std::string batch;
    for (size_t i = inputs.size(); i-- > 0;) {  // ours are the last
      const std::optional<Shape>& shape = graph.values[graph.inputs[i]].shape;
      if (ours.contains(inputs[i].name)) {
        ports_[inputs[i].name] = inputs[i];
        bound_rows_ = inputs[i].dims[0];
        batch = shape->front().symbol;
      } else if (shape && !shape->empty() && !batch.empty() && shape->front().symbol == batch) {
        batch_inputs_.push_back(inputs[i].name);
      }
    }
  }
  for (const auto& [name, file] : files_) {
    const std::string where = absl::StrCat("adapter '", Printable(name), "'");
    Matrices& values = values_[name];
    for (const auto& [module, low] : file.modules) {
      for (const char matrix : {'A', 'B'}) {
        const std::string input = AdapterInput(module, matrix);
        const PortInfo* port = FindPort(inputs, input);
        if (port == nullptr) return absl::InternalError(absl::StrCat("no input ", input));
        const bool is_a = matrix == 'A';
        const Tensor& stored = is_a ? low.a : low.b;
        // The axis that is not the rank must be the product's.
        const int64_t got = stored.dims()[is_a ? 1 : 0];
        const int64_t want = is_a ? *(port->dims.end() - 2) : port->dims.back();
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
      if (IsConstantInput(graph, input)) {  // of a compiled model
        return absl::InvalidArgumentError(
            absl::StrCat(where, ", input '", Printable(input), "': ", ConstantInputText(input)));
      }
      std::vector<std::string> names;
      names.reserve(inputs.size());
      for (const PortInfo& known : inputs) {
        if (!ours.contains(known.name)) names.push_back(known.name);
      }
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

absl::StatusOr<const Adapters::Matrices*> Adapters::Find(const std::string& adapter) const {
  const auto found = values_.find(adapter);
  if (found != values_.end()) return &found->second;
  if (adapter.empty()) return nullptr;
  return Unknown(adapter);
}

absl::Status Adapters::AddTo(const std::string& adapter, NamedValues& inputs) const {
  ANEMONE_ASSIGN_OR_RETURN(const Matrices* matrices, Find(adapter));
  if (modules_.by_row && !modules_.ranks.empty()) {
    ANEMONE_ASSIGN_OR_RETURN(const int64_t rows, RowsOf(inputs));
    return AddRows(std::vector<std::string>(rows, adapter), inputs);
  }
  if (matrices == nullptr) return absl::OkStatus();
  for (const auto& [name, tensor] : *matrices) inputs.try_emplace(name, tensor);
  return absl::OkStatus();
}

// The size of the batch of a run.
absl::StatusOr<int64_t> Adapters::RowsOf(const NamedValues& inputs) const {
  if (bound_rows_ >= 0) return bound_rows_;
  std::optional<int64_t> rows;
  std::string of;
  for (const std::string& name : batch_inputs_) {
    const auto found = inputs.find(name);
    if (found == inputs.end() || found->second.kind != OnnxValue::Kind::kTensor) continue;
    const std::vector<int64_t>& dims = found->second.tensor.dims();
    if (dims.empty()) continue;
    // Else an error would name inputs that the user did not give.
    if (dims[0] < 1) {
      return absl::InvalidArgumentError(absl::StrCat("adapter: by row: input '", Printable(name),
                                                     "' has no rows; give at least one"));
    }
    if (rows && *rows != dims[0]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "adapter: by row: input '", Printable(of), "' has ", *rows, " rows and input '",
          Printable(name), "' has ", dims[0], "; give the rows of one batch"));
    }
    rows = dims[0];
    of = name;
  }
  if (rows) return *rows;
  return absl::InvalidArgumentError(absl::StrCat(
      "adapter: by row: give an input that has the rows of the batch: ",
      absl::StrJoin(batch_inputs_, ", ",
                    [](std::string* out, const std::string& n) { *out += Printable(n); })));
}

absl::Status Adapters::AddRows(const std::vector<std::string>& rows, NamedValues& inputs) const {
  if (!modules_.by_row) {
    return absl::FailedPreconditionError(
        "adapter: the session gives one adapter to all rows of a run; load it with "
        "Settings::adapter_rows (in Python adapter_rows=True)");
  }
  if (modules_.ranks.empty()) {
    for (const std::string& row : rows) ANEMONE_RETURN_IF_ERROR(Find(row).status());
    return absl::OkStatus();
  }
  ANEMONE_ASSIGN_OR_RETURN(const int64_t wanted, RowsOf(inputs));
  if (static_cast<int64_t>(rows.size()) != wanted) {
    return absl::InvalidArgumentError(absl::StrCat("adapter: ", rows.size(), " names for the ",
                                                   wanted,
                                                   " rows of the batch; give one for each row"));
  }
  ANEMONE_ASSIGN_OR_RETURN(const auto matrices, Stacked(rows));
  for (const auto& [name, tensor] : *matrices) inputs.try_emplace(name, tensor);
  return absl::OkStatus();
}

// The matrices of each row, one behind the other; zeros of a row without an adapter.
absl::StatusOr<std::shared_ptr<const Adapters::Matrices>> Adapters::Stacked(
    const std::vector<std::string>& rows) const {
  {
    const std::lock_guard<std::mutex> lock(last_->mutex);
    if (last_->matrices != nullptr && last_->rows == rows) return last_->matrices;
  }
  std::vector<const Matrices*> of_rows;
  of_rows.reserve(rows.size());
  for (const std::string& row : rows) {
    ANEMONE_ASSIGN_OR_RETURN(of_rows.emplace_back(), Find(row));
  }
  auto made = std::make_shared<Matrices>();
  for (const auto& [name, port] : ports_) {
    std::vector<int64_t> dims = port.dims;
    dims[0] = static_cast<int64_t>(rows.size());
    Tensor all = Tensor::Zeros(port.type, dims);
    auto* to = all.mutable_data<std::byte>();
    const size_t row_bytes = rows.empty() ? 0 : all.bytes().size() / rows.size();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (of_rows[i] == nullptr) continue;
      const auto found = of_rows[i]->find(name);
      if (found == of_rows[i]->end()) continue;
      std::copy_n(found->second.bytes().data(), row_bytes, to + i * row_bytes);
    }
    made->emplace(name, std::move(all));
  }
  const std::lock_guard<std::mutex> lock(last_->mutex);
  last_->rows = rows;
  last_->matrices = made;
  return last_->matrices;
}

std::vector<PortInfo> Adapters::WithoutOurs(const std::vector<PortInfo>& ports) const {
  const std::set<std::string> ours = InputsOf(modules_);
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
