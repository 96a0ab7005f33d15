// provider/decoder.h: the inputs and the result of one run of a decoder.
#ifndef ANEMONE_PROVIDER_DECODER_H_
#define ANEMONE_PROVIDER_DECODER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "anemone/generator.h"
#include "anemone/tensor.h"

namespace anemone {

// Finds the inputs and the output by their names. kInvalidArgument: the model is no decoder that is
// known, and how to export one.
absl::StatusOr<Generator::Names> DecoderNames(const Session& session);

// The arrays for a run on the first `end` tokens of each row of a batch, of which the first `past`
// are in the cache. `ports` are Session::inputs(). kInvalidArgument: one has no type of integers.
absl::StatusOr<std::map<std::string, Tensor>> DecoderInputs(
    const Generator::Names& names, const std::vector<PortInfo>& ports,
    absl::Span<const std::vector<int64_t>> rows, int64_t past, int64_t end);

// The logits of the last token of each row of the batch. kInvalidArgument: they have another shape
// than `rows` x tokens x vocabulary.
absl::StatusOr<std::vector<std::vector<float>>> LastLogits(const Tensor& logits, int64_t rows);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_DECODER_H_
