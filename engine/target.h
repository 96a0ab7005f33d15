// engine/target.h: a Target is one of the compile targets of engine/tables/targets.json, with
// its limits and capabilities.
//
//   ANEMONE_ASSIGN_OR_RETURN(const Target* t, FindTarget("m1-pro"));
//   t->name();                              // "H13g"
//   t->limit(Limit::kMaxTensorW)->value;    // 16384
//   t->Has(Cap::kTextureEngine);            // {false, decompile-derived}
//
// Targets are immutable and are never destroyed. A fact that the table does not publish is nullopt:
// it is not checked, and it makes the status of a verdict `unknown`.
#ifndef ANEMONE_ENGINE_TARGET_H_
#define ANEMONE_ENGINE_TARGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/rule.h"
#include "target_fields.h"  // generated

namespace anemone {

class Compressed;
struct TargetRecord;

// A fact and how far it can be trusted.
template <class T>
struct Known {
  T value;
  Status status;
};

class Target {
 public:
  explicit Target(const TargetRecord& record) : record_(record) {}

  absl::string_view name() const;         // "H13"
  absl::string_view option_name() const;  // "h13", as --target and JSON spell it
  absl::string_view family() const;       // "A13", or "" if it is not known
  std::optional<int> family_index() const;
  absl::string_view products() const;  // "M1, A13"
  bool mil_route() const;              // the conversion route exists (H13 and later)
  Status status() const;
  absl::string_view source() const;

  std::optional<Known<int64_t>> limit(Limit limit) const;
  std::optional<Known<bool>> Has(Cap cap) const;
  absl::Span<const int> list(LimitList list) const;
  // Whether weights of this form (weight_streaming_forms: "int4_lut", "sparse", "int8",
  // "blockwise") stay compressed until they are used. Weights of other forms become fp16 when
  // compiled.
  std::optional<bool> Streams(absl::string_view form) const;

 private:
  const TargetRecord& record_;
};

// The form of a compressed weight, as Streams() takes it. "int8" has one scale for the tensor or
// for each channel; scales for blocks, and 4-bit codes, are "blockwise".
absl::string_view StreamedFormOf(const Compressed& weight);

// All targets, in the table's order.
absl::Span<const Target> AllTargets();

// Finds a target by its name or by a product, in upper or lower case: "h13", "H13g", "m1",
// "M1-Pro", "a15". The message of kNotFound lists similar names.
absl::StatusOr<const Target*> FindTarget(absl::string_view name);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_TARGET_H_
