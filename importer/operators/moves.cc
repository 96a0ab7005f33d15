// The rows of operators that move elements.
#include "importer/infer/compute.h"
#include "importer/infer/infer_checks.h"
#include "importer/operators/families.h"
#include "importer/operators/identities.h"
#include "importer/opset/opset_lifts.h"
#include "importer/padding/padding_bounds.h"
#include "importer/padding/padding_rules.h"
#include "importer/write/compressed_nodes.h"

namespace anemone {
namespace {

constexpr auto kPass = LargeNumbers::kPass;
constexpr auto kPickLargest = LargeNumbers::kPickLargest;

constexpr Operator kRows[] = {
    {.op_type = "Identity",
     .moves = Moves::kInOrder,
     .elementwise =
         Elementwise{
             .bounds = bounds::First, .holes = Elementwise::kHolesStay, .mask = Elementwise::kSum},
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::Always},
    {.op_type = "Flatten",
     .moves = Moves::kInOrder,
     .padding = CarryReshape,
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::IfSameShape},
    {.op_type = "Reshape",
     .moves = Moves::kInOrder,
     .padding = CarryReshape,
     .integers = kFirstInput,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::IfSameShape,
     .lift = {1, 4, LiftReshape}},
    {.op_type = "Squeeze",
     .moves = Moves::kInOrder,
     .padding = CarryReshape,
     .integers = kFirstInput,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::IfSameShape,
     .lift = {1, 12, LiftSqueeze}},
    {.op_type = "Unsqueeze",
     .moves = Moves::kInOrder,
     .padding = CarryReshape,
     .integers = kFirstInput,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::IfSameShape,
     .lift = {1, 12, LiftSqueeze}},

    {.op_type = "DepthToSpace", .moves = Moves::kByShape, .padding = CarryBatch},
    {.op_type = "Expand",
     .moves = Moves::kByShape,
     .padding = CarryGrowth,
     .integers = kFirstInput,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::IfSameShape,
     .compute = compute::Expand},
    {.op_type = "Slice",
     .moves = Moves::kByShape,
     .padding = CarrySlice,
     .integers = kFirstInput,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::InStepsOfOne,
     .lift = {1, 9, LiftSlice},
     .compute = compute::Slice},
    {.op_type = "SpaceToDepth", .moves = Moves::kByShape, .padding = CarryBatch},
    {.op_type = "Split",
     .moves = Moves::kByShape,
     .padding = CarrySplit,
     .integers = kFirstInput,
     .identity = identity::OfAllAndNothing,
     .lift = {1, 17, LiftSplit},
     .check = CheckOutputCount},
    {.op_type = "Tile",
     .moves = Moves::kByShape,
     .padding = CarryGrowth,
     .integers = kFirstInput,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::IfSameShape,
     .lift = {1, 5, LiftTile},
     .compute = compute::Tile},
    {.op_type = "Transpose",
     .moves = Moves::kByShape,
     .padding = CarryTranspose,
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::InRisingOrder,
     .check = CheckPermutation,
     .compressed = CompressedRule{CompressedByTranspose},
     .compute = compute::Transpose},

    {.op_type = "Compress", .moves = Moves::kByData, .sized_by_data = true},
    {.op_type = "Gather",
     .moves = Moves::kByData,
     .padding = CarryGather,
     .integers = kFirstInput,
     .compressed = CompressedRule{CompressedByGather, 1},
     .compute = compute::Gather},
    {.op_type = "GatherElements", .moves = Moves::kByData, .compute = compute::GatherElements},
    {.op_type = "GatherND", .moves = Moves::kByData},
    {.op_type = "MaxPool", .moves = Moves::kByData, .large = kPickLargest, .padding = CarryBatch},

    // The results also contain elements of other inputs, or new elements.
    {.op_type = "Concat",
     .interval = interval::AnyInput,
     .large = kPass,
     .padding = CarryConcat,
     .integers = kAllInputs,
     .float_integers = FloatIntegers::kPass,
     .identity = identity::OfOneInput,
     .lift = {1, 3, LiftConcat},
     .compute = compute::Concat},
    {.op_type = "Pad",
     .interval = interval::Padded,
     .large = kPass,
     .padding = CarryPad,
     .identity = identity::WithoutPads,
     .lift = {1, 10, LiftPad}},
    {.op_type = "Trilu",
     .interval = interval::FirstOrZero,
     .large = kPass,
     .compute = compute::Trilu},
    {.op_type = "OneHot", .interval = interval::Third, .float_bounds = bounds::Third},
    {.op_type = "Scatter", .lift = {9, 10, LiftScatter}},
    {.op_type = "Upsample", .lift = {1, 9, LiftUpsample}},
    {.op_type = "Resize", .padding = CarryResize, .lift = {10, 17, LiftResize}},
};

}  // namespace

absl::Span<const Operator> MovingOperators() { return kRows; }

}  // namespace anemone
