#include "fallback/reference_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace anemone {

absl::StatusOr<std::unique_ptr<ReferenceModel>> ReferenceModel::Open(
    std::shared_ptr<const OrtRuntime> runtime, const std::string& path,
    const CpuSessionOptions& options) {
  ANEMONE_ASSIGN_OR_RETURN(auto session,
                           CpuSession::FromFile(std::move(runtime), {.path = path}, options));
  return std::unique_ptr<ReferenceModel>(new ReferenceModel(path, std::move(session)));
}

absl::StatusOr<std::vector<CpuValue>> ReferenceModel::Run(
    const std::map<std::string, CpuValue>& inputs) const {
  std::vector<CpuValue> values;
  size_t used = 0;
  for (const CpuPort& port : session_->inputs()) {
    const auto found = inputs.find(port.name);
    used += found != inputs.end();
    values.push_back(found != inputs.end() ? found->second : CpuValue());
  }
  if (used != inputs.size()) {
    const auto name_of = [](std::string* out, const CpuPort& port) { out->append(port.name); };
    const auto key_of = [](std::string* out, const auto& entry) { out->append(entry.first); };
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": want inputs named ", absl::StrJoin(this->inputs(), ", ", name_of),
                     ", found ", absl::StrJoin(inputs, ", ", key_of)));
  }
  return session_->Run(values, std::vector<CpuOutput>(outputs().size()));
}

}  // namespace anemone
