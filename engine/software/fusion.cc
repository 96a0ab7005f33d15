#include "engine/software/fusion.h"

#include <algorithm>
#include <utility>

#include "engine/math/epilogue.h"
#include "engine/math/panels.h"
#include "engine/math/parallel.h"

namespace anemone {
namespace {

bool CanLead(const UnitKind& kind) { return kind.finishes_runs() || kind.by_element(); }

// The unit whose result unit `i` may change in place; -1: none. Of several the last: the others
// have run by then anyway.
int Predecessor(const Network& network, int i, absl::Span<const int> readers) {
  const Unit& unit = network.units[i];
  int found = -1;
  if (!unit.kind->by_element()) return found;
  for (const Operand& operand : unit.bottoms) {
    if (operand.source != Operand::Source::kUnit || readers[operand.index] != 1) continue;
    const Unit& before = network.units[operand.index];
    if (CanLead(*before.kind) && before.dims == unit.dims) found = std::max(found, operand.index);
  }
  return found;
}

// How large a part of a tensor the chain's units can be given at once.
enum class Part {
  kAny,    // every operand has the output's dims, or one element
  kPlane,  // some have one element for each plane
  kRow,    // some differ from row to row, or along rows alone
};

Part PartOf(const Dims& dims, const Dims& bottom) {
  if (bottom == dims || bottom.elements() == 1) return Part::kAny;
  const bool whole = bottom.h() == dims.h() && bottom.w() == dims.w();
  if (whole || bottom.h() * bottom.w() == 1) return Part::kPlane;
  return Part::kRow;
}

Part PartOf(absl::Span<const UnitCall> calls) {
  Part part = Part::kAny;
  for (const UnitCall& call : calls) {
    if (call.unit->kind->has_channels()) part = std::max(part, Part::kPlane);
    for (const ConstView& in : call.in) part = std::max(part, PartOf(call.out.dims, in.dims));
  }
  return part;
}

// Elements [first, first + planes * count) of an output: `count` elements of it, of a row or of a
// plane, or some whole planes of one image.
struct Run {
  int64_t first, planes, count;
};

ConstView Narrowed(const ConstView& in, const Dims& dims, const Run& run) {
  if (in.dims.elements() == 1) return in;
  if (in.dims == dims) return {{.extent = {1, 1, run.planes, 1, run.count}}, in.data + run.first};
  // One operand element for each place: its index by axes, those of extent 1 left out.
  int64_t rest = run.first, offset = 0, stride = 1;
  for (int axis = kAxisCount - 1; axis >= 0; --axis) {
    if (in.dims.extent[axis] != 1) offset += rest % dims.extent[axis] * stride;
    stride *= in.dims.extent[axis];
    rest /= dims.extent[axis];
  }
  const bool same = in.dims.w() == 1 && (in.dims.h() == 1 || run.count <= dims.w());
  return {{.extent = {1, 1, in.dims.c() == 1 ? 1 : run.planes, 1, same ? 1 : run.count}},
          in.data + offset};
}

void ComputeRun(const UnitCall& call, const Run& run) {
  const Dims& dims = call.out.dims;
  absl::InlinedVector<ConstView, 4> in;
  for (const ConstView& whole : call.in) in.push_back(Narrowed(whole, dims, run));
  const int64_t plane = std::max<int64_t>(dims.h() * dims.w(), 1);
  const View out{{.extent = {1, 1, run.planes, 1, run.count}},
                 call.out.data + run.first,
                 run.first / plane % std::max<int64_t>(dims.c(), 1)};
  call.unit->kind->Compute(call.unit->params.get(), call.prepared, in, out);
}

int64_t SizeOf(Part part, const Dims& dims) {
  if (part == Part::kAny) return dims.elements();
  return part == Part::kPlane ? dims.h() * dims.w() : dims.w();
}

// Applies the units to [first, first + count) of their output, cut as they need it.
void ComputeRuns(absl::Span<const UnitCall> calls, Part part, int64_t first, int64_t count) {
  const Dims& dims = calls[0].out.dims;
  const int64_t size = SizeOf(part, dims);
  while (count > 0) {
    Run run{first, 1, std::min(count, size - first % size)};
    if (part == Part::kPlane && run.count == size) {
      run.planes = std::min(count / size, dims.c() - first / size % dims.c());
    }
    for (const UnitCall& call : calls) ComputeRun(call, run);
    first += run.planes * run.count;
    count -= run.planes * run.count;
  }
}

}  // namespace

std::vector<Chain> FuseUnits(const Network& network, bool fuse) {
  const std::vector<int> readers = CountReaders(network);
  const auto count = static_cast<int>(network.units.size());
  std::vector<Chain> ending(count);  // by the last unit
  for (int i = 0; i < count; ++i) {
    const Unit& unit = network.units[i];
    if (unit.kind->is_view()) continue;
    const int before = fuse ? Predecessor(network, i, readers) : -1;
    if (before >= 0) ending[i] = std::exchange(ending[before], {});
    ending[i].push_back(i);
  }
  std::erase_if(ending, [](const Chain& chain) { return chain.empty(); });
  return ending;
}

void RunChain(absl::Span<const UnitCall> calls) {
  const UnitCall& head = calls[0];
  const UnitKind& kind = *head.unit->kind;
  if (calls.size() == 1) {
    return kind.Compute(head.unit->params.get(), head.prepared, head.in, head.out);
  }
  if (kind.by_element()) {
    constexpr int64_t kNear = 4096;  // 8 KB: the first-level cache holds a few operands of it
    const Part part = PartOf(calls);
    const int64_t size = SizeOf(part, head.out.dims);
    const int64_t run = size >= kNear ? kNear : kNear / std::max<int64_t>(size, 1) * size;
    const int64_t elements = head.out.dims.elements();
    if (elements == 0) return;
    return math::ParallelForItems(
        math::CeilDiv(elements, run), run, [&](int64_t begin, int64_t end) {
          for (int64_t first = begin * run; first < std::min(end * run, elements); first += run) {
            ComputeRuns(calls, part, first, std::min(run, elements - first));
          }
        });
  }
  const absl::Span<const UnitCall> followers = calls.subspan(1);
  const Part part = PartOf(followers);
  const auto finish = [&](math::Half* run, int64_t count) {
    ComputeRuns(followers, part, run - head.out.data, count);
  };
  kind.ComputeThen(head.unit->params.get(), head.prepared, head.in, head.out,
                   math::Epilogue(finish));
}

}  // namespace anemone
