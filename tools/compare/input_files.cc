#include "tools/compare/input_files.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/guarded.h"
#include "base/mapped_file.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/read/bindings.h"
#include "importer/read/constant_inputs.h"
#include "importer/read/reader.h"
#include "kernels/custom_domain.h"
#include "tools/compare/array_file.h"

namespace anemone {
namespace {

// The model as its file declares it: nothing is bound or inferred.
absl::StatusOr<Model> ReadDeclared(const Options& options) {
  const std::string& path = options.arguments[0];
  RegisterCustomDomain();
  return Guarded("read the model", [&]() -> absl::StatusOr<Model> {
    ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
    std::vector<std::string> kept = options.settings.overridable;
    for (const auto& [past, present] : options.settings.state) kept.push_back(past);
    return ReadModelFile(file, path, kPayloadFrom, kept);
  });
}

// A size of 0 may be replaced, since some exporters write it for a free dimension.
bool Allows(const Dim& dim, int64_t size) { return dim.size <= 0 || dim.size == size; }

bool Fits(const Value& input, const Shape& shape, const ArrayHeader& array) {
  if (array.type != input.type || array.dims.size() != shape.size()) return false;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (!Allows(shape[a], array.dims[a])) return false;
  }
  return true;
}

// Binds the dimensions of one input.
absl::Status BindToFile(const Value& input, const std::string& file, const ArrayHeader& array,
                        Settings& settings) {
  const Shape shape = input.shape.value_or(Shape(array.dims.size()));
  if (!Fits(input, shape, array)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input '", input.name, "': want ", DataTypeName(input.type), " ",
                     ShapeText(shape), ", ", file, " has ", DataTypeName(array.type), " ",
                     DimsToString(array.dims), "; give an array of that type and shape"));
  }
  std::vector<int64_t> sizes(shape.size(), -1);
  const auto given = settings.shapes.find(input.name);
  if (given != settings.shapes.end()) {
    if (given->second.size() != sizes.size()) return absl::OkStatus();  // loading reports it
    sizes = given->second;
  }
  for (size_t a = 0; a < shape.size(); ++a) {
    const Dim& dim = shape[a];
    const int64_t size = array.dims[a];
    const auto other = [&](const std::string& option) {
      return UsageError(absl::StrCat(
          "input '", input.name, "', dimension ", a,
          dim.symbol.empty() ? "" : absl::StrCat(" ('", dim.symbol, "')"), ": ", file, " has size ",
          size, ", ", option, " gives another; drop the option, or give another file"));
    };
    if (sizes[a] >= 0 && sizes[a] != size) return other(absl::StrCat("--shape ", input.name));
    if (dim.size == size) continue;
    const auto bound = settings.dims.find(dim.symbol);
    if (!dim.symbol.empty() && bound != settings.dims.end() && bound->second != size) {
      return other(absl::StrCat("--dim ", dim.symbol, "=", bound->second));
    }
    if (settings.buckets.contains(dim.symbol)) {
      settings.dims[dim.symbol] = size;
    } else {
      sizes[a] = size;
    }
  }
  settings.shapes[input.name] = std::move(sizes);
  return absl::OkStatus();
}

// The longest of `names` that "NAME=FILE" begins with; null if there is none.
const std::string* NameIn(const std::string& text, const std::vector<std::string>& names) {
  const std::string* best = nullptr;
  for (const std::string& name : names) {
    const bool fits = absl::StartsWith(text, absl::StrCat(name, "="));
    if (fits && (best == nullptr || name.size() > best->size())) best = &name;
  }
  return best;
}

}  // namespace

InputNames NamesOf(const std::vector<PortInfo>& ports, const std::vector<std::string>& constants) {
  InputNames names = {.inputs = {}, .constants = constants};
  names.inputs.reserve(ports.size());
  for (const PortInfo& port : ports) names.inputs.push_back(port.name);
  return names;
}

std::string NoSuchInput(const std::string& name, const InputNames& names) {
  const std::vector<std::string>& constants = names.constants;
  if (std::find(constants.begin(), constants.end(), name) != constants.end()) {
    return ConstantInputText(name);
  }
  return absl::StrCat("the model has no such input; it has ",
                      names.inputs.empty() ? "none" : NearText(name, names.inputs));
}

absl::StatusOr<std::map<std::string, std::string>> InputFiles(const Options& options,
                                                              const InputNames& names) {
  std::map<std::string, std::string> files;
  for (const std::string& text : options.inputs) {
    const std::string* const best = NameIn(text, names.inputs);
    if (best == nullptr) {
      const std::string* const constant = NameIn(text, names.constants);
      const std::string name = constant == nullptr ? text.substr(0, text.find('=')) : *constant;
      return UsageError(absl::StrCat("--input '", text, "': ", NoSuchInput(name, names)));
    }
    if (!files.try_emplace(*best, text.substr(best->size() + 1)).second) {
      return UsageError(
          absl::StrCat("input '", *best, "': --input is given twice for it; drop one"));
    }
  }
  return files;
}

absl::Status BindToFiles(Options& options) {
  if (options.inputs.empty()) return absl::OkStatus();
  const absl::StatusOr<Model> model = ReadDeclared(options);
  if (!model.ok()) return absl::OkStatus();  // loading reports the error
  // An adapter may make an input of what is a constant here; who loads the model knows.
  InputNames names = {.inputs = model->graph.constant_inputs, .constants = {}};
  for (ValueId id : model->graph.inputs) names.inputs.push_back(model->graph.values[id].name);
  ANEMONE_ASSIGN_OR_RETURN(auto files, InputFiles(options, names));
  for (ValueId id : model->graph.inputs) {
    const Value& input = model->graph.values[id];
    const auto file = files.find(input.name);
    if (file == files.end() || !input.other_type.empty()) continue;
    std::error_code error;
    if (std::filesystem::is_fifo(file->second, error)) continue;  // it can be read only once
    ANEMONE_ASSIGN_OR_RETURN(const ArrayHeader array, ReadArrayHeader(file->second));
    ANEMONE_RETURN_IF_ERROR(BindToFile(input, file->second, array, options.settings));
  }
  return absl::OkStatus();
}

absl::Status RequireSizes(const std::vector<PortInfo>& ports,
                          const std::vector<std::string>& constants, const Options& options) {
  ANEMONE_ASSIGN_OR_RETURN(const auto files, InputFiles(options, NamesOf(ports, constants)));
  // Neither a file nor a default needs a size.
  const auto is_given = [&](const std::string& name, bool has_default) {
    return files.contains(name) || (has_default && !options.ranges.contains(name));
  };
  const bool all_known = std::all_of(ports.begin(), ports.end(), [&](const PortInfo& port) {
    // A port without dims is a scalar, or its rank is not known.
    const bool known = !port.dims.empty() && std::all_of(port.dims.begin(), port.dims.end(),
                                                         [](int64_t size) { return size >= 0; });
    return known || is_given(port.name, port.has_default);
  });
  if (all_known) return absl::OkStatus();
  ANEMONE_ASSIGN_OR_RETURN(Model model, ReadDeclared(options));
  ANEMONE_RETURN_IF_ERROR(
      BindDimensions(model, {.dims = options.settings.dims, .shapes = options.settings.shapes}));
  for (ValueId id : model.graph.inputs) {
    Value& input = model.graph.values[id];
    if (is_given(input.name, model.graph.defaults.contains(id))) input.shape = Shape();
  }
  return RequireBound(model);
}

}  // namespace anemone
