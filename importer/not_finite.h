// importer/not_finite.h: finds weights that are NaN or infinite. A network with such weights gives
// no useful results, and the file is usually damaged (orion.json sanitize-weights).
#ifndef ANEMONE_IMPORTER_NOT_FINITE_H_
#define ANEMONE_IMPORTER_NOT_FINITE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "importer/graph.h"

namespace anemone {

// A constant with elements that are not finite.
struct NotFinite {
  std::string name;
  int64_t nans = 0, infinities = 0;
};

// `name` names the tensor. Of a compressed tensor, counts its scales and entries.
NotFinite CountNotFinite(std::string name, const Tensor& tensor);

// The constants of the main graph with NaN, and the weights and biases with infinities. (A mask of
// an attention may be infinite.)
std::vector<NotFinite> FindNotFinite(const Graph& graph);

// "'w' has 2 NaN and 1 infinite element; 3 more initializers have some".
std::string NotFiniteText(const std::vector<NotFinite>& found);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_NOT_FINITE_H_
