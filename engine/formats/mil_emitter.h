// engine/formats/mil_emitter.h: writes a network as a MIL program, unit by unit. How a kind is
// spelled stands in its row (UnitRow.mil):
//
//   absl::Status WriteSoftmax(MilEmitter& e, const SoftmaxParams& p, const Unit& unit) {
//     e.Result(e.Emit("softmax", {{"x", {e.In(0)}}, {"axis", {e.Int(e.ToMilAxis(p.axis))}}},
//                     unit.dims));
//     return absl::OkStatus();
//   }
//
// Every tensor is of rank 4 (N, C, H, W), or 5 (N, C, D, H, W) in a network with depth. Every
// argument but tensors is a const statement of its own: flags must have names (orion.json 12).
#ifndef ANEMONE_ENGINE_FORMATS_MIL_EMITTER_H_
#define ANEMONE_ENGINE_FORMATS_MIL_EMITTER_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/formats/mil_program.h"
#include "engine/network.h"
#include "engine/port_names.h"

namespace anemone {

// Stores a tensor of the weights file: the offset by which MIL names it (MilBlobWriter::Add).
using MilBlobSink = std::function<int64_t(const Tensor&)>;

struct MilText {
  MilProgram program;
  PortNames ports;
};

// Ports keep their names as far as MIL allows: letters, digits and underscores, each once.
// kUnimplemented: a unit that no MIL operation is known for, named with the reason; or an output
// that no unit makes.
absl::StatusOr<MilText> WriteMilProgram(const Network& network, const MilBlobSink& blobs);

// A unit that cannot be written, and why.
struct MilRefusal {
  int unit = -1;
  absl::Status status;
};

// All of them, in order.
std::vector<MilRefusal> RefusedByMil(const Network& network);

class MilEmitter {
 public:
  using Shape = std::vector<int64_t>;

  int rank() const { return rank_; }
  // The axis' number, counted from the front; that of a dims' extents.
  int ToMilAxis(Axis axis) const;
  Shape ShapeOf(const Dims& dims) const;

  // Bottom `i` of the unit that is being written: its name, and its dims. A port of uint8 feeds
  // nothing but a dequantization (numerics.json st-int-ports): the name is that one's result.
  const std::string& In(size_t i);
  // The bottom as it is stored.
  const std::string& Stored(size_t i);
  const Dims& DimsOf(size_t i) const;
  Bottom BottomOf(size_t i) const { return network_.BottomOf(unit_->bottoms[i]); }

  // Const statements; the name to use as an argument.
  std::string Bool(bool value);
  std::string Int(int64_t value, const char* dtype = "int32");
  std::string Ints(absl::Span<const int64_t> values);
  std::string Ints(absl::Span<const int64_t> values, Shape shape);
  std::string Half(float value);
  std::string Float(float value);
  std::string Text(const std::string& value);
  // Floats as fp16, from the weights file; small integers as uint16.
  std::string Weight(const Tensor& tensor, Shape shape);

  // A statement with one fp16 result; its name.
  std::string Emit(const char* op, std::vector<MilArgument> arguments, Shape shape);
  std::string Emit(const char* op, std::vector<MilArgument> arguments, const Dims& dims) {
    return Emit(op, std::move(arguments), ShapeOf(dims));
  }
  // A statement with results of these types; their names.
  std::vector<std::string> EmitAll(const char* op, std::vector<MilArgument> arguments,
                                   std::vector<MilType> types);
  // The type of indices, and such a tensor as the fp16 numbers that a unit has instead.
  MilType IndexType(const Dims& dims) const;
  std::string Numbers(const std::string& indices, const Dims& dims);
  // The unit's own result.
  void Result(std::string name);

 private:
  friend absl::StatusOr<MilText> WriteMilProgram(const Network&, const MilBlobSink&);
  friend std::vector<MilRefusal> RefusedByMil(const Network&);
  MilEmitter(const Network& network, const MilBlobSink& blobs);

  void WriteInputs();
  std::string WriteConstant(int index);
  std::vector<MilRefusal> WriteUnits();
  absl::Status WriteOutputs();
  void Rename(const std::map<std::string, std::string>& names);
  std::string Take(const std::string& wish);
  std::string Constant(MilValue value);

  const Network& network_;
  const MilBlobSink& blobs_;
  int rank_ = 4;
  MilText text_;
  std::set<std::string> taken_;
  std::map<std::string, int> last_;  // number behind a name
  // MIL's names; empty: not written yet.
  std::vector<std::string> constants_, units_;
  std::vector<std::string> numbers_;  // by port of uint8, dequantized
  const Unit* unit_ = nullptr;
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_MIL_EMITTER_H_
