// engine/software/part_reads.h: lets units read operands where these are, with two axes exchanged
// and in two parts, instead of copies that other units make. The attention of a decoder reads the
// old rows of its cache and the new ones: without this, a Concat and a Transpose copy the whole
// cache for each token.
//
//   ReadParts(network, prepared);  // before units are fused and placed
#ifndef ANEMONE_ENGINE_SOFTWARE_PART_READS_H_
#define ANEMONE_ENGINE_SOFTWARE_PART_READS_H_

#include <vector>

#include "engine/network.h"
#include "engine/unit_kind.h"

namespace anemone {

// How a bottom is read. Its rows are along C, or along H if C and H are `swapped`. If it is
// `split`, the next operand has more rows, which come behind its own.
struct PartRead {
  bool is_readable = false;  // the unit can read this bottom so
  bool swapped = false, split = false;
};
using PartReads = std::vector<PartRead>;  // by bottom, as the unit was lowered

// The prepared data of a unit that can read bottoms so, and what it holds; null if it is other
// data.
Prepared MakePartReads(PartReads reads);
const PartReads* AsPartReads(const Prepared& prepared);

// Replaces operands of units with such data by those that a Transpose or a Concat of two copies.
// Units whose value is then read no more lose their bottoms: IsUnread(). Every other unit that runs
// has a bottom. `prepared` is by unit.
void ReadParts(Network& network, std::vector<Prepared>& prepared);
inline bool IsUnread(const Unit& unit) { return unit.bottoms.empty(); }

}  // namespace anemone

#endif  // ANEMONE_ENGINE_SOFTWARE_PART_READS_H_
