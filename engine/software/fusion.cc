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

bool Reads(const Unit& unit, int other) {
  return std::any_of(unit.bottoms.begin(), unit.bottoms.end(), [&](const Operand& operand) {
    return operand.source == Operand::Source::kUnit && operand.index == other;
  });
}

bool Holds(const Chain& chain, int unit) {
  return std::any_of(chain.begin(), chain.end(), [&](const Link& l) { return l.unit == unit; });
}

// Whether `first` may run as late as `chain`: until then nobody else reads what it leaves behind.
bool CanWait(const Network& network, const Chain& first, const Chain& chain) {
  constexpr int kFar = 64;  // units looked at
  if (chain.back().unit - first[0].unit > kFar) return false;
  for (int i = first[0].unit + 1; i < chain.back().unit; ++i) {
    if (Holds(first, i) || Holds(chain, i)) continue;
    const bool reads = std::any_of(first.begin(), first.end(), [&](const Link& link) {
      return Reads(network.units[i], link.unit);
    });
    if (reads) return false;
  }
  return true;
}

// The unit that ends a chain which `chain` can be appended to; -1: none. Of several the last.
int Leader(const Network& network, absl::Span<const Chain> ending, const Chain& chain) {
  int found = -1;
  if (!network.units[chain[0].unit].kind->by_element()) return found;
  for (const Link& link : chain) {
    const Unit& unit = network.units[link.unit];
    for (const Operand& operand : unit.bottoms) {
      const int end = operand.source == Operand::Source::kUnit ? operand.index : -1;
      if (end <= found || Holds(chain, end) || ending[end].empty()) continue;
      const Unit& head = network.units[ending[end][0].unit];
      if (CanLead(*head.kind) && network.units[end].dims == unit.dims &&
          CanWait(network, ending[end], chain)) {
        found = end;
      }
    }
  }
  return found;
}

// A chain that reads another one's result as it comes, say x in x * sigmoid(x), follows it.
void Append(const Network& network, std::vector<Chain>& ending) {
  for (Chain& chain : ending) {
    const int leader = chain.empty() ? -1 : Leader(network, ending, chain);
    if (leader < 0) continue;
    Chain joined = std::exchange(ending[leader], {});
    joined.insert(joined.end(), chain.begin(), chain.end());
    chain = std::move(joined);
  }
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

// `part` is of one element.
void Narrow(const ConstView& in, const Dims& dims, const Run& run, ConstView& part) {
  if (in.dims == dims) {
    part.dims.extent[2] = run.planes;
    part.dims.extent[4] = run.count;
    part.data = in.data + run.first;
    return;
  }
  if (in.dims.elements() == 1) {
    part.data = in.data;
    return;
  }
  // One operand element for each place: its index by axes, those of extent 1 left out.
  int64_t rest = run.first, offset = 0, stride = 1;
  for (int axis = kAxisCount - 1; axis >= 0; --axis) {
    if (in.dims.extent[axis] != 1) offset += rest % dims.extent[axis] * stride;
    stride *= in.dims.extent[axis];
    rest /= dims.extent[axis];
  }
  const bool same = in.dims.w() == 1 && (in.dims.h() == 1 || run.count <= dims.w());
  part.dims.extent[2] = in.dims.c() == 1 ? 1 : run.planes;
  part.dims.extent[4] = same ? 1 : run.count;
  part.data = in.data + offset;
}

void ComputeRun(const UnitCall& call, const Run& run) {
  const Dims& dims = call.out.dims;
  const int64_t plane = std::max<int64_t>(dims.h() * dims.w(), 1);
  const View out{{.extent = {1, 1, run.planes, 1, run.count}},
                 call.out.data + run.first,
                 run.first / plane % std::max<int64_t>(dims.c(), 1)};
  absl::InlinedVector<ConstView, 4> in(call.in.size());
  for (size_t i = 0; i < in.size(); ++i) Narrow(call.in[i], dims, run, in[i]);
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
    ending[i].push_back({i, i});
    for (Link& link : ending[i]) link.place = i;
  }
  if (fuse) Append(network, ending);
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
    constexpr int64_t kNear = math::kNearElements;
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
