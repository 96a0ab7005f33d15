// tools/command/out_of_memory.h: what the command does if memory runs out.
//
// The allocation of a tensor, of scratch memory or of another large object throws std::bad_alloc,
// and Guarded() makes an error of it that says where. A small object may be one that Protobuf,
// Abseil's containers, ONNX Runtime or a destructor cannot do without: then the command ends at
// once, with one line, exit code 1 and without temporary files.
#ifndef ANEMONE_TOOLS_COMMAND_OUT_OF_MEMORY_H_
#define ANEMONE_TOOLS_COMMAND_OUT_OF_MEMORY_H_

namespace anemone {

// Call it first. Also for a std::bad_alloc that no caller can catch, such as that of another
// library's thread.
void EndIfMemoryRunsOut();

// From now on, the line is also printed as {"schema": 1, "error": ...}, unless there was a
// document.
void TellInJsonIfMemoryRunsOut();

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_OUT_OF_MEMORY_H_
