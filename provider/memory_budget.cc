#include "provider/memory_budget.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "anemone/compressed.h"
#include "base/byte_sizes.h"
#include "engine/software/memory_plan.h"
#include "provider/surface_plan.h"

namespace anemone {
namespace {

int64_t BytesOf(const Tensor& constant) {
  if (constant.type() == DataType::kString) return 0;
  return constant.compressed() != nullptr ? constant.compressed()->stored_bytes()
                                          : ByteSize(constant.type(), constant.dims());
}

// The values of a CPU segment share memory where their lifetimes do not overlap. Sizes that are
// not known count as 0.
MemoryNeed CpuNeed(const Graph& graph, const Segment& segment) {
  MemoryNeed need;
  MemoryPlan plan;
  absl::flat_hash_map<ValueId, int> blocks;
  absl::flat_hash_set<ValueId> constants;
  const auto add = [&](ValueId id, int step) {
    const Value& value = graph.values[id];
    const bool known =
        value.is_static() && value.type != DataType::kString && value.type != DataType::kUndefined;
    if (known) blocks[id] = plan.Add(ByteSize(value.type, value.dims()), step);
  };
  for (ValueId id : segment.inputs) add(id, 0);
  for (size_t i = 0; i < segment.nodes.size(); ++i) {
    const Node& node = graph.nodes[segment.nodes[i]];
    for (ValueId id : node.inputs) {
      if (id == kNone) continue;
      if (const auto& constant = graph.values[id].constant) {
        if (constants.insert(id).second) {
          need.weights = SaturatedSum(need.weights, BytesOf(*constant));
        }
      } else if (const auto block = blocks.find(id); block != blocks.end()) {
        plan.Extend(block->second, static_cast<int>(i));
      }
    }
    for (ValueId id : node.outputs) {
      if (id != kNone) add(id, static_cast<int>(i));
    }
  }
  for (ValueId id : segment.outputs) {
    if (const auto block = blocks.find(id); block != blocks.end()) {
      plan.Extend(block->second, static_cast<int>(segment.nodes.size()));
    }
  }
  need.values = plan.Pack();
  return need;
}

}  // namespace

MemoryNeed NeedOf(const Network& network, Route route, const SoftwareOptions& options) {
  const ProgramMemory memory = EstimateMemory(network, route, options);
  MemoryNeed need = {.weights = memory.weights, .values = memory.arena};
  for (const InputPort& port : network.inputs) {
    need.surfaces = SaturatedSum(need.surfaces, LayoutOf(port.dims, port.format, route).bytes());
  }
  for (const OutputPort& port : network.outputs) {
    const SurfaceLayout layout = LayoutOf(network.DimsOf(port.from), Format::kFloat16, route);
    need.surfaces = SaturatedSum(need.surfaces, layout.bytes());
  }
  return need;
}

MemoryNeed EngineNeedOf(const Graph& graph, const Plan& plan, const SoftwareOptions& options,
                        bool heeds_limits) {
  MemoryNeed need;
  for (const PlanPart& part : PartsOf(graph, plan)) {
    for (const Segment& segment : part.plan->segments) {
      if (segment.placement != Placement::kEngine) continue;
      const ProgramMemory memory = EstimateMemory(segment.network, part.plan->route, options);
      need = need + MemoryNeed{.weights = memory.weights, .values = memory.arena};
    }
    const std::vector<int64_t> surfaces =
        PlanSurfaces(*part.plan, *part.graph, DependenciesOf(*part.plan, *part.graph),
                     part.plan->route)
            .bytes;
    for (int64_t bytes : surfaces) {
      need.surfaces =
          SaturatedSum(need.surfaces,
                       heeds_limits ? *std::max_element(surfaces.begin(), surfaces.end()) : bytes);
    }
  }
  return need;
}

MemoryNeed CpuNeedOf(const Graph& graph, const Plan& plan) {
  MemoryNeed need;
  for (const PlanPart& part : PartsOf(graph, plan)) {
    for (const Segment& segment : part.plan->segments) {
      if (segment.placement == Placement::kEngine || !segment.bodies.empty()) continue;
      need = need + CpuNeed(*part.graph, segment);
    }
  }
  return need;
}

absl::StatusOr<std::shared_ptr<const void>> MemoryBudget::Take(absl::string_view what,
                                                               const MemoryNeed& need) {
  if (!is_limited()) return nullptr;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const int64_t left = state_->limit - state_->taken;
    if (need.total() > left) {
      return absl::ResourceExhaustedError(absl::StrCat(
          what, ": needs about ", BytesText(need.total()), " of memory (weights ",
          BytesText(need.weights), ", values ", BytesText(need.values), ", surfaces ",
          BytesText(need.surfaces), "), the memory limit is ", BytesText(state_->limit),
          state_->taken == 0 ? "" : absl::StrCat(", of which ", BytesText(left), " are left"),
          "; raise the limit, or bind smaller dimensions"));
    }
    state_->taken += need.total();
  }
  // Not under the lock: if there is no memory for the pointer, it gives back what was taken.
  return std::shared_ptr<const void>(nullptr, [state = state_, bytes = need.total()](const void*) {
    const std::lock_guard<std::mutex> releasing(state->mutex);
    state->taken -= bytes;
  });
}

}  // namespace anemone
