// importer/write/compressed_nodes.h: converts between compressed constants and the ONNX nodes that
// represent them:
//   int8, int4        DequantizeLinear of integers, with scales per tensor, axis or block;
//                     when read, also a Cast of integers to float and a Mul by scales
//   palette           Gather of a table by indices of 8 or 4 bits, which a Cast widens
//   sparse            a sparse initializer
#ifndef ANEMONE_IMPORTER_WRITE_COMPRESSED_NODES_H_
#define ANEMONE_IMPORTER_WRITE_COMPRESSED_NODES_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "importer/graph.h"
#include "onnx/onnx_pb.h"

namespace anemone {

// The result of `node` as a compressed constant, if its inputs are constants, one of which is not
// small, and it has one of the forms above or transposes such a matrix. Its elements are not
// expanded. nullopt for other nodes. kInvalidArgument or kOutOfRange, with the node's name: scales
// that do not fit or are not numbers, or an index outside its table.
absl::StatusOr<std::optional<Tensor>> CompressedByRule(const Model& model, const Graph& graph,
                                                       const Node& node);

// What DequantizeLinear makes of constants, compressed. `zero_points` may be null. Errors: those of
// ScaleGrid::Of() and Compressed::Affine().
absl::StatusOr<Tensor> Dequantized(const Tensor& codes, const Tensor& scales,
                                   const Tensor* zero_points, int64_t axis, int64_t block_size);

// The rules of single operators, which importer/operators/operators.h names. Input 0 is a constant.
absl::StatusOr<std::optional<Tensor>> CompressedByCast(const Graph& graph, const Node& node);
absl::StatusOr<std::optional<Tensor>> CompressedByDequantizeLinear(const Graph& graph,
                                                                   const Node& node);
absl::StatusOr<std::optional<Tensor>> CompressedByGather(const Graph& graph, const Node& node);
absl::StatusOr<std::optional<Tensor>> CompressedByMul(const Graph& graph, const Node& node);
absl::StatusOr<std::optional<Tensor>> CompressedByTranspose(const Graph& graph, const Node& node);

// Writes a compressed constant called `name` to `out` as nodes or a sparse initializer. The dense
// initializers that it needs are passed to `add`.
void WriteCompressed(
    const std::string& name, const Tensor& constant, onnx::GraphProto* out,
    absl::FunctionRef<void(const std::string& name, const Tensor& initializer)> add);

}  // namespace anemone

#endif  // ANEMONE_IMPORTER_WRITE_COMPRESSED_NODES_H_
