// MatrixDecomposition: decomposes a small matrix, whose elements are the channels. Direct authoring
// only. Facts:
// hidden_layers.json additional_units; netplist.md. No validator of it is published.
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "kernels/mil.h"
#include "kernels/mil/mil_gates.h"
#include "rule_table.h"  // generated

namespace anemone {
namespace {

enum class Decomposition : uint8_t { kNonQrGivens, kCrossProductOrthoNormalization };

absl::Span<const char* const> NamesOf(Decomposition) {
  static constexpr const char* kNames[] = {"NonQRGivens", "CrossProductOrthoNormalization"};
  return kNames;
}

struct MatrixDecompositionParams {
  Decomposition type = Decomposition::kNonQrGivens;
  float epsilon = 0;
  std::vector<int64_t> rotation_axis;  // one for each batch
};

bool IsGivens(const MatrixDecompositionParams& p) { return p.type == Decomposition::kNonQrGivens; }

absl::StatusOr<Dims> Shape(const MatrixDecompositionParams& p, Bottoms in) {
  const Dims& dims = in[0].dims;
  const int64_t from = IsGivens(p) ? 9 : 6, to = IsGivens(p) ? 4 : 3;  // netplist.md
  if (dims != MakeDims(dims.n(), from, 1, 1)) {
    return absl::InvalidArgumentError(
        "want a matrix along the channels: 9 elements for NonQRGivens, else 6");
  }
  return MakeDims(dims.n(), to, 1, 1);
}

constexpr Field<MatrixDecompositionParams> kFields[] = {
    Required<&MatrixDecompositionParams::type>("Type"),
    Key<&MatrixDecompositionParams::epsilon, AsHalfBits, IsGivens>("Epsilon"),
    Key<&MatrixDecompositionParams::rotation_axis, Plain, IsGivens>("RotationAxis"),
};

const UnitKindOf<MatrixDecompositionParams>& Kind() {
  static const UnitKindOf<MatrixDecompositionParams> kind({
      .type = "MatrixDecomposition",
      .judge = {.shape = Shape},
      .spell = {.fields = kFields},
  });
  return kind;
}

// The attributes have the names of the unit's keys, because MIL's are not published.
absl::Status Build(MilContext& c) {
  ANEMONE_RETURN_IF_ERROR(DirectlyAuthored(c, rule::kNotConverted));
  MatrixDecompositionParams p;
  ANEMONE_ASSIGN_OR_RETURN(std::string type, c.Text("Type", Plain::Write(p.type)));
  ANEMONE_RETURN_IF_ERROR(Plain::Read(type, p.type));
  Operand x = c.In(0);
  Operand y = c.Add(Kind(), p, {x});
  c.AddOutput("y", y);
  return absl::OkStatus();
}

constexpr MilOperation kOperations[] = {{"matrix_decomposition", Build}};

}  // namespace

KernelRows MatrixDecompositionRows() { return {{&Kind()}, {}, kOperations}; }

}  // namespace anemone
