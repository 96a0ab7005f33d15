// provider/adapters/adapters.h: the adapters of a session. Their matrices are inputs of its
// programs (importer/adapters.h), so a run with another adapter compiles nothing and copies no
// weight.
//
//   ANEMONE_ASSIGN_OR_RETURN(Adapters adapters, Adapters::Read(settings.adapters));
//   importing.adapters = adapters.modules();
//   ANEMONE_RETURN_IF_ERROR(adapters.FitTo(model->inputs));
//   ANEMONE_RETURN_IF_ERROR(adapters.AddTo("german", inputs));
#ifndef ANEMONE_PROVIDER_ADAPTERS_ADAPTERS_H_
#define ANEMONE_PROVIDER_ADAPTERS_ADAPTERS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "importer/adapters.h"
#include "provider/adapters/adapter_file.h"

namespace anemone {

class Adapters {
 public:
  // Reads the files, by the name of the adapter. Errors: those of ReadAdapterFile().
  static absl::StatusOr<Adapters> Read(const std::map<std::string, std::string>& files);

  // The modules that an adapter changes. Null if no model needs inputs for them.
  std::shared_ptr<const AdapterModules> modules() const;

  // Makes the values of the inputs. kInvalidArgument: an adapter does not fit the model.
  absl::Status FitTo(const std::vector<PortInfo>& inputs);

  // Adds the values of an adapter to those of a run, NamedValues or tensors by name, where they are
  // not given. "" is the adapter of that name, or none. kInvalidArgument: there is no such adapter.
  template <class Values>
  absl::Status AddTo(const std::string& adapter, Values& inputs) const {
    const auto found = values_.find(adapter);
    if (found == values_.end()) return adapter.empty() ? absl::OkStatus() : Unknown(adapter);
    for (const auto& [name, tensor] : found->second) inputs.try_emplace(name, tensor);
    return absl::OkStatus();
  }

  // `ports` without those for modules. One that every adapter gives has a default.
  std::vector<PortInfo> WithoutOurs(const std::vector<PortInfo>& ports) const;

 private:
  absl::Status Unknown(const std::string& adapter) const;

  AdapterModules ranks_;
  std::map<std::string, AdapterFile> files_;
  std::map<std::string, std::map<std::string, Tensor>> values_;  // by adapter and input
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ADAPTERS_ADAPTERS_H_
