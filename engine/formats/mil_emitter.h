// engine/formats/mil_emitter.h: writes a network as a MIL program, unit by unit. The row of each
// kind says how (UnitRow.spell.mil):
//
//   absl::Status WriteMil(const SoftmaxParams& p, const Unit& unit, MilEmitter& e) {
//     e.Result(e.Emit("softmax", {{"x", {e.In(0)}}, {"axis", {e.Int(e.ToMilAxis(p.axis))}}},
//                     unit.dims));
//     return absl::OkStatus();
//   }
//
// All tensors have rank 4 (N, C, H, W), or rank 5 (N, C, D, H, W) in a network with depth. Every
// argument that is not a tensor is a separate const statement: flags must have names (orion.json
// 12).
#ifndef ANEMONE_ENGINE_FORMATS_MIL_EMITTER_H_
#define ANEMONE_ENGINE_FORMATS_MIL_EMITTER_H_

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_program.h"
#include "engine/formats/mil_weights.h"
#include "engine/network.h"
#include "engine/port_names.h"
#include "engine/target.h"

namespace anemone {

struct MilText {
  MilProgram program;
  PortNames ports;
};

// Ports keep their names as far as MIL allows: names consist of letters, digits and underscores and
// are unique. Compressed weights stay compressed in the forms that the target has (mil_weights.h).
// kUnimplemented if no MIL operation is known for a unit (the message names the unit and the
// reason), or if an output is a constant.
absl::StatusOr<MilText> WriteMilProgram(const Network& network, const Target& target,
                                        const MilBlobSink& blobs);
// The same with the weights file, whole, in `weights`. Also the errors of MilBlobWriter::Finish().
absl::StatusOr<MilText> WriteMilProgram(const Network& network, const Target& target,
                                        std::ostream& weights);

// A unit that cannot be written, and why.
struct MilRefusal {
  int unit = -1;
  absl::Status status;
};

// All units that cannot be written, in order.
std::vector<MilRefusal> RefusedByMil(const Network& network, const Target& target);

class MilEmitter {
 public:
  using Shape = std::vector<int64_t>;

  int rank() const { return rank_; }
  // The position of the axis in MIL shapes, from 0.
  int ToMilAxis(Axis axis) const;
  Shape ShapeOf(const Dims& dims) const;

  // The name of bottom `i` of the unit that is being written. A uint8 port can only be dequantized
  // (numerics.json st-int-ports): for such a port this is the name of the dequantized value.
  const std::string& In(size_t i);
  // The name of bottom `i` itself, also for a uint8 port.
  const std::string& Stored(size_t i);
  const Dims& DimsOf(size_t i) const;
  Bottom BottomOf(size_t i) const { return network_.BottomOf(unit_->bottoms[i]); }

  // Write a const statement, and return the name to use as an argument.
  std::string Bool(bool value);
  std::string Int(int64_t value, const char* dtype = "int32");
  std::string Ints(absl::Span<const int64_t> values);
  std::string Ints(absl::Span<const int64_t> values, Shape shape);
  std::string Half(float value);
  std::string Float(float value);
  std::string Text(const std::string& value);
  // Writes statements for a tensor in the weights file: uint16 indices, or floats as fp16, which
  // may be compressed.
  std::string Weight(const Tensor& tensor, Shape shape);

  // Writes a statement with one fp16 result, and returns the name of the result.
  std::string Emit(const char* op, std::vector<MilArgument> arguments, Shape shape);
  std::string Emit(const char* op, std::vector<MilArgument> arguments, const Dims& dims) {
    return Emit(op, std::move(arguments), ShapeOf(dims));
  }
  // Writes a statement with results of these types, and returns their names.
  std::vector<std::string> EmitAll(const char* op, std::vector<MilArgument> arguments,
                                   std::vector<MilType> types);
  // The MIL type of indices; and a cast of indices to fp16, the type of indices between units.
  MilType IndexType(const Dims& dims) const;
  std::string Numbers(const std::string& indices, const Dims& dims);
  // Sets the name of the unit's result.
  void Result(std::string name);

 private:
  friend absl::StatusOr<MilText> WriteMilProgram(const Network&, const Target&, const MilBlobSink&);
  friend std::vector<MilRefusal> RefusedByMil(const Network&, const Target&);
  MilEmitter(const Network& network, const Target& target, const MilBlobSink& blobs);

  void WriteInputs();
  std::string WriteConstant(int index);
  std::vector<MilRefusal> WriteUnits();
  absl::Status WriteOutputs();
  void Rename(const std::map<std::string, std::string>& names);
  std::string Take(const std::string& wish);
  std::string Constant(MilValue value);
  std::string Declare(MilWeight weight, Shape shape);

  const Network& network_;
  const Target& target_;
  const MilBlobSink& blobs_;
  int rank_ = 4;
  MilText text_;
  std::set<std::string> taken_;
  std::map<std::string, int> last_;  // the last number appended to a name
  // Names in MIL; empty if not written yet.
  std::vector<std::string> constants_, units_;
  std::vector<std::string> numbers_;  // by port: the dequantized value of a uint8 port
  const Unit* unit_ = nullptr;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_EMITTER_H_
