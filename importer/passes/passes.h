// importer/passes/passes.h: declares every pass, for the list in pipeline.cc. The comment at each
// definition says what the pass does.
#ifndef ANEMONE_IMPORTER_PASSES_PASSES_H_
#define ANEMONE_IMPORTER_PASSES_PASSES_H_

#include "absl/status/statusor.h"
#include "importer/edit.h"

namespace anemone {

absl::StatusOr<bool> DropNanGuard(GraphEditor& g, NodeId id);  // dequantize.cc
absl::StatusOr<bool> DropQuantizedClip(GraphEditor& g, NodeId id);
absl::StatusOr<bool> DropRequantize(GraphEditor& g, NodeId id);
absl::StatusOr<bool> MergeDequantize(GraphEditor& g, NodeId id);
absl::StatusOr<bool> MoveDequantize(GraphEditor& g, NodeId id);
absl::StatusOr<bool> DropDead(GraphEditor& g, NodeId id);      // drop_dead.cc
absl::StatusOr<bool> DropEmpty(GraphEditor& g, NodeId id);     // drop_empty.cc
absl::StatusOr<bool> DropIdentity(GraphEditor& g, NodeId id);  // drop_identity.cc
absl::StatusOr<bool> FuseCasts(GraphEditor& g, NodeId id);     // fuse_casts.cc
absl::StatusOr<bool> FuseReshapes(GraphEditor& g, NodeId id);  // fuse_moves.cc
absl::StatusOr<bool> FuseTransposes(GraphEditor& g, NodeId id);
absl::StatusOr<bool> FusePads(GraphEditor& g, NodeId id);       // fuse_pads.cc
absl::StatusOr<bool> FoldBatchNorm(GraphEditor& g, NodeId id);  // fold_affine.cc
absl::StatusOr<bool> FoldBias(GraphEditor& g, NodeId id);
absl::StatusOr<bool> FoldScale(GraphEditor& g, NodeId id);
absl::StatusOr<bool> FoldIntoConv(GraphEditor& g, NodeId id);
absl::StatusOr<bool> WidenIntegerProduct(GraphEditor& g, NodeId id);  // integer_products.cc

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_PASSES_PASSES_H_
