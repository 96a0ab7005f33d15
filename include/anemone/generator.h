// anemone/generator.h: continues a list of tokens with a decoder that has a cache.
//
//   auto generator = anemone::Generator::Load("decoder.onnx", {.target = "m1"});
//   if (!generator.ok()) return Fail(generator.status());
//   absl::Status begun = generator->Start({1, 15043, 29892}, {.temperature = 0.8, .seed = 7});
//   for (int i = 0; i < 20 && begun.ok(); ++i) std::cout << generator->Next().value() << " ";
//
// The model is one as exporters write them: input_ids, attention_mask and position_ids (the last
// two only if it has them), a cache of keys and values (past_key_values.* and present.*,
// docs/state.md) whose length is free, and logits.
#ifndef ANEMONE_GENERATOR_H_
#define ANEMONE_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/session.h"
#include "anemone/settings.h"

namespace anemone {

// How a token is chosen.
struct Sampling {
  double temperature = 0;         // 0: always the likeliest token
  int64_t top_k = 0;              // only the K likeliest tokens; 0: all
  double top_p = 1;               // only as many of the likeliest as have this share together
  double repetition_penalty = 1;  // above 1: tokens that were used are less likely
  uint64_t seed = 0;
};

class Generator {
 public:
  // Errors: those of Session::Load(); kInvalidArgument if the model is not such a decoder. Of
  // `settings`, `state` may name the pairs; by default they are found by their names.
  static absl::StatusOr<Generator> Load(const std::string& path, const Settings& settings = {});
  static absl::StatusOr<Generator> LoadBytes(absl::string_view model,
                                             const Settings& settings = {});

  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  // Empties the cache and runs the model on a prompt, in parts of 32 to 1,024 tokens and the rest
  // token by token. kInvalidArgument: no token, or a field of `sampling` is wrong; else the error
  // of the run.
  absl::Status Start(absl::Span<const int64_t> prompt, const Sampling& sampling = {});
  // Chooses the next token from logits(). The model runs on it when the logits behind it are
  // needed. kFailedPrecondition: before Start().
  absl::StatusOr<int64_t> Next();
  // The logits of the token that comes next, one for each token of the vocabulary.
  absl::StatusOr<std::vector<float>> Logits();

  // The same for several prompts of one length, which are rows of one batch: each has the tokens
  // that it has alone, up to rounding, and products read their weights once for all. Next() and
  // Logits() are those of the first row. kInvalidArgument: no prompt, or other lengths;
  // kFailedPrecondition: TakesBatches() is false.
  absl::Status StartBatch(absl::Span<const std::vector<int64_t>> prompts,
                          const Sampling& sampling = {});
  // The next token of each row.
  absl::StatusOr<std::vector<int64_t>> NextBatch();
  // Whether the first dimension of the tokens and of the caches is free.
  bool TakesBatches() const;

  // Another that has no prompt yet, with the same programs and weights: one for each prompt of a
  // batch. Each may run in a thread of its own.
  Generator Fork() const;

  // The prompt (of the first row), and the tokens that Next() returned.
  const std::vector<int64_t>& tokens() const;
  const Session& session() const;
  // Its inputs and its output of logits; the empty string for an input that the model lacks.
  struct Names {
    std::string ids, mask, positions, logits;
  };
  const Names& names() const;

 private:
  struct State;
  explicit Generator(std::unique_ptr<State> state);
  static absl::StatusOr<Generator> Of(absl::StatusOr<Session> session);
  std::unique_ptr<State> state_;
};

}  // namespace anemone

#endif  // ANEMONE_GENERATOR_H_
