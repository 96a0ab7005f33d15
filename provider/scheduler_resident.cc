// Values that stay on the engine between runs.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "engine/dims.h"
#include "provider/crossing.h"
#include "provider/run_state.h"
#include "provider/scheduler.h"

namespace anemone {

size_t Scheduler::Resident::Pair::RowsIndex(size_t rank) const {
  size_t i = 0;
  while (ToEngineAxis(static_cast<int>(rank), static_cast<int>(i)) != *rows_axis) ++i;
  return i;
}

std::vector<int64_t> Scheduler::Resident::Pair::DimsOf(std::vector<int64_t> dims) const {
  if (rows_axis) dims[RowsIndex(dims.size())] = rows;
  return dims;
}

// By an engine segment, or by writing rows into an input.
bool Scheduler::IsMadeOnTheEngine(ValueId output) const {
  return std::any_of(plan_.segments.begin(), plan_.segments.end(), [&](const Segment& segment) {
    return (segment.placement == Placement::kEngine || HasRowWrites(graph_, segment)) &&
           std::count(segment.outputs.begin(), segment.outputs.end(), output) > 0;
  });
}

// Whether only the engine makes and reads the two, with the same bits as by way of a tensor.
bool Scheduler::StaysOnTheEngine(ValueId input, ValueId output) const {
  if (surfaces_.slot[input] < 0 || surfaces_.slot[output] < 0 || input == output) return false;
  if (read_on_cpu_[input] || read_on_cpu_[output]) return false;
  if (std::count(graph_.outputs.begin(), graph_.outputs.end(), output) != 1 ||
      std::count(graph_.outputs.begin(), graph_.outputs.end(), input) != 0) {
    return false;
  }
  const Format format = surfaces_.layout[input].format;
  const DataType type = graph_.values[input].type;
  // A half becomes no other number as one of these types.
  const bool is_exact = type == DataType::kFloat16 || type == DataType::kFloat ||
                        type == DataType::kDouble || format != Format::kFloat16;
  if (!is_exact || type != graph_.values[output].type ||
      format != surfaces_.layout[output].format) {
    return false;
  }
  return IsMadeOnTheEngine(output);
}

bool Scheduler::CanStay(ValueId input, ValueId output) const {
  return StaysOnTheEngine(input, output) &&
         surfaces_.layout[input].dims == surfaces_.layout[output].dims &&
         surfaces_.layout[input].strides == surfaces_.layout[output].strides;
}

bool Scheduler::CanAppend(ValueId input, ValueId output, Axis axis) const {
  if (!StaysOnTheEngine(input, output)) return false;
  Dims rows = surfaces_.layout[output].dims;
  rows[axis] = surfaces_.layout[input].dims[axis];
  return rows == surfaces_.layout[input].dims;
}

// The layout of the first rows of a pair that appends.
SurfaceLayout Scheduler::RowsOf(const Resident::Pair& pair, int64_t rows) const {
  SurfaceLayout layout = surfaces_.layout[pair.input];
  layout.dims[*pair.rows_axis] = rows;
  return layout;
}

void Scheduler::SetRows(Resident& resident, Resident::Pair& pair, const Tensor& value) const {
  const Surface& surface = resident.surfaces->surfaces[surfaces_.slot[pair.input]];
  std::memset(surface.data(), 0, static_cast<size_t>(surfaces_.layout[pair.input].bytes()));
  pair.rows = value.dims()[pair.RowsIndex(value.dims().size())];
  if (value.elements() > 0) ToSurface(value, RowsOf(pair, pair.rows), surface.data());
  pair.holds = true;
}

// After a run that failed: the rows that it wrote are what they were.
void Scheduler::PutBackRows(RunState& state) const {
  for (const std::vector<RunState::OldRows>& segment : state.old_rows) {
    for (const RunState::OldRows& old : segment) {
      old.blocks.Restore(old.rows, state.surfaces[old.slot].data());
    }
  }
}

// After a run: the outputs become the inputs' values.
absl::Status Scheduler::Keep(Resident& resident) const {
  for (const Resident::Pair& pair : resident.pairs) {
    if (!pair.rows_axis) continue;
    const Axis axis = *pair.rows_axis;
    const int64_t most = surfaces_.layout[pair.input].dims[axis];
    const int64_t fresh = surfaces_.layout[pair.output].dims[axis];
    if (pair.rows + fresh > most) {
      return absl::InternalError(absl::StrCat("'", graph_.values[pair.input].name, "' has ",
                                              pair.rows, " of ", most, " rows, and no room for ",
                                              fresh, " more"));
    }
  }
  std::vector<Surface>& surfaces = resident.surfaces->surfaces;
  for (Resident::Pair& pair : resident.pairs) {
    if (pair.input == kNone || pair.output == kNone) continue;
    if (pair.rows_axis) {
      Append(resident, pair);
    } else {
      std::swap(surfaces[surfaces_.slot[pair.input]], surfaces[surfaces_.slot[pair.output]]);
      pair.holds = true;
    }
  }
  return absl::OkStatus();
}

void Scheduler::Append(Resident& resident, Resident::Pair& pair) const {
  const std::vector<Surface>& surfaces = resident.surfaces->surfaces;
  const SurfaceLayout& fresh = surfaces_.layout[pair.output];
  const math::Layout to = MathLayout(surfaces_.layout[pair.input]);
  std::byte* cache = surfaces[surfaces_.slot[pair.input]].data();
  math::ConvertStrided(fresh.dims.extent, surfaces[surfaces_.slot[pair.output]].data(),
                       MathLayout(fresh),
                       cache + pair.rows * to.byte_strides[static_cast<int>(*pair.rows_axis)], to);
  pair.rows += fresh.dims[*pair.rows_axis];
}

absl::StatusOr<Scheduler::Resident> Scheduler::MakeResident(
    std::vector<Resident::Pair> pairs) const {
  std::vector<int64_t> bytes = surfaces_.bytes;
  for (const Resident::Pair& pair : pairs) {  // the two surfaces are exchanged
    if (pair.rows_axis || pair.input == kNone || pair.output == kNone) continue;
    int64_t& in = bytes[surfaces_.slot[pair.input]];
    int64_t& out = bytes[surfaces_.slot[pair.output]];
    in = out = std::max(in, out);
  }
  ANEMONE_ASSIGN_OR_RETURN(std::shared_ptr<RunState> state, MakeState(bytes));
  return Resident{std::move(pairs), std::move(state)};
}

Tensor Scheduler::Read(const Resident& resident, const Resident::Pair& pair) const {
  const Value& value = graph_.values[pair.input];
  const Surface& surface = resident.surfaces->surfaces[surfaces_.slot[pair.input]];
  std::vector<int64_t> dims = value.dims();
  if (!pair.rows_axis) {
    return FromSurface(surface.data(), surfaces_.layout[pair.input], value.type, dims);
  }
  dims = pair.DimsOf(std::move(dims));
  if (pair.rows == 0) return Tensor::Zeros(value.type, dims);
  return FromSurface(surface.data(), RowsOf(pair, pair.rows), value.type, dims);
}

bool Scheduler::CanShow(ValueId port) const {
  const auto of = [&](const std::vector<ValueId>& ports) {
    return std::count(ports.begin(), ports.end(), port);
  };
  const DataType type = graph_.values[port].type;
  const bool is_float =
      type == DataType::kFloat16 || type == DataType::kFloat || type == DataType::kDouble;
  if (!is_float || surfaces_.slot[port] < 0 || read_on_cpu_[port]) return false;
  if (surfaces_.layout[port].format != Format::kFloat16) return false;
  for (const Segment& segment : plan_.segments) {  // a state and what is written into it are one
    for (const RowWrite& write : RowWritesOf(graph_, segment)) {
      if (port == write.past || port == write.present) return false;
    }
  }
  if (of(graph_.inputs) == 1) return of(graph_.outputs) == 0;
  return of(graph_.outputs) == 1 && IsMadeOnTheEngine(port);
}

Scheduler::Shown Scheduler::Show(const Resident& resident, ValueId port) const {
  return {resident.surfaces->surfaces[surfaces_.slot[port]].data(), surfaces_.layout[port]};
}

void Scheduler::TakeShown(const Resident& resident) const {
  for (const Resident::Pair& pair : resident.pairs) {
    if (pair.input == kNone || pair.output != kNone) continue;
    const Shown shown = Show(resident, pair.input);
    ReplaceNans(shown.layout, shown.data);
  }
}

}  // namespace anemone
