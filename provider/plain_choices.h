// provider/plain_choices.h: steps of plain parts (plain_steps.h) that choose between elements.
#ifndef ANEMONE_PROVIDER_PLAIN_CHOICES_H_
#define ANEMONE_PROVIDER_PLAIN_CHOICES_H_

#include <optional>

#include "provider/plain_node.h"
#include "provider/plain_steps.h"

namespace anemone {

// Between integers, or between two numbers: masks that are added to scores.
std::optional<PlainStep> WhereStep(const PlainNode& node);
// Of int64: lengths.
std::optional<PlainStep> ClipStep(const PlainNode& node);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PLAIN_CHOICES_H_
