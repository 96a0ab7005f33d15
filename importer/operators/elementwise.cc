// The rows of operators that compute each element from the elements at the same place.
#include "importer/operators/families.h"
#include "importer/operators/identities.h"
#include "importer/opset/opset_lifts.h"
#include "importer/padding/padding_bounds.h"
#include "importer/padding/padding_rules.h"
#include "importer/write/compressed_nodes.h"

namespace anemone {
namespace {

constexpr auto kHolesStay = Elementwise::kHolesStay;
constexpr auto kHolesEnd = Elementwise::kHolesEnd;
constexpr auto kMaskSum = Elementwise::kSum;
constexpr auto kMaskChoice = Elementwise::kChoice;

constexpr Elementwise kUnbounded = {};

constexpr Elementwise Comparison(Bounds (*bounds)(bounds::In)) {
  return {.bounds = bounds, .holes = kHolesEnd};
}

constexpr IntegerUse kTruncated = {.refused =
                                       "integer division truncates, which no engine unit does"};
constexpr IntegerUse kWrappedPower = {
    .inputs = 0b1, .refused = "integer powers wrap around on overflow, fp16 powers round"};

constexpr Operator kRows[] = {
    // Arithmetic.
    {.op_type = "Add",
     .interval = interval::Sum,
     .elementwise = Elementwise{.bounds = bounds::Sum, .holes = kHolesStay, .mask = kMaskSum},
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::PlusZero,
     .lift = {1, 6, LiftBroadcast}},
    {.op_type = "Sum",
     .elementwise = Elementwise{.bounds = bounds::Sum, .holes = kHolesStay, .mask = kMaskSum},
     .float_integers = FloatIntegers::kPass,
     .identity = identity::OfOneInput},
    {.op_type = "Sub",
     .interval = interval::Difference,
     .elementwise = Elementwise{.bounds = bounds::Difference},
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::MinusZero,
     .lift = {1, 6, LiftBroadcast}},
    {.op_type = "Mul",
     .interval = interval::Product,
     .padding = CarryProduct,
     .elementwise = Elementwise{.bounds = bounds::Product},
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::TimesOne,
     .lift = {1, 6, LiftBroadcast}},
    {.op_type = "Div",
     .interval = interval::Quotient,
     .elementwise =
         Elementwise{.bounds = bounds::Quotient, .wild = bounds::SecondMayBeZero, .guarded = 1},
     .integers = kTruncated,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::ByOne,
     .lift = {1, 6, LiftBroadcast},
     .divides_integers = true},
    {.op_type = "Mod",
     .interval = interval::Remainder,
     .integers = kTruncated,
     .float_integers = FloatIntegers::kPass,
     .lift = {28, kAnyLater, LiftMod},
     .divides_integers = true},
    {.op_type = "Pow",
     .elementwise = Elementwise{.bounds = bounds::Power, .wild = bounds::PowerMayFail},
     .integers = kWrappedPower,
     .lift = {1, 6, LiftBroadcast}},
    {.op_type = "Max",
     .interval = interval::Largest,
     .elementwise = Elementwise{.bounds = bounds::Largest, .holes = kHolesStay},
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::OfOneInput},
    {.op_type = "Min",
     .interval = interval::Smallest,
     .elementwise = Elementwise{.bounds = bounds::Smallest, .holes = kHolesStay},
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::OfOneInput},
    {.op_type = "Mean", .elementwise = kUnbounded, .identity = identity::OfOneInput},
    {.op_type = "Where",
     .interval = interval::Branches,
     .elementwise = Elementwise{.bounds = bounds::Choice, .holes = kHolesStay, .mask = kMaskChoice},
     .integers = IntegerUse{.inputs = 0b110}},
    {.op_type = "Clip",
     .interval = interval::Clipped,
     .padding = CarryClip,
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .lift = {1, 10, LiftClip}},
    {.op_type = "BitShift", .lift = {28, kAnyLater, LiftBitShift}},

    // Comparisons and logic.
    {.op_type = "Equal",
     .elementwise = Comparison(bounds::Equal),
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kTell,
     .lift = {1, 6, LiftBroadcast}},
    {.op_type = "Less",
     .elementwise = Comparison(bounds::Less),
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kTell,
     .lift = {1, 6, LiftBroadcast}},
    {.op_type = "LessOrEqual",
     .elementwise = Comparison(bounds::ZeroToOne),
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kTell},
    {.op_type = "Greater",
     .elementwise = Comparison(bounds::ZeroToOne),
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kTell,
     .lift = {1, 6, LiftBroadcast}},
    {.op_type = "GreaterOrEqual",
     .elementwise = Comparison(bounds::ZeroToOne),
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kTell},
    {.op_type = "Not", .elementwise = Comparison(bounds::ZeroToOne)},
    {.op_type = "And",
     .elementwise = Elementwise{.bounds = bounds::And},
     .lift = {1, 6, LiftBroadcast}},
    {.op_type = "Or", .elementwise = Comparison(bounds::ZeroToOne), .lift = {1, 6, LiftBroadcast}},
    {.op_type = "Xor", .elementwise = Comparison(bounds::ZeroToOne), .lift = {1, 6, LiftBroadcast}},
    {.op_type = "IsNaN", .elementwise = Comparison(bounds::ZeroToOne)},
    {.op_type = "IsInf", .elementwise = Comparison(bounds::ZeroToOne)},

    // Type conversions. CastLike uses only the type of its input 1, so `integers` excludes it.
    {.op_type = "Cast",
     .interval = interval::First,
     .padding = CarryCast,
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::IfSameShape,
     .lift = {1, 5, LiftCast},
     .compressed = CompressedRule{CompressedByCast}},
    {.op_type = "CastLike", .interval = interval::First, .integers = kFirstInput},

    // Functions of one input.
    {.op_type = "Abs",
     .interval = interval::Magnitude,
     .elementwise = Elementwise{.bounds = bounds::Magnitude},
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass},
    {.op_type = "Neg",
     .interval = interval::Negative,
     .elementwise = Elementwise{.bounds = bounds::Negative},
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass},
    {.op_type = "Sign",
     .interval = interval::Sign,
     .elementwise = kUnbounded,
     .integers = kAllInputs},
    {.op_type = "Relu",
     .interval = interval::Positive,
     .elementwise = Elementwise{.bounds = bounds::Rising<bounds::Relu>, .holes = kHolesEnd},
     .integers = kAllInputs},
    {.op_type = "Floor",
     .elementwise = Elementwise{.bounds = bounds::Rising<std::floor>},
     .float_integers = FloatIntegers::kPass},
    {.op_type = "Ceil",
     .elementwise = Elementwise{.bounds = bounds::Rising<std::ceil>},
     .float_integers = FloatIntegers::kPass},
    {.op_type = "Round",
     .elementwise = Elementwise{.bounds = bounds::Rising<std::nearbyint>},
     .float_integers = FloatIntegers::kPass},
    {.op_type = "Tanh",
     .elementwise = Elementwise{.bounds = bounds::Rising<std::tanh>, .holes = kHolesEnd}},
    {.op_type = "Erf",
     .elementwise = Elementwise{.bounds = bounds::Rising<std::erf>, .holes = kHolesEnd}},
    {.op_type = "Exp",
     .elementwise = Elementwise{.bounds = bounds::Rising<std::exp>, .holes = kHolesEnd}},
    {.op_type = "Sigmoid",
     .elementwise = Elementwise{.bounds = bounds::ZeroToOne, .holes = kHolesEnd}},
    {.op_type = "HardSigmoid",
     .elementwise = Elementwise{.bounds = bounds::ZeroToOne, .holes = kHolesEnd}},
    {.op_type = "Softplus",
     .elementwise = Elementwise{.bounds = bounds::NotNegative, .holes = kHolesEnd}},
    {.op_type = "Sin", .elementwise = kUnbounded, .float_integers = FloatIntegers::kTell},
    {.op_type = "Cos", .elementwise = kUnbounded, .float_integers = FloatIntegers::kTell},
    {.op_type = "Tan", .elementwise = kUnbounded, .float_integers = FloatIntegers::kTell},
    {.op_type = "Sqrt",
     .elementwise = Elementwise{.bounds = bounds::Rising<bounds::SquareRoot>,
                                .wild = bounds::FirstMayBeNegative}},
    {.op_type = "Log"},
    {.op_type = "Reciprocal",
     .elementwise = Elementwise{.bounds = bounds::Reciprocal, .wild = bounds::FirstMayBeZero}},
    {.op_type = "Acos"},
    {.op_type = "Acosh"},
    {.op_type = "Asin"},
    {.op_type = "Atanh"},
    {.op_type = "Asinh", .elementwise = kUnbounded},
    {.op_type = "Atan", .elementwise = kUnbounded},
    {.op_type = "Celu", .elementwise = kUnbounded},
    {.op_type = "Cosh", .elementwise = kUnbounded},
    {.op_type = "Elu", .elementwise = kUnbounded},
    {.op_type = "Gelu", .elementwise = kUnbounded},
    {.op_type = "HardSwish", .elementwise = kUnbounded},
    {.op_type = "LeakyRelu", .elementwise = kUnbounded},
    {.op_type = "Mish", .elementwise = kUnbounded},
    {.op_type = "PRelu", .elementwise = kUnbounded, .lift = {1, 6, LiftPRelu}},
    {.op_type = "Selu", .elementwise = kUnbounded, .lift = {1, 5, LiftSelu}},
    {.op_type = "Shrink", .elementwise = kUnbounded},
    {.op_type = "Sinh", .elementwise = kUnbounded},
    {.op_type = "Softsign", .elementwise = kUnbounded},
    {.op_type = "Swish", .elementwise = kUnbounded},
    {.op_type = "ThresholdedRelu", .elementwise = kUnbounded},
};

}  // namespace

absl::Span<const Operator> ElementwiseOperators() { return kRows; }

}  // namespace anemone
