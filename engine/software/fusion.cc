#include "engine/software/fusion.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/software/part_reads.h"
#include "math/core/epilogue.h"
#include "math/core/parallel.h"
#include "math/elementwise/element_steps.h"
#include "math/gemm/panels.h"

namespace anemone {
namespace {

constexpr size_t kLongest = math::kMostSteps;

bool CanLead(const UnitKind& kind) { return kind.run.compute_then || kind.run.step; }

// The unit whose result unit `i` may overwrite; -1 if there is none. If there are several, the last
// one: the others have already run.
int Predecessor(const Network& network, int i, absl::Span<const int> readers) {
  const Unit& unit = network.units[i];
  int found = -1;
  if (!unit.kind->run.step) return found;
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

// Whether `first` can be delayed until `chain` runs: no unit in between reads its results.
bool CanWait(const Network& network, const Chain& first, const Chain& chain) {
  constexpr int kFar = 64;  // limits the units to look at
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

// The last unit of a chain to which `chain` can be appended; -1 if there is none. If there are
// several, the last one.
int Leader(const Network& network, absl::Span<const Chain> ending, const Chain& chain) {
  int found = -1;
  if (!network.units[chain[0].unit].kind->run.step) return found;
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

// Appends chains to the chain whose result they read element by element, such as x in x *
// sigmoid(x).
void Append(const Network& network, std::vector<Chain>& ending) {
  for (Chain& chain : ending) {
    const int leader = chain.empty() ? -1 : Leader(network, ending, chain);
    if (leader < 0 || ending[leader].size() + chain.size() > kLongest) continue;
    Chain joined = std::exchange(ending[leader], {});
    joined.insert(joined.end(), chain.begin(), chain.end());
    chain = std::move(joined);
  }
}

void MarkInner(const Network& network, absl::Span<const int> readers, Chain& chain) {
  for (Link& link : chain) {
    const Operand result = {Operand::Source::kUnit, link.unit};
    int inside = 0;
    for (const Link& other : chain) {
      const std::vector<Operand>& bottoms = network.units[other.unit].bottoms;
      inside += static_cast<int>(std::count(bottoms.begin(), bottoms.end(), result));
    }
    link.is_inner = inside > 0 && inside == readers[link.unit];
  }
}

// The largest part of a tensor that the units of a chain can process at once.
enum class Part {
  kAny,    // every operand has the output's dims, or one element
  kPlane,  // some operands have one element for each plane
  kRow,    // some operands vary along the height only, or along the width only
};

Part PartOf(const Dims& dims, const Dims& bottom) {
  if (bottom == dims || bottom.elements() == 1) return Part::kAny;
  const bool whole = bottom.h() == dims.h() && bottom.w() == dims.w();
  if (whole || bottom.h() * bottom.w() == 1) return Part::kPlane;
  return Part::kRow;
}

// An operand of a step, without the position of the elements to read.
struct Source {
  enum class Kind : uint8_t { kKnown, kSame, kRepeated } kind = Kind::kKnown;
  const ConstView* in = nullptr;
};

// Runs of elements that begin at the same position within parts (planes or rows) of a tensor.
// `first` is the first element of the first run; the next run is `step` elements, which are `moved`
// planes or rows, later.
struct PartRuns {
  int64_t first = 0, runs = 1, count = 0, step = 0;
  bool by_plane = true;
  int64_t moved = 0;
};

// Elementwise units with their operands and outputs.
class Steps {
 public:
  explicit Steps(absl::Span<const UnitCall> units);
  // The largest number of elements that can be computed at once: those of the tensor, a plane or a
  // row.
  int64_t size() const;
  // Computes `runs` runs of `count` elements each, `step` elements apart, from element `first` on.
  void Run(int64_t first, int64_t runs, int64_t count, int64_t step) const;

 private:
  math::StepSource Known(size_t unit, int bottom, Source& source) const;
  void Place(const Source& source, const PartRuns& runs, math::StepSource& placed) const;
  PartRuns RunsFrom(int64_t first, int64_t runs, int64_t count, int64_t step) const;
  void RunParts(const PartRuns& runs) const;

  // Only as many as the chain has are constructed: to clear all would take longer than a short
  // chain takes to run.
  template <class T>
  using PerUnit = absl::InlinedVector<T, math::kMostSteps>;
  absl::Span<const UnitCall> units_;
  Part part_ = Part::kAny;
  PerUnit<Source> x_, z_;
  PerUnit<math::StepCall> calls_;
};

Steps::Steps(absl::Span<const UnitCall> units)
    : units_(units), x_(units.size()), z_(units.size()), calls_(units.size()) {
  for (size_t i = 0; i < units.size(); ++i) {
    const UnitCall& unit = units[i];
    const UnitStep step = unit.unit->kind->run.step(unit.unit->params.get(), unit.prepared);
    if (step.step.firsts != nullptr) part_ = std::max(part_, Part::kPlane);
    for (const ConstView& in : unit.in) part_ = std::max(part_, PartOf(unit.out.dims, in.dims));
    calls_[i] = {.step = step.step,
                 .x = Known(i, step.x, x_[i]),
                 .z = Known(i, step.z, z_[i]),
                 .to = unit.is_inner ? nullptr : unit.out.data};
    for (size_t k = 0; k < i; ++k) {
      if (calls_[k].to == unit.out.data) calls_[k].to = nullptr;
    }
  }
}

// The source of a bottom, as far as it is the same for all elements: the result of another step, or
// a single number. Otherwise `source` says how to find the elements.
math::StepSource Steps::Known(size_t unit, int bottom, Source& source) const {
  if (bottom < 0) return {.data = &math::kHalfZero, .repeated = true};
  const UnitCall& call = units_[unit];
  const ConstView& in = call.in[bottom];
  for (int k = static_cast<int>(unit) - 1; k >= 0; --k) {
    if (units_[k].out.data == in.data && in.dims == call.out.dims) return {.step = k};
  }
  if (in.dims == call.out.dims) {
    source = {Source::Kind::kSame, &in};
  } else if (in.dims.elements() > 1) {
    source = {Source::Kind::kRepeated, &in};
  }
  return {.data = in.data, .repeated = source.kind == Source::Kind::kKnown};
}

void Steps::Place(const Source& source, const PartRuns& runs, math::StepSource& placed) const {
  if (source.kind == Source::Kind::kKnown) return;
  if (source.kind == Source::Kind::kSame) {
    placed.data = source.in->data + runs.first;
    placed.run_step = runs.step;
    return;
  }
  // The operand's element for the first element of the run: axes of extent 1 do not count.
  const Dims &in = source.in->dims, &dims = units_[0].out.dims;
  const int moving = static_cast<int>(runs.by_plane ? Axis::kC : Axis::kH);
  int64_t rest = runs.first, offset = 0, stride = 1;
  for (int axis = kAxisCount - 1; axis >= 0; --axis) {
    if (in.extent[axis] != 1) {
      offset += rest % dims.extent[axis] * stride;
      if (axis == moving) placed.run_step = runs.moved * stride;
    }
    stride *= in.extent[axis];
    rest /= dims.extent[axis];
  }
  placed.data = source.in->data + offset;
  placed.repeated = in.w() == 1 && (in.h() == 1 || runs.count <= dims.w());
}

// The first run, and as many of the following runs as are along one axis.
PartRuns Steps::RunsFrom(int64_t first, int64_t runs, int64_t count, int64_t step) const {
  const Dims& dims = units_[0].out.dims;
  PartRuns found{.first = first, .runs = 1, .count = count, .step = step};
  if (runs == 1 || step <= 0 || step % size() != 0) return found;
  const int64_t row = first / dims.w(), rows = step / dims.w();
  found.by_plane = rows % dims.h() == 0;
  found.moved = found.by_plane ? rows / dims.h() : rows;
  const int64_t place = found.by_plane ? row / dims.h() % dims.c() : row % dims.h();
  const int64_t last = (found.by_plane ? dims.c() : dims.h()) - 1;
  found.runs = std::min(runs, (last - place) / found.moved + 1);
  return found;
}

void Steps::RunParts(const PartRuns& runs) const {
  const Dims& dims = units_[0].out.dims;
  PerUnit<math::StepCall> calls = calls_;
  for (size_t i = 0; i < units_.size(); ++i) {
    Place(x_[i], runs, calls[i].x);
    Place(z_[i], runs, calls[i].z);
    if (calls[i].to != nullptr) calls[i].to += runs.first;
  }
  math::RunSteps(calls, {.count = runs.count,
                         .runs = runs.runs,
                         .step = runs.step,
                         .channel = runs.first / (dims.h() * dims.w()) % dims.c(),
                         .channel_step = runs.by_plane ? runs.moved : 0});
}

int64_t Steps::size() const {
  const Dims& dims = units_[0].out.dims;
  if (part_ == Part::kAny) return dims.elements();
  return part_ == Part::kPlane ? dims.h() * dims.w() : dims.w();
}

void Steps::Run(int64_t first, int64_t runs, int64_t count, int64_t step) const {
  if (part_ == Part::kAny) {
    return RunParts({.first = first, .runs = runs, .count = count, .step = step});
  }
  const int64_t most = size();
  while (runs > 0) {
    int64_t done = 1;
    if (count <= most - first % most) {
      const PartRuns found = RunsFrom(first, runs, count, step);
      RunParts(found);
      done = found.runs;
    } else {
      for (int64_t at = first, end = first + count; at < end;) {
        const int64_t part = std::min(end - at, most - at % most);
        const PartRuns found = RunsFrom(at, (end - at) / part, part, part);
        RunParts(found);
        at += found.runs * part;
      }
    }
    first += done * step;
    runs -= done;
  }
}

// If the second unit of a chain only clamps the result of the first, and the first can do that
// while it rounds: the limits (math::Limits).
std::optional<math::Limits> LimitsOf(const UnitCall& first, const UnitCall& second) {
  const UnitStep step = second.unit->kind->run.step(second.unit->params.get(), second.prepared);
  if (step.step.kind != math::StepKind::kClamp) return std::nullopt;
  const ConstView& in = second.in[step.x];
  const bool in_place = in.data == first.out.data && second.out.data == first.out.data;
  const float lo = std::min(step.step.first, step.step.second), hi = step.step.second;
  const auto is_half = [](float x) { return math::ToFloat(math::ToHalf(x)) == x; };
  if (!in_place || in.dims != first.out.dims || !is_half(lo) || !is_half(hi)) return std::nullopt;
  if (lo > 0 || hi < 0) return std::nullopt;
  return math::Limits{lo + 0.0f, hi + 0.0f};
}

}  // namespace

std::vector<Chain> FuseUnits(const Network& network, const Views& views, bool fuse) {
  const std::vector<int> readers = CountReaders(network);
  const auto count = static_cast<int>(network.units.size());
  std::vector<Chain> ending(count);  // by the last unit of the chain
  for (int i = 0; i < count; ++i) {
    if (views.Has(i) || IsUnread(network.units[i])) continue;
    const int before = fuse ? Predecessor(network, i, readers) : -1;
    if (before >= 0 && ending[before].size() < kLongest) {
      ending[i] = std::exchange(ending[before], {});
    }
    ending[i].push_back({i, i});
    for (Link& link : ending[i]) link.place = i;
  }
  if (fuse) Append(network, ending);
  std::erase_if(ending, [](const Chain& chain) { return chain.empty(); });
  for (Chain& chain : ending) MarkInner(network, readers, chain);
  return ending;
}

void RunChain(absl::Span<const UnitCall> calls) {
  const UnitCall& head = calls[0];
  const UnitKind& kind = *head.unit->kind;
  if (calls.size() == 1) {
    return kind.Compute(head.unit->params.get(), head.prepared, head.in, head.out);
  }
  const int64_t elements = head.out.dims.elements();
  if (kind.run.step) {
    if (elements == 0) return;
    constexpr int64_t kNear = math::kNearElements;
    const Steps steps(calls);
    const int64_t size = steps.size();
    const int64_t run = size >= kNear ? kNear : kNear / size * size;
    return math::ParallelForItems(
        math::CeilDiv(elements, run), run, [&](int64_t begin, int64_t end) {
          steps.Run(begin * run, 1, std::min(end * run, elements) - begin * run, 0);
        });
  }
  const auto running = [&head](const Steps& steps) {
    return [&head, steps = &steps](math::Half* first, int64_t runs, int64_t count, int64_t step) {
      steps->Run(first - head.out.data, runs, count, step);
    };
  };
  const auto compute = [&](const math::Epilogue& epilogue) {
    kind.run.compute_then(head.unit->params.get(), head.prepared, head.in, head.out, epilogue);
  };
  const Steps all(calls.subspan(1));
  const auto finish = running(all);
  const std::optional<math::Limits> limits = LimitsOf(head, calls[1]);
  if (!limits) return compute(math::Epilogue(finish));
  const Steps behind(calls.subspan(2));
  const auto finish_behind = running(behind);
  compute(math::Epilogue(*limits, math::Epilogue(finish),
                         calls.size() > 2 ? math::Epilogue(finish_behind) : math::Epilogue()));
}

}  // namespace anemone
