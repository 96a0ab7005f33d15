// provider/run_state.h: the data of one run of a scheduler.
#ifndef ANEMONE_PROVIDER_RUN_STATE_H_
#define ANEMONE_PROVIDER_RUN_STATE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/surface.h"
#include "provider/row_blocks.h"
#include "provider/run_value.h"
#include "provider/scheduler.h"

namespace anemone {

struct Scheduler::RunState {
  std::vector<Surface> surfaces;  // by slot
  std::vector<RunValue> values;   // by value; empty for values that stay on the engine
  // What values left the engine in, to be used again. Fresh memory costs more than the conversion,
  // because the system clears each page of it.
  std::vector<Tensor> rooms;
  std::mutex rooms_mutex;
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

  // Memory for a value that leaves the engine: what nobody reads any longer, or new.
  Tensor RoomFor(DataType type, const std::vector<int64_t>& dims) {
    const std::scoped_lock lock(rooms_mutex);
    for (const Tensor& room : rooms) {
      if (room.type() != type || room.dims() != dims || !room.is_sole_owner()) continue;
      std::atomic_thread_fence(std::memory_order_acquire);  // what others read of it is behind us
      return room;
    }
    return rooms.emplace_back(Tensor::Uninitialized(type, dims));
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
