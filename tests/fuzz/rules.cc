#include "tests/fuzz/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"

namespace anemone::fuzz {
namespace {

constexpr double kLargest = 65504, kLeastNormal = 0x1p-14;

// Statistics of the float values that a node reads or writes.
struct Range {
  double largest = 0;                                         // largest finite magnitude
  double least = std::numeric_limits<double>::infinity();     // smallest magnitude except 0
  double sum = 0;                                             // of the values' largest magnitudes
  double smallest = std::numeric_limits<double>::infinity();  // of the values' largest magnitudes
  int64_t elements = 0;                                       // of the largest value
  bool finite = true, has_nan = false, has_infinity = false;
  bool has_zero = false, has_negative_zero = false;
};
template <class Names>
Range RangeOf(const Values& values, const Names& names) {
  Range range;
  for (const std::string& name : names) {
    const auto value = values.find(name);
    if (value == values.end() || value->second.type() != DataType::kFloat) continue;
    double largest = 0;
    for (float x : value->second.data<float>()) {
      range.has_nan = range.has_nan || std::isnan(x);
      range.has_infinity = range.has_infinity || std::isinf(x);
      range.has_zero = range.has_zero || x == 0;
      range.has_negative_zero = range.has_negative_zero || (x == 0 && std::signbit(x));
      // A number too large for fp16 is an infinity on the engine.
      range.finite = range.finite && std::abs(x) <= kLargest;
      if (!(std::abs(x) <= kLargest)) continue;
      largest = std::max<double>(largest, std::abs(x));
      if (x != 0) range.least = std::min<double>(range.least, std::abs(x));
    }
    range.largest = std::max(range.largest, largest);
    range.sum += largest;
    range.smallest = std::min(range.smallest, largest);
    range.elements = std::max(range.elements, value->second.elements());
  }
  return range;
}

struct Ranges {
  Range in, out;
};

template <size_t N>
bool IsOneOf(absl::string_view op, const char* const (&ops)[N]) {
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

constexpr const char* kSquares[] = {"ReduceL2",
                                    "ReduceSumSquare",
                                    "LpNormalization",
                                    "LpPool",
                                    "GlobalLpPool",
                                    "LayerNormalization",
                                    "RMSNormalization",
                                    "InstanceNormalization",
                                    "GroupNormalization",
                                    "MeanVarianceNormalization",
                                    "LRN"};
constexpr const char* kRoots[] = {"ReduceL2", "LpPool", "GlobalLpPool"};
constexpr const char* kProducts[] = {"ReduceProd", "Pow"};
constexpr const char* kScaled[] = {"Gemm", "Celu", "Selu", "BatchNormalization"};
constexpr const char* kPeriodic[] = {"Sin", "Cos", "Tan"};
constexpr const char* kSumOperators[] = {"Sum", "Mean"};
constexpr const char* kRecurrent[] = {"LSTM", "GRU", "RNN"};
constexpr const char* kTables[] = {"Sigmoid",  "Tanh", "Gelu", "Erf",       "Exp",  "Log",
                                   "Softplus", "Mish", "Elu",  "Selu",      "Celu", "Softmax",
                                   "Sqrt",     "Sin",  "Cos",  "Tan",       "Atan", "LogSoftmax",
                                   "LSTM",     "GRU",  "RNN",  "HardSwish", "Mul",  "Pow"};

// True for a nearest Resize in which neither size is a multiple of the other.
bool PicksNearestOnEdge(const NodeRun& run) {
  for (const auto& attribute : run.node.attribute()) {
    if (attribute.name() == "mode" && attribute.s() != "nearest") return false;
  }
  const auto& in = run.values.at(run.node.input(0)).dims();
  const auto& out = run.values.at(run.node.output(0)).dims();
  for (size_t i = 0; i < in.size(); ++i) {
    if (out[i] == 0 || in[i] == 0) return false;
    if (out[i] % in[i] != 0 && in[i] % out[i] != 0) return true;
  }
  return false;
}

int64_t NumberOf(const onnx::NodeProto& node, absl::string_view attribute, int64_t otherwise) {
  for (const auto& a : node.attribute()) {
    if (a.name() == attribute) return a.i();
  }
  return otherwise;
}

// The number of elements in each mean of a normalization; 0 for other operators.
int64_t ElementsOfMean(const NodeRun& run) {
  const absl::string_view op = run.node.op_type();
  const auto& dims = run.values.at(run.node.input(0)).dims();
  const auto rank = static_cast<int64_t>(dims.size());
  const auto product = [&](int64_t from) {
    int64_t elements = 1;
    for (int64_t i = from; i < rank; ++i) elements *= dims[i];
    return elements;
  };
  if (op == "LayerNormalization") return product((NumberOf(run.node, "axis", -1) + rank) % rank);
  if (op == "InstanceNormalization") return product(2);
  if (op == "GroupNormalization") return product(1) / NumberOf(run.node, "num_groups", 1);
  if (op != "MeanVarianceNormalization") return 0;
  int64_t elements = 1;
  for (const auto& a : run.node.attribute()) {
    for (int64_t axis : a.ints()) elements *= dims[(axis + rank) % rank];
  }
  return run.node.attribute().empty() ? product(2) * dims[0] : elements;
}

struct OpeningRow {
  const char* rule;
  bool (*holds)(const NodeRun&, const Ranges&);
};
// The names of rules are those of numerics.json, if it has the rule.
constexpr double kReciprocals = 0x1p-10;  // from 2^-10 to 2^10, both limits of fp16 are far
constexpr OpeningRow kOpening[] = {
    // Operations that produce a NaN give +0 on the engine, but a NaN in `fast` mode.
    {"st-nan-gen", [](const NodeRun&, const Ranges& r) { return r.out.has_nan; }},
    // A constant of one element may be a parameter of a unit, which is no port: its NaN stays one.
    {"st-nan-in",
     [](const NodeRun& run, const Ranges&) {
       return std::any_of(run.node.input().begin(), run.node.input().end(),
                          [&](const std::string& name) {
                            if (run.constants.count(name) == 0) return false;
                            const Range range = RangeOf(run.values, std::vector<std::string>{name});
                            return range.has_nan && range.elements == 1;
                          });
     }},
    // A rewrite may compute zero times infinity where the operator does not.
    {"finite numbers only",
     [](const NodeRun& run, const Ranges& r) {
       return !r.in.finite &&
              (run.units > 1 || run.node.op_type() == "Where" || run.node.op_type() == "Resize" ||
               run.node.op_type() == "Pow" || run.node.op_type() == "ConvTranspose");
     }},
    // The sign of a zero is dropped before a reciprocal, and is arbitrary after a rewrite.
    {"st-zero",
     [](const NodeRun& run, const Ranges& r) {
       return (run.node.op_type() == "Reciprocal" && r.in.has_negative_zero) ||
              (run.node.op_type() == "Div" && r.in.has_zero && !r.out.finite);
     }},
    // Squares are fp16 numbers: 256 squared overflows, and squares of small numbers are lost.
    {"squares",
     [](const NodeRun& run, const Ranges& r) {
       const double most = r.in.largest * r.in.largest;
       return IsOneOf(run.node.op_type(), kSquares) &&
              (!r.in.finite || most * static_cast<double>(r.in.elements) >= kLargest ||
               most < 16 * kLeastNormal || (run.exact && r.in.least < 0x1p-6) ||
               (IsOneOf(run.node.op_type(), kRoots) && r.out.least < 0x1p-5));
     }},
    // The mean is rounded to fp16. A few numbers may all be close to their mean, so little is left
    // after it is subtracted.
    {"mean of few",
     [](const NodeRun& run, const Ranges&) {
       const int64_t elements = ElementsOfMean(run);
       return elements > 0 && elements <= 4;
     }},
    // Partial products and sums are fp16 numbers.
    {"partial results",
     [](const NodeRun& run, const Ranges& r) {
       const double most =
           std::pow(std::max(1.0, r.in.largest), run.node.op_type() == "Pow" ? 4 : r.in.elements);
       return (IsOneOf(run.node.op_type(), kProducts) &&
               (most >= kLargest || r.out.least < kLeastNormal)) ||
              (IsOneOf(run.node.op_type(), kSumOperators) && r.in.sum >= kLargest) ||
              (run.node.op_type() == "ReduceLogSum" &&
               r.in.largest * static_cast<double>(r.in.elements) >= kLargest) ||
              (IsOneOf(run.node.op_type(), kScaled) &&
               std::max(r.in.largest, r.out.largest) > kLargest / 4);
     }},
    // Nearest of two positions with equal distance, within fp32's accuracy.
    {"resize-edge",
     [](const NodeRun& run, const Ranges&) {
       return run.node.op_type() == "Resize" && PicksNearestOnEdge(run);
     }},
    // Arguments of many periods have no fractional digits left.
    {"periods",
     [](const NodeRun& run, const Ranges& r) {
       return IsOneOf(run.node.op_type(), kPeriodic) && r.in.largest > 100;
     }},
    // The two oldest families multiply by the reciprocal.
    {"ew-div",
     [](const NodeRun& run, const Ranges& r) {
       return run.node.op_type() == "Div" && run.units > 1 &&
              (r.in.least < kReciprocals || r.in.largest > 1 / kReciprocals);
     }},
    // kernels/rewrites/arithmetic.cc: the result is off by |y| if the rounded quotient reaches the
    // next integer.
    {"mod",
     [](const NodeRun& run, const Ranges& r) {
       return run.node.op_type() == "Mod" && r.in.largest / r.in.least > 500;
     }},
    // Results are infinity from 32768 and zero below 2^-14; compare only numbers far from both.
    {"mac-ceiling, st-subnormal-mac",
     [](const NodeRun& run, const Ranges& r) {
       return run.exact &&
              (!r.in.finite || !r.out.finite || r.in.sum > 2000 || r.out.largest > 16000 ||
               r.out.smallest < 0x1p-6 || r.in.smallest < 0x1p-6);
     }},
};

struct InnerRow {
  const char* op;
  double constant;  // magnitude that does not depend on the values
  double of_input;  // factor for the input's largest magnitude
  int units = 2;    // the rule applies from this number of units
};
constexpr InnerRow kInner[] = {
    {"Softplus", 1, 0},      // 1 + e^x
    {"Mish", 0, 1},          // x tanh(softplus x)
    {"LogSoftmax", 1, 0},    // log of a ratio
    {"ReduceLogSum", 1, 0},  // log of a sum
    {"ReduceLogSumExp", 1, 0},
    {"Tan", 1, 0},
    {"Sum", 0, 3},
    {"Mean", 0, 2},
    {"Mod", 0, 2},
    {"HardSigmoid", 1, 0},  // alpha x + beta
    {"HardSwish", 0, 1},
    {"Sigmoid", 0x1p-13, 0, 1},  // ONNX Runtime's is 0 below -18
};

// Products below 2^-14 are zero (st-subnormal-mac); that is half a unit of this number.
constexpr double kFlushed = 0.25;
constexpr double kGeluOfTanh = 1;  // the engine computes GELU with erf: off by up to 5e-4

// ONNX Runtime's kernels for these operators treat NaN differently.
constexpr const char* kLargestOf[] = {"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"};
// Some of its kernels multiply an infinity by the zeros of padding, others leave these out.
constexpr const char* kPadded[] = {"Conv", "ConvTranspose"};

// numerics_notes.md section 5: batch normalization is x * gain + offset, and the offset contains
// the mean times the gain.
double OffsetOf(const NodeRun& run) {
  const auto largest = [&](int input) {
    return RangeOf(run.values, std::vector<std::string>{run.node.input(input)});
  };
  return largest(1).largest * largest(3).largest / std::sqrt(std::max(largest(4).least, 1e-6));
}

}  // namespace

const char* OpeningRule(const NodeRun& run) {
  if (run.units == 0) {
    const Range in = RangeOf(run.values, run.node.input());
    if (IsOneOf(run.node.op_type(), kLargestOf) && in.has_nan) return "NaN on the CPU";
    if (IsOneOf(run.node.op_type(), kPadded) && in.has_infinity) return "infinity on the CPU";
    return nullptr;
  }
  const Ranges ranges = {RangeOf(run.values, run.node.input()),
                         RangeOf(run.values, run.node.output())};
  for (const OpeningRow& row : kOpening) {
    if (row.holds(run, ranges)) return row.rule;
  }
  return nullptr;
}

bool HasSteps(const onnx::NodeProto& node) {
  constexpr const char* kSteps[] = {"Equal",           "Less",   "Greater", "LessOrEqual", "Sign",
                                    "GreaterOrEqual",  "Floor",  "Ceil",    "Round",       "Mod",
                                    "ArgMax",          "ArgMin", "TopK",    "Hardmax",     "Cast",
                                    "ThresholdedRelu", "NonZero"};
  return IsOneOf(node.op_type(), kSteps);
}

bool Compares(const onnx::NodeProto& node) {
  constexpr const char* kComparisons[] = {"Equal",       "Less",           "Greater",
                                          "LessOrEqual", "GreaterOrEqual", "Cast"};
  return IsOneOf(node.op_type(), kComparisons);
}

double InnerMagnitude(const NodeRun& run) {
  const absl::string_view op = run.node.op_type();
  double magnitude = 0;
  const Range in = RangeOf(run.values, run.node.input());
  if (run.exact) magnitude = kFlushed;
  if (run.exact && IsOneOf(op, kTables)) magnitude = 4 * std::max(1.0, in.largest);
  if (op == "Gelu") magnitude = std::max(magnitude, kGeluOfTanh);
  if (op == "BatchNormalization" && run.units > 0) magnitude = std::max(magnitude, OffsetOf(run));
  if (IsOneOf(op, kRecurrent)) magnitude = std::max(magnitude, 2.0);
  for (const InnerRow& row : kInner) {
    if (op != row.op || run.units < row.units) continue;
    magnitude = std::max(magnitude, row.constant + row.of_input * in.largest);
  }
  return magnitude;
}

}  // namespace anemone::fuzz
