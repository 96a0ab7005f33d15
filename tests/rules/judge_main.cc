// judge: the compiler's side of the drift test, in a process of its own. Each line of stdin is
// {"target": "h13", "route": "netplist", "network": {...}}, or with a property list's text at
// "netplist"; for each a verdict goes to stdout.
//
//   judge [--broken TYPE]
//
// --broken accepts whatever the validator of that unit type refuses: the drift test must notice.
#include <iostream>
#include <string>

#include "kernels/lowering.h"
#include "tests/rules/judge.h"

namespace anemone {
namespace {

// A kind whose validator says yes.
class Broken final : public UnitKind {
 public:
  explicit Broken(const UnitKind& kind) : kind_(kind) {}
  const char* type() const override { return kind_.type(); }
  int min_family() const override { return kind_.min_family(); }
  const BottomCount& bottoms() const override { return kind_.bottoms(); }
  bool is_view() const override { return kind_.is_view(); }
  bool computes() const override { return kind_.computes(); }
  std::optional<Permutation> PermutationOf(const void* p) const override {
    return kind_.PermutationOf(p);
  }
  absl::StatusOr<Dims> Shape(const void* p, Bottoms in) const override {
    return kind_.Shape(p, in);
  }
  Verdict Validate(const void*, Bottoms, const Target& t, Route r) const override {
    return Judge(t, r).Accept();
  }
  Verdict Codegen(const void* p, Bottoms in, const Target& t, Route r) const override {
    return kind_.Codegen(p, in, t, r);
  }
  void Warn(const void*, Bottoms, const Dims&, const Target&, Route, WarningList&) const override {}
  std::vector<std::string> Keys(bool required_only) const override {
    return kind_.Keys(required_only);
  }
  std::vector<KeyInfo> ListKeys() const override { return kind_.ListKeys(); }
  Json Write(const void* p) const override { return kind_.Write(p); }
  absl::StatusOr<std::shared_ptr<const void>> Read(
      const Json& keys, Bottoms in, absl::Span<const Tensor> weights) const override {
    return kind_.Read(keys, in, weights);
  }
  absl::Status WriteMil(MilEmitter& e, const Unit& unit) const override {
    return kind_.WriteMil(e, unit);
  }
  bool composes() const override { return kind_.composes(); }
  absl::StatusOr<Operand> Compose(NetworkBuilder& c, const Unit& unit) const override {
    return kind_.Compose(c, unit);
  }
  int AddedConstant(const void* p, Bottoms in) const override { return kind_.AddedConstant(p, in); }
  bool takes_bias() const override { return kind_.takes_bias(); }
  bool stores_kernel() const override { return kind_.stores_kernel(); }
  absl::StatusOr<std::vector<int64_t>> KernelDims(const Json& keys, Bottoms in) const override {
    return kind_.KernelDims(keys, in);
  }
  absl::StatusOr<Tensor> StoredKernel(const void* p, const Tensor& weight) const override {
    return kind_.StoredKernel(p, weight);
  }
  absl::StatusOr<Prepared> Prepare(const void* p, Bottoms in,
                                   absl::Span<const Tensor> weights) const override {
    return kind_.Prepare(p, in, weights);
  }
  void Compute(const void* p, const void* prepared, absl::Span<const ConstView> in,
               View out) const override {
    kind_.Compute(p, prepared, in, out);
  }
  bool Joins(const void*, Bottoms) const override { return false; }
  bool finishes_runs() const override { return false; }
  bool by_element() const override { return false; }
  UnitStep StepOf(const void*, const void*) const override { return {}; }
  void ComputeThen(const void*, const void*, absl::Span<const ConstView>, View,
                   const math::Epilogue&) const override {}
  bool has_exact() const override { return kind_.has_exact(); }
  std::optional<GainOffset> EpilogueOf(const void*, absl::Span<const Tensor>) const override {
    return std::nullopt;
  }
  bool TakesEpilogue(const void*, const math::Numerics&) const override { return false; }
  bool Squares(const void*, absl::Span<const Operand>) const override { return false; }
  bool TakesSquares(const void*, const math::Numerics&) const override { return false; }
  bool reads_port() const override { return false; }
  void Exact(const void* p, const ExactUnit& unit, absl::Span<const ConstView> in,
             View out) const override {
    kind_.Exact(p, unit, in, out);
  }

 private:
  const UnitKind& kind_;
};

const UnitKind* broken = nullptr;

const UnitKind* Find(absl::string_view type) {
  return broken != nullptr && type == broken->type() ? broken : FindUnitKind(type);
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--broken") {
    const UnitKind* kind = FindUnitKind(argv[2]);
    if (kind == nullptr) return 2;
    broken = new Broken(*kind);
  }
  for (std::string line; std::getline(std::cin, line);) {
    Json asked = Json::parse(line);
    const Target& target = **FindTarget(asked["target"].get<std::string>());
    Route route = asked["route"] == "mil" ? Route::kMil : Route::kNetplist;
    std::cout << Judged(asked.contains("netplist") ? asked["netplist"] : asked["network"], Find,
                        target, route)
                     .dump()
              << "\n";
  }
  return 0;
}

}  // namespace
}  // namespace anemone

int main(int argc, char** argv) { return anemone::Main(argc, argv); }
