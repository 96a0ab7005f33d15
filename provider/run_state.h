// provider/run_state.h: the data of one run of a scheduler.
#ifndef ANEMONE_PROVIDER_RUN_STATE_H_
#define ANEMONE_PROVIDER_RUN_STATE_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/tensor_pool.h"
#include "engine/surface.h"
#include "provider/row_blocks.h"
#include "provider/run_value.h"
#include "provider/scheduler.h"

namespace anemone {

struct Scheduler::RunState {
  std::vector<Surface> surfaces;  // by slot
  std::vector<RunValue> values;   // by value; empty for values that stay on the engine
  TensorPool tensors;             // the memory of values that are not on the engine
  // By segment: rows of states that the run has overwritten, to be put back if it fails.
  struct OldRows {
    RowBlocks blocks;
    std::vector<math::Half> rows;
    int slot;
  };
  std::vector<std::vector<OldRows>> old_rows;

  // Most values of a large model stay on the engine, so that looking is faster than assigning.
  void Clear(size_t count) {
    values.resize(count);
    for (RunValue& value : values) {
      if (!value.is_empty()) value = RunValue();
    }
  }

  RunValue ValueOf(const Graph& graph, ValueId value) const {
    const std::optional<Tensor>& constant = graph.values[value].constant;
    return constant.has_value() ? RunValue{*constant, {}} : values[value];
  }
  // The same; the state has the value no longer.
  RunValue TakeValue(const Graph& graph, ValueId value) {
    if (graph.values[value].constant.has_value()) return ValueOf(graph, value);
    return std::exchange(values[value], RunValue());
  }
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_RUN_STATE_H_
