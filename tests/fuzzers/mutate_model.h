// tests/fuzzers/mutate_model.h: changes the fields of a model, so that the result is still a
// protobuf message. Changes of bytes alone would mostly fail at the first check of a reader.
#ifndef ANEMONE_TESTS_FUZZERS_MUTATE_MODEL_H_
#define ANEMONE_TESTS_FUZZERS_MUTATE_MODEL_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace anemone {

enum class MessageKind : uint8_t { kOnnx, kCoreMl };  // onnx.ModelProto, a model of Core ML

// A model with one to four changes: a field set, cleared, copied from elsewhere in the model, or an
// element of a repeated field added, removed or exchanged. "" if `bytes` are not a model.
std::string MutatedModel(absl::string_view bytes, unsigned seed,
                         MessageKind kind = MessageKind::kOnnx);

}  // namespace anemone

#endif  // ANEMONE_TESTS_FUZZERS_MUTATE_MODEL_H_
