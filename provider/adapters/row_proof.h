// provider/adapters/row_proof.h: proves that the matrices of row i of a batch meet the values of
// row i, for adapters by row (importer/adapters.h): the batch must be the first dimension of what
// each product reads. Nodes before it may have moved the batch to another place, as models do that
// compute with (tokens, batch, features).
//
// The proof is that of buckets (importer/padding/padding.h): a batch of 2 that is padded to 3 has
// the results of the batch of 2.
#ifndef ANEMONE_PROVIDER_ADAPTERS_ROW_PROOF_H_
#define ANEMONE_PROVIDER_ADAPTERS_ROW_PROOF_H_

#include "provider/buckets/bucketing.h"

namespace anemone {

// The same import, of a model that has `input`, a matrix of an adapter by row. Of sizes that can be
// planned it fails where there is no proof: kFailedPrecondition, with the node.
Bucketing::Import WithRowProof(Bucketing::Import import, std::string input);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ADAPTERS_ROW_PROOF_H_
