// provider/adapters/adapters.h: the adapters of a session. Their matrices are inputs of its
// programs (importer/adapters.h), so a run with another adapter compiles nothing and copies no
// weight.
//
//   ANEMONE_ASSIGN_OR_RETURN(Adapters adapters, Adapters::Read(settings.adapters, false));
//   importing.adapters = adapters.modules();
//   ANEMONE_RETURN_IF_ERROR(adapters.FitTo(graph, model->inputs));
//   ANEMONE_RETURN_IF_ERROR(adapters.AddTo("german", inputs));
#ifndef ANEMONE_PROVIDER_ADAPTERS_ADAPTERS_H_
#define ANEMONE_PROVIDER_ADAPTERS_ADAPTERS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/session.h"
#include "importer/adapters.h"
#include "provider/adapters/adapter_file.h"
#include "provider/run_inputs.h"

namespace anemone {

class Adapters {
 public:
  // Reads the files, by the name of the adapter. With `by_row`, each row of a batch may have
  // another adapter. Errors: those of ReadAdapterFile(); kInvalidArgument: one of ONNX Runtime by
  // row.
  static absl::StatusOr<Adapters> Read(const std::map<std::string, std::string>& files,
                                       bool by_row);

  // The modules that an adapter changes. Null if no model needs inputs for them.
  std::shared_ptr<const AdapterModules> modules() const;

  // Inputs of the model that an adapter gives (ONNX Runtime's). It may be an initializer too.
  std::vector<std::string> GivenInputs() const;

  // Makes the values of the inputs. `inputs` are PortOf() of graph.inputs. kInvalidArgument: an
  // adapter does not fit the model.
  absl::Status FitTo(const Graph& graph, const std::vector<PortInfo>& inputs);

  // Adds the values of an adapter to those of a run, where they are not given. "" is the adapter of
  // that name, or none. By row, all rows have it. kInvalidArgument: there is no such adapter.
  absl::Status AddTo(const std::string& adapter, NamedValues& inputs) const;

  // The same with an adapter for each row of the batch. kInvalidArgument: there are more or fewer
  // rows. kFailedPrecondition: the adapters were not read by row.
  absl::Status AddRows(const std::vector<std::string>& rows, NamedValues& inputs) const;

  // `ports` without those for modules. One that every adapter gives has a default.
  std::vector<PortInfo> WithoutOurs(const std::vector<PortInfo>& ports) const;

 private:
  using Matrices = std::map<std::string, Tensor>;  // by input
  // The matrices of the last batch: the steps of a decoder have the same rows.
  struct Batch {
    std::mutex mutex;
    std::vector<std::string> rows;
    std::shared_ptr<const Matrices> matrices;
  };

  absl::Status Unknown(const std::string& adapter) const;
  // Null: there is none, and none was asked for.
  absl::StatusOr<const Matrices*> Find(const std::string& adapter) const;
  absl::StatusOr<int64_t> RowsOf(const NamedValues& inputs) const;
  absl::StatusOr<std::shared_ptr<const Matrices>> Stacked(
      const std::vector<std::string>& rows) const;

  AdapterModules modules_;
  std::map<std::string, AdapterFile> files_;
  std::map<std::string, Matrices> values_;  // by adapter

  // By row:
  std::map<std::string, PortInfo> ports_;  // of the matrices
  std::vector<std::string> batch_inputs_;  // inputs whose first dimension is the batch
  int64_t bound_rows_ = -1;                // the size of the batch, if it is bound
  std::shared_ptr<Batch> last_ = std::make_shared<Batch>();
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ADAPTERS_ADAPTERS_H_
