// Random: uniform random numbers from the random-number block. Needs A15. Facts: validators.json
// Random; op_matrix.json random_uniform, random_bernoulli. The netplist keys are not published;
// MIL's names are used here. Neither are the sequence of numbers and what the seed does to it from
// run to run, so the unit has no arithmetic, and ONNX's random operators are not lowered to it.
#include <cstdint>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "engine/formats/mil_emitter.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "kernels/shared/element_format.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

struct RandomParams {
  float low = 0, high = 1;
  ElementFormat output = ElementFormat::kFloat16;
  std::vector<int64_t> shape;
  int64_t seed = 0;
};

absl::StatusOr<Dims> Shape(const RandomParams& p, Bottoms) {
  if (p.shape.size() > kMaxRank) return absl::InvalidArgumentError("shape: want rank 5 or less");
  for (int64_t extent : p.shape) {
    if (extent < 1) return absl::InvalidArgumentError("shape: want extents of 1 or more");
  }
  return PlaceShape(p.shape);
}

Verdict Validate(const RandomParams& p, Bottoms, const Target& target, Route route) {
  Judge judge(target, route);
  if (!judge.Has(Cap::kDropoutRandom)) return judge.Reject(rule::kRandomArch);
  if (!(p.low < p.high)) return judge.Reject(rule::kRandomBounds);
  if (p.output != ElementFormat::kFloat16 && p.output != ElementFormat::kInt8 &&
      p.output != ElementFormat::kUInt8) {
    return judge.Reject(rule::kRandomOutput);
  }
  return judge.Accept();
}

constexpr Field<RandomParams> kFields[] = {
    Key<&RandomParams::low>("low"),
    Key<&RandomParams::high>("high"),
    Key<&RandomParams::output, AnyCase>("output_dtype"),
    Required<&RandomParams::shape>("shape"),
    Key<&RandomParams::seed>("seed"),
};

absl::Status WriteMil(const RandomParams& p, const Unit& unit, MilEmitter& e) {
  if (p.output != ElementFormat::kFloat16) {
    return absl::UnimplementedError("MIL's random_uniform produces fp16 only");
  }
  e.Result(e.Emit("random_uniform",
                  {{"shape", {e.Ints(e.ShapeOf(unit.dims))}},
                   {"low", {e.Half(p.low)}},
                   {"high", {e.Half(p.high)}},
                   {"seed", {e.Int(p.seed)}}},
                  unit.dims));
  return absl::OkStatus();
}

const UnitKindOf<RandomParams>& Kind() {
  static const UnitKindOf<RandomParams> kind({
      .type = "Random",
      .bottoms = {0, 0},
      .judge = {.shape = Shape, .validate = Validate},
      .spell = {.fields = kFields, .mil = WriteMil},
  });
  return kind;
}

// Reads shape and seed, which all random operations have.
absl::StatusOr<RandomParams> ReadCommon(MilContext& c) {
  RandomParams p;
  ANEMONE_ASSIGN_OR_RETURN(p.shape, c.Ints("shape", {}));
  ANEMONE_ASSIGN_OR_RETURN(p.seed, c.Int("seed", 0));
  if (p.shape.empty()) return absl::InvalidArgumentError("attribute 'shape' is missing");
  return p;
}

absl::Status BuildUniform(MilContext& c) {
  ANEMONE_ASSIGN_OR_RETURN(RandomParams p, ReadCommon(c));
  ANEMONE_ASSIGN_OR_RETURN(p.low, c.Number("low", 0));
  ANEMONE_ASSIGN_OR_RETURN(p.high, c.Number("high", 1));
  const std::vector<int64_t> shape = p.shape;
  Operand y = c.Add(Kind(), std::move(p), {});
  return c.Out(y, shape);
}

// 1 where a uniform number is below the probability.
absl::Status BuildBernoulli(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(OnlyRewritten(c, rule::kNotOnAnyBackend));
  ANEMONE_ASSIGN_OR_RETURN(RandomParams p, ReadCommon(c));
  ANEMONE_ASSIGN_OR_RETURN(float probability, c.Number("prob", 0.5f));
  const std::vector<int64_t> shape = p.shape;
  Operand y = c.Add(Kind(), std::move(p), {});
  y = Combined(c, ElementWiseType::kLessThan, y, ScalarConstant(c, probability));
  return c.Out(y, shape);
}

constexpr MilOperation kOperations[] = {{"random_uniform", BuildUniform},
                                        {"random_bernoulli", BuildBernoulli}};

}  // namespace

KernelRows RandomRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
