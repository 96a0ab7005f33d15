#include "provider/ort/closure.h"

#include <algorithm>
#include <numeric>

namespace anemone {
namespace {

// The nodes that are reachable from `inside`. With `from` = readers and `forward` = false: the
// nodes from which `inside` is reachable.
std::vector<bool> Reached(const std::vector<std::vector<int>>& from,
                          const std::vector<bool>& inside, bool forward) {
  const int size = static_cast<int>(inside.size());
  std::vector<bool> reached(size);
  for (int step = 0; step < size; ++step) {
    const int i = forward ? step : size - 1 - step;
    reached[i] =
        std::any_of(from[i].begin(), from[i].end(), [&](int p) { return inside[p] || reached[p]; });
  }
  return reached;
}

class Closer {
 public:
  Closer(const NodeWeb& web, int segment, const std::vector<bool>& taken)
      : web_(web), taken_(taken), inside_(web.size()), optional_(web.size()) {
    for (int i = 0; i < web.size(); ++i) inside_[i] = web.place[i] == segment;
  }

  FusibleSet Close() {
    FusibleSet set;
    FillGaps(set);
    if (set.blocked) return set;
    TakeFeeders();
    TakeFollowers();
    TakeFeeders();
    for (int i = 0; i < web_.size(); ++i) {
      if (inside_[i]) set.nodes.push_back(i);
      if (optional_[i]) set.optional.push_back(i);
    }
    return set;
  }

 private:
  bool IsFree(int i) const { return !inside_[i] && !taken_[i] && web_.place[i] == kFoldedAway; }

  bool AllInside(const std::vector<int>& nodes) const {
    return !nodes.empty() &&
           std::all_of(nodes.begin(), nodes.end(), [&](int n) { return inside_[n]; });
  }

  void FillGaps(FusibleSet& set) {
    const std::vector<bool> behind = Reached(web_.producers, inside_, true);
    const std::vector<bool> before = Reached(web_.readers, inside_, false);
    for (int i = 0; i < web_.size(); ++i) {
      if (inside_[i] || !behind[i] || !before[i]) continue;
      if (!IsFree(i)) set.blocked = true;
      if (web_.place[i] == kFoldedAway) set.hiding.push_back(i);
    }
    if (set.blocked) return;
    for (int i : set.hiding) inside_[i] = true;
    set.hiding.clear();
  }

  void TakeFeeders() {
    for (int i = web_.size() - 1; i >= 0; --i) {
      if (IsFree(i) && !web_.is_wanted[i] && AllInside(web_.readers[i])) inside_[i] = true;
    }
  }

  // Adds nodes that pass on a value of the set, and the nodes of their other inputs, such as the
  // new shape of a Reshape.
  void TakeFollowers() {
    for (int i = 0; i < web_.size(); ++i) {
      if (!IsFree(i) || !web_.hands_on[i]) continue;
      const std::vector<int>& producers = web_.producers[i];
      const bool follows =
          std::any_of(producers.begin(), producers.end(), [&](int p) { return inside_[p]; });
      if (!follows) continue;
      inside_[i] = true;
      inside_[i] = optional_[i] = std::all_of(producers.begin(), producers.end(), [&](int p) {
        return inside_[p] || (IsFree(p) && !web_.is_wanted[p] && AllInside(web_.readers[p]));
      });
    }
  }

  const NodeWeb& web_;
  const std::vector<bool>& taken_;
  std::vector<bool> inside_;
  std::vector<bool> optional_;
};

// Repeatedly removes nodes that wait for no remaining node. The nodes of cycles remain.
void Peel(const std::vector<std::vector<int>>& waits_for, std::vector<bool>& left) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < left.size(); ++i) {
      if (!left[i]) continue;
      const bool waits = std::any_of(waits_for[i].begin(), waits_for[i].end(),
                                     [&](int other) { return left[other]; });
      if (!waits) {
        left[i] = false;
        changed = true;
      }
    }
  }
}

}  // namespace

FusibleSet CloseSegment(const NodeWeb& web, int segment, const std::vector<bool>& taken) {
  return Closer(web, segment, taken).Close();
}

FusibleSet FindRing(const NodeWeb& web, const std::vector<FusibleSet>& sets) {
  std::vector<int> group(web.size());  // its set's first node, or itself
  std::iota(group.begin(), group.end(), 0);
  std::vector<bool> in_set(web.size());
  for (const FusibleSet& set : sets) {
    for (int i : set.nodes) {
      group[i] = set.nodes.front();
      in_set[i] = true;
    }
  }
  std::vector<std::vector<int>> earlier(web.size());
  std::vector<std::vector<int>> later(web.size());
  std::vector<bool> left(web.size());
  for (int i = 0; i < web.size(); ++i) {
    left[group[i]] = true;
    for (int p : web.producers[i]) {
      if (group[p] == group[i]) continue;
      earlier[group[i]].push_back(group[p]);
      later[group[p]].push_back(group[i]);
    }
  }
  Peel(earlier, left);
  Peel(later, left);
  FusibleSet ring;
  for (int i = 0; i < web.size(); ++i) {
    if (!left[i]) continue;
    ring.blocked = true;
    ring.nodes.push_back(i);
    if (!in_set[i] && web.place[i] == kFoldedAway) ring.hiding.push_back(i);
  }
  return ring;
}

}  // namespace anemone
