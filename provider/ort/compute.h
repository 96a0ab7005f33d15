// provider/ort/compute.h: runs a fused node of ONNX Runtime as a program of a device. Tensors are
// converted to the program's surfaces and back, in one step each.
#ifndef ANEMONE_PROVIDER_ORT_COMPUTE_H_
#define ANEMONE_PROVIDER_ORT_COMPUTE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "base/idle_pool.h"
#include "engine/device.h"
#include "engine/surface.h"
#include "engine/target.h"
#include "onnx/onnx_pb.h"
#include "provider/ort/ort_graph.h"
#include "provider/package/package.h"
#include "provider/range_watch.h"
#include "provider/trace.h"

struct OrtApi;
struct OrtKernelContext;

namespace anemone {

// The computation of a fused node: a network, whose ports are tensors with names, and outputs that
// are constants.
struct FusedNetwork {
  PackagedSegment segment;
  absl::flat_hash_map<std::string, Tensor> constants;
};

class FusedProgram {
 public:
  // `names` are the fused node's, `types` those of the values of its graph: ONNX Runtime makes the
  // outputs of these types. The program copies the weights, so the network is not needed
  // afterwards. Errors: kInvalidArgument (the ports do not match the node's inputs and outputs),
  // those of Device::Compile.
  static absl::StatusOr<std::unique_ptr<FusedProgram>> Make(
      const OrtApi& api, std::shared_ptr<Device> device, const Target& target, Route route,
      const FusedNetwork& fused, const NodeNames& names,
      const absl::flat_hash_map<std::string, onnx::TypeProto>& types);

  // Runs in the caller's oneTBB arena. Thread-safe. `trace` may be null.
  // Errors: kInvalidArgument (an input does not have the planned type and shape).
  absl::Status Run(OrtKernelContext* context, RangeWatch& watch, Trace* trace);

 private:
  struct Port {
    int index = 0;  // of the fused node
    PackagedPort tensor;
    SurfaceLayout layout;
    std::string unit;  // that reads or computes it
  };
  struct Constant {
    int index = 0;
    Tensor tensor;
  };
  using Surfaces = std::vector<Surface>;  // inputs, then outputs

  FusedProgram(const OrtApi& api, std::shared_ptr<Device> device, std::string name)
      : api_(api), device_(std::move(device)), name_(std::move(name)) {}

  absl::StatusOr<std::unique_ptr<Surfaces>> TakeSurfaces();
  absl::Status ReadInputs(OrtKernelContext* context, const Surfaces& surfaces,
                          RangeWatch& watch) const;
  absl::Status RunProgram(const Surfaces& surfaces, Trace* trace) const;
  absl::Status WriteOutputs(OrtKernelContext* context, const Surfaces& surfaces,
                            RangeWatch& watch) const;
  absl::StatusOr<std::byte*> OutputMemory(OrtKernelContext* context, int index,
                                          const std::vector<int64_t>& dims) const;

  const OrtApi& api_;
  const std::shared_ptr<Device> device_;
  const std::string name_;
  std::unique_ptr<Program> program_;
  std::vector<Port> inputs_, outputs_;
  std::vector<Constant> constants_;

  IdlePool<std::unique_ptr<Surfaces>> idle_;
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_ORT_COMPUTE_H_
