// provider/coreml/free_sizes.h: the sizes of a model's free dimensions for which a package is
// written: a range, or a list. Core ML calls this flexible input shapes.
//
//   ANEMONE_ASSIGN_OR_RETURN(FreeSizes sizes, FreeSizes::Of(settings));   // --dim seq=1..512
//   sizes.Largest();                                                      // {"seq": 512}
#ifndef ANEMONE_PROVIDER_COREML_FREE_SIZES_H_
#define ANEMONE_PROVIDER_COREML_FREE_SIZES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/settings.h"
#include "importer/graph.h"

namespace anemone {

// The smallest and the largest.
using SizeRange = std::pair<int64_t, int64_t>;

// By symbol.
using SizeMap = std::map<std::string, int64_t>;

// "seq=1..512"; "seq=8" for a range of one size.
std::string TextOfRanges(const std::map<std::string, SizeRange>& ranges);

class FreeSizes {
 public:
  // The ranges or the buckets of the settings. UsageError: both are given, or too many buckets.
  static absl::StatusOr<FreeSizes> Of(const Settings& settings);

  bool empty() const { return ranges_.empty() && lists_.empty(); }
  bool are_listed() const { return !lists_.empty(); }
  SizeMap Smallest() const;
  SizeMap Largest() const;
  // The combinations of the lists; one empty map if there are no lists.
  const std::vector<SizeMap>& All() const { return all_; }
  const std::map<std::string, SizeRange>& ranges() const { return ranges_; }  // by symbol
  // "seq=1..512", "seq=32,64".
  std::string Text() const;

  // UsageError: a symbol that no input of the model has, or an input has a free dimension without
  // sizes.
  absl::Status CheckSymbols(const Graph& graph) const;
  // The bounds of each dimension of an input; a known one has equal bounds.
  std::vector<SizeRange> RangesOf(const Shape& shape) const;
  // The shapes of an input, by All().
  std::vector<std::vector<int64_t>> ShapesOf(const Shape& shape) const;

 private:
  std::map<std::string, SizeRange> ranges_;
  std::map<std::string, std::vector<int64_t>> lists_;  // ascending
  std::vector<SizeMap> all_ = {{}};
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_FREE_SIZES_H_
