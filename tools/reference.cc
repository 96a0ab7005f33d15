#include "tools/reference.h"

#include <algorithm>

#include "fallback/reference_model.h"
#include "provider/importing.h"

namespace anemone {

double MillisecondsSince(absl::Time start) {
  return absl::ToDoubleMilliseconds(absl::Now() - start);
}

double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

absl::StatusOr<Reference> RunReference(const std::string& path, const Arrays& inputs,
                                       const Options& options) {
  Reference reference;
  absl::Time start = absl::Now();
  ANEMONE_ASSIGN_OR_RETURN(auto runtime, OpenRuntime(options.threads));
  ANEMONE_ASSIGN_OR_RETURN(auto model, ReferenceModel::Open(runtime, path, {}));
  reference.load = MillisecondsSince(start);
  std::map<std::string, CpuValue> values;
  for (const auto& [name, tensor] : inputs) {
    ANEMONE_ASSIGN_OR_RETURN(values[name], CpuValue::FromTensor(runtime, tensor));
  }
  std::vector<CpuValue> results;
  ANEMONE_ASSIGN_OR_RETURN(reference.run, TimeRuns(options.repeat, [&]() -> absl::Status {
                             ANEMONE_ASSIGN_OR_RETURN(results, model->Run(values));
                             return absl::OkStatus();
                           }));
  for (size_t i = 0; i < results.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(reference.outputs[model->outputs()[i].name], results[i].ToTensor());
  }
  return reference;
}

}  // namespace anemone
