// engine/unit.h: a Unit is one operation of the engine, with its parameters, operands and weights.
// A Bottom describes one operand.
#ifndef ANEMONE_ENGINE_UNIT_H_
#define ANEMONE_ENGINE_UNIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "anemone/tensor.h"
#include "engine/dims.h"
#include "math/gemm/code_grid.h"

namespace anemone {

struct UnitKind;

// The element type of a tensor of the engine. Values between units are fp16. uint8 and uint16 occur
// at ports and as index constants; int8 occurs only in units that are refused.
enum class Format : uint8_t { kFloat16, kUInt8, kUInt16, kInt8 };
int BytesOf(Format format);
absl::Span<const char* const> NamesOf(Format);  // "fp16", "uint8", ...

// Where an operand comes from: an input port of the network, one of its constants, or another unit.
struct Operand {
  enum class Source : uint8_t { kInput, kConstant, kUnit };
  Source source = Source::kInput;
  int index = -1;
  bool operator==(const Operand&) const = default;
};

// The properties of an operand that a unit's functions get when the unit is checked and prepared.
struct Bottom {
  Dims dims;
  Format format = Format::kFloat16;
  const Tensor* constant = nullptr;  // owned by the network; null if the operand is not constant
  // Only when a unit is prepared for the software engine: the grid of all values, if they have one.
  std::optional<math::CodeGrid> grid = std::nullopt;
  bool is_constant() const { return constant != nullptr; }
};
using Bottoms = absl::Span<const Bottom>;

struct Unit {
  std::string name;  // unique in its network
  const UnitKind* kind = nullptr;
  std::shared_ptr<const void> params;  // of the parameter type of the kind's row
  std::vector<Operand> bottoms;
  std::vector<Tensor> weights;  // constants that are part of the unit: kernel, bias, scale
  Dims dims;                    // of the output
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_UNIT_H_
