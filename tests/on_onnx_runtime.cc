#include "tests/on_onnx_runtime.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "base/status_macros.h"
#include "fallback/reference_model.h"
#include "provider/importing.h"
#include "tests/round_trip.h"

namespace anemone {

absl::StatusOr<Tensors> RunOnOnnxRuntime(const std::string& model, const Tensors& inputs) {
  const TemporaryFolder folder(testing::TempDir());
  const std::string path = folder.path() + "/model.onnx";
  std::ofstream(path, std::ios::binary) << model;
  ANEMONE_ASSIGN_OR_RETURN(const auto runtime, OpenRuntime(2));
  ANEMONE_ASSIGN_OR_RETURN(const auto session, ReferenceModel::Open(runtime, path, {}));
  std::map<std::string, CpuValue> values;
  for (const auto& [name, tensor] : inputs) {
    ANEMONE_ASSIGN_OR_RETURN(values[name], CpuValue::FromTensor(runtime, tensor));
  }
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<CpuValue> results, session->Run(values));
  Tensors outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    ANEMONE_ASSIGN_OR_RETURN(outputs[session->outputs()[i].name], results[i].ToTensor());
  }
  return outputs;
}

}  // namespace anemone
