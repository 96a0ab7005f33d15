// tools/command/sudden_end.h: what the command does if memory runs out, or if a file that it has
// mapped is cut off.
//
// The allocation of a tensor, of scratch memory or of another large object throws std::bad_alloc,
// and Guarded() makes an error of it that says where. A small object may be one that Protobuf,
// Abseil's containers, ONNX Runtime or a destructor cannot do without: then the command ends at
// once, with one line, exit code 1 and without temporary files. So it does if it reads a page of a
// file that another program has made shorter (SIGBUS; base/mapped_file.h).
#ifndef ANEMONE_TOOLS_COMMAND_SUDDEN_END_H_
#define ANEMONE_TOOLS_COMMAND_SUDDEN_END_H_

namespace anemone {

// Call it first. Also for a std::bad_alloc that no caller can catch, such as that of another
// library's thread.
void EndIfMemoryRunsOut();
void EndIfAFileIsCutOff();

// From now on, the line is also printed as {"schema": 1, "error": ...}, unless there was a
// document.
void TellInJsonIfItEnds();

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_SUDDEN_END_H_
