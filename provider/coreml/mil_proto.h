// provider/coreml/mil_proto.h: a MIL program as the Protobuf message of a Core ML package.
#ifndef ANEMONE_PROVIDER_COREML_MIL_PROTO_H_
#define ANEMONE_PROVIDER_COREML_MIL_PROTO_H_

#include "absl/status/status.h"
#include "engine/formats/mil_operations.h"
#include "engine/formats/mil_program.h"

// NOLINTNEXTLINE(readability-identifier-naming): the schema's name
namespace CoreML::Specification::MILSpec {
class Program;
}  // namespace CoreML::Specification::MILSpec

namespace anemone {

// The name in MIL texts ("fp16") of a value of the message's enum DataType; null: it has none.
const char* MilDtypeOf(int type);

// Adds the program as a function of `to`, in the opset's form. kInternal: a value has a type that
// the message does not have.
absl::Status WriteMilProto(const MilProgram& program, const MilOpset& opset,
                           CoreML::Specification::MILSpec::Program& to);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_MIL_PROTO_H_
