// provider/coreml/program_writer.h: collects the statements of one MIL program for a whole model.
//
// A value of the model is a variable of the program: fp16 for all float types (fp32 where a node
// needs the range), int32 for all integers, bool. A value of rank 0 has the shape [1]. A variable
// is cast and reshaped where it is read, once for each type and shape. In a program for several
// sizes (provider/coreml/free_sizes.h), a size that is only known at run time is kFree.
#ifndef ANEMONE_PROVIDER_COREML_PROGRAM_WRITER_H_
#define ANEMONE_PROVIDER_COREML_PROGRAM_WRITER_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_program.h"
#include "engine/target.h"
#include "importer/graph.h"
#include "partitioner/plan.h"
#include "provider/coreml/port_options.h"

namespace anemone {

using MilShape = std::vector<int64_t>;

// A size that is only known at run time, as an extent.
inline constexpr int64_t kFree = -1;
bool HasFree(const MilShape& shape);

// A variable of the program.
struct MilVar {
  std::string name;
  std::string dtype;
  MilShape shape;
};

// "fp16", "int32" or "bool": the type of a value in the program. Null for strings, complex numbers
// and what is not a tensor.
const char* MilTypeOf(DataType type);

// The shape of a value in the program; nullopt if its rank is not known.
std::optional<MilShape> MilShapeOf(const Value& value);

// The name that MIL can have: of letters, digits and underscores.
std::string Identifier(const std::string& name);

// The attribute that holds a statement's name.
std::vector<std::pair<std::string, MilValue>> Named(const std::string& name);

// kUnimplemented: "'NAME' " and what Core ML cannot have of it.
absl::Status NotSaid(const Value& value, const char* what);

class ProgramWriter {
 public:
  // `may_be_free`: sizes may be kFree.
  ProgramWriter(const Graph& graph, const MilBlobSink& blobs, bool may_be_free = false)
      : graph_(&graph), blobs_(blobs), may_be_free_(may_be_free) {
    program_.build_info = {{"component", "anemone"}};
  }
  ProgramWriter(const ProgramWriter&) = delete;
  ProgramWriter& operator=(const ProgramWriter&) = delete;

  // Declares the model's inputs and reserves the names of its outputs. kUnimplemented: a port has a
  // type or rank that Core ML does not have, or a free dimension. UsageError: a wish does not fit
  // the model's ports.
  absl::Status AddPorts(const PortWishes& wishes);
  // Writes the units of an engine segment. kUnimplemented: MIL has no form for a unit.
  absl::Status AddSegment(const Segment& segment, const Target& target);
  // A nested block with the statements that `write` writes for a body's nodes. The body's captures
  // are the values `captured` of the graph around it. Its results are variables of the block,
  // floats as `floats`. Errors: those of `write`, and of Read().
  struct Block {
    MilBlock block;
    std::vector<MilVar> results;
  };
  absl::StatusOr<Block> WriteBlock(const Graph& body, absl::Span<const ValueId> captured,
                                   const std::string& floats,
                                   const std::function<absl::Status()>& write);
  // Gives the outputs their names and types, and stores those that become a state. UsageError: all
  // become states. kUnimplemented: the model has no outputs.
  absl::Status AddOutputs();

  // The model's graph; inside of WriteBlock(), that of the body.
  const Graph& graph() const { return *graph_; }
  bool may_be_free() const { return may_be_free_; }
  const MilProgram& program() const { return program_; }

  // The value, also if it is a constant, as a variable of `dtype`. kUnimplemented if Core ML does
  // not have its type or shape; kInternal if no statement computed it.
  absl::StatusOr<MilVar> Read(ValueId id, const std::string& dtype);
  // Makes the variable the value's, cast and reshaped to the value's own form where it differs.
  absl::Status Set(ValueId id, MilVar variable, bool keeps_fp32 = false);

  // Statements with one result.
  MilVar Emit(const std::string& op, std::vector<MilArgument> arguments, std::string dtype,
              MilShape shape);
  std::vector<MilVar> EmitAll(const std::string& op, std::vector<MilArgument> arguments,
                              std::vector<MilType> types, std::vector<MilBlock> blocks = {});
  MilVar Cast(const MilVar& from, const std::string& dtype);
  // kFree in a shape is the size that the other extents leave. The second is false if there are two
  // or more, and the shapes differ in more than extents of 1.
  MilVar Reshape(const MilVar& from, const MilShape& shape);
  static bool CanReshape(const MilVar& from, const MilShape& shape);
  // The extents at run time, as int32.
  MilVar ExtentsOf(const MilVar& from);

  // Constants; each returns the name. Equal ones are written once.
  std::string Bool(bool value);
  std::string Int(int64_t value);
  std::string Ints(absl::Span<const int64_t> values);
  std::string Number(double value, const std::string& dtype);
  std::string Text(const std::string& value);
  // Booleans; the shape is that of a list, or `shape`.
  MilVar Flags(const Json& values, MilShape shape = {});
  // A tensor of numbers, in the weights file if it is large and has floats.
  MilVar Constant(const Tensor& tensor, const std::string& dtype, const MilShape& shape);

  // What the user should know of the program's numbers; each text once.
  void AddNote(std::string note);
  const std::vector<std::string>& notes() const { return notes_; }

  // The names that statements get: the value that a node computes.
  void NameAfter(const std::string& value) { wish_ = value; }

 private:
  // What is written once in a block, and read in it and the blocks inside of it.
  struct Known {
    std::map<std::pair<const Value*, std::string>, MilVar> constants;  // by value and type
    std::map<std::pair<std::string, std::string>, MilVar> casts;       // by variable and type
    std::map<std::pair<std::string, MilShape>, MilVar> reshaped;       // by variable and shape
    std::map<std::string, MilVar> extents;                             // by variable
    std::map<std::string, std::string> scalars;                        // by type and text
  };

  std::string Take(const std::string& wish);
  std::vector<std::string> TakePortNames();
  std::string Const(MilValue value, const std::string& wish);
  absl::Status CheckShape(const Value& value, const std::optional<MilShape>& shape) const;
  absl::Status AddImage(ValueId input, const ImageWish& wish);
  absl::Status AddState(ValueId input, const std::string& present);
  absl::Status Bind(const Segment& segment, const MilProgram& part,
                    std::map<std::string, std::string>& names);

  const Graph* graph_;
  const MilBlobSink& blobs_;
  const bool may_be_free_;
  MilProgram program_;
  std::vector<MilStatement>* statements_ = &program_.statements;  // of the block
  std::vector<std::string> output_names_, notes_;
  std::set<std::string> taken_;
  std::map<std::string, int> last_;
  std::map<const Value*, MilVar> values_;
  std::map<ValueId, MilVar> states_;  // by output: the state that it becomes
  Known known_;
  std::string wish_ = "value";
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_PROGRAM_WRITER_H_
