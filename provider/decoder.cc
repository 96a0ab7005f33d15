#include "provider/decoder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "math/core/half.h"
#include "provider/ports.h"

namespace anemone {
namespace {

// The port with the first of the names that there is.
const PortInfo* PortNamed(const std::vector<PortInfo>& ports, absl::Span<const char* const> names) {
  for (const char* name : names) {
    if (const PortInfo* port = FindPort(ports, name)) return port;
  }
  return nullptr;
}

absl::Status NotADecoder(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("generate: ", what,
                   "; export the model with a cache (optimum: --task text-generation-with-past)"));
}

// The integers of `rows` prompts: rows x n, or n for a port of rank 1.
absl::StatusOr<Tensor> IntegersOf(const PortInfo& port, int64_t rows,
                                  absl::Span<const int64_t> values) {
  std::vector<int64_t> dims = {rows, static_cast<int64_t>(values.size()) / rows};
  if (port.dims.size() == 1) dims.erase(dims.begin());
  switch (port.type) {
    case DataType::kInt64:
      return Tensor::Int64s(dims, values);
    case DataType::kInt32: {
      const std::vector<int32_t> narrow(values.begin(), values.end());
      return Tensor::Of<int32_t>(DataType::kInt32, dims, narrow);
    }
    case DataType::kFloat: {
      const std::vector<float> real(values.begin(), values.end());
      return Tensor::Floats(dims, real);
    }
    case DataType::kBool: {
      const std::vector<uint8_t> bytes(values.begin(), values.end());
      return Tensor::Of<uint8_t>(DataType::kBool, dims, bytes);
    }
    default:
      return NotADecoder(absl::StrCat("input '", Printable(port.name), "' has the type ",
                                      port.type_text, ", want integers"));
  }
}

}  // namespace

absl::StatusOr<Generator::Names> DecoderNames(const Session& session) {
  const std::vector<PortInfo>& inputs = session.inputs();
  const PortInfo* ids = PortNamed(inputs, {"input_ids", "ids", "tokens"});
  const PortInfo* mask = PortNamed(inputs, {"attention_mask", "mask"});
  const PortInfo* positions = PortNamed(inputs, {"position_ids", "positions", "cache_position"});
  if (ids == nullptr) return NotADecoder("the model has no input input_ids");
  if (ids->dims.size() == 2 && ids->dims[1] > 1) {
    return NotADecoder(absl::StrCat("input '", Printable(ids->name), "' always has ", ids->dims[1],
                                    " tokens, want one or any number"));
  }
  if (ids->dims.size() == 2 && ids->dims[0] > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "generate: input '", Printable(ids->name), "' always has ", ids->dims[0],
        " rows, want one or any number; give its first dimension the size 1, or none"));
  }
  for (const PortInfo& port : inputs) {
    if (&port == ids || &port == mask || &port == positions || port.has_default) continue;
    if (port.name == "use_cache_branch") {
      return absl::InvalidArgumentError(
          "generate: the model is a merged decoder, with branches for with and without a cache "
          "(input 'use_cache_branch'); give the file with a cache (decoder_with_past_model.onnx), "
          "or export with optimum 1.14 or later, whose model.onnx has one branch");
    }
    return NotADecoder(absl::StrCat("input '", Printable(port.name), "' is not known"));
  }
  const PortInfo* logits = PortNamed(session.outputs(), {"logits"});
  if (logits == nullptr && session.outputs().size() == 1) logits = session.outputs().data();
  if (logits == nullptr || !IsFloating(logits->type) || logits->dims.size() != 3) {
    return NotADecoder("the model has no output logits of shape 1 x tokens x vocabulary");
  }
  return Generator::Names{ids->name, mask == nullptr ? "" : mask->name,
                          positions == nullptr ? "" : positions->name, logits->name};
}

absl::StatusOr<std::map<std::string, Tensor>> DecoderInputs(
    const Generator::Names& names, const std::vector<PortInfo>& ports,
    absl::Span<const std::vector<int64_t>> rows, int64_t past, int64_t end) {
  std::map<std::string, Tensor> inputs;
  for (const PortInfo& port : ports) {
    // Positions of rank 1 are those of all rows.
    const auto count = port.dims.size() == 1 ? int64_t{1} : static_cast<int64_t>(rows.size());
    std::vector<int64_t> values;
    values.reserve(count * end);
    for (int64_t row = 0; row < count; ++row) {
      if (port.name == names.ids) {
        values.insert(values.end(), rows[row].begin() + past, rows[row].begin() + end);
      } else if (port.name == names.mask) {
        values.insert(values.end(), end, 1);
        const int64_t most = port.dims.size() == 2 ? port.dims[1] : -1;  // of a cache of fixed size
        if (most >= 0) values.resize((row + 1) * most);
      } else if (port.name == names.positions) {
        for (int64_t i = past; i < end; ++i) values.push_back(i);
      }
    }
    if (values.empty()) continue;
    ANEMONE_ASSIGN_OR_RETURN(inputs[port.name], IntegersOf(port, count, values));
  }
  return inputs;
}

absl::StatusOr<std::vector<std::vector<float>>> LastLogits(const Tensor& logits, int64_t rows) {
  const std::vector<int64_t>& dims = logits.dims();
  const bool is_read = logits.type() == DataType::kFloat || logits.type() == DataType::kFloat16;
  if (!is_read || dims.size() != 3 || dims[0] != rows || dims[1] < 1) {
    return NotADecoder(absl::StrCat("the logits are ", DataTypeName(logits.type()), " ",
                                    DimsToString(dims), ", want float32 or float16 of ", rows,
                                    rows == 1 ? " prompt" : " prompts"));
  }
  std::vector<std::vector<float>> made(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t last = (row + 1) * dims[1] - 1;
    made[row].reserve(dims[2]);
    for (int64_t i = last * dims[2]; i < (last + 1) * dims[2]; ++i) {
      made[row].push_back(logits.type() == DataType::kFloat16
                              ? math::ToFloat(math::Half{logits.at<uint16_t>(i)})
                              : logits.at<float>(i));
    }
  }
  return made;
}

}  // namespace anemone
