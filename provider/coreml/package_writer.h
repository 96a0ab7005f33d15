// provider/coreml/package_writer.h: the files of a Core ML package in an existing folder, for any
// MIL program.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto writer, PackageWriter::Make("net.mlpackage"));
//   const MilBlobSink weights = writer->blobs();           // for the weights of mil_program
//   return writer->Finish(mil_program, opset, about);      // the weights, the model, the manifest
#ifndef ANEMONE_PROVIDER_COREML_PACKAGE_WRITER_H_
#define ANEMONE_PROVIDER_COREML_PACKAGE_WRITER_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_program.h"
#include "engine/network.h"
#include "engine/port_names.h"
#include "engine/target.h"
#include "provider/coreml/free_sizes.h"
#include "provider/coreml/weights_file.h"

namespace anemone {

// What a package says of itself.
struct PackageText {
  struct Port {
    std::string description;
    bool is_image = false;  // an input of shape 1x3xHxW or 1x1xHxW
    // Of an input with free sizes, one of these: the bounds of each dimension, or all shapes.
    std::vector<SizeRange> ranges = {};
    std::vector<std::vector<int64_t>> shapes = {};
  };
  std::vector<Port> inputs, outputs;  // in the program's order
  std::string description, author, version, license;
  std::map<std::string, std::string> other;  // user-defined metadata, by key
};

// Inputs of the type "state<fp16>" are states.
bool IsState(const MilOutput& port);

// The outputs of a program with the types that its statements give them.
std::vector<MilOutput> OutputsOf(const MilProgram& program);

// The number of the opset named `asked` (engine/formats/mil_operations.h), or of the oldest that
// has all of the program if it is empty. `has_lists`: several inputs have lists of shapes.
// kUnimplemented: the program needs a later system.
absl::StatusOr<int> OpsetFor(const MilProgram& program, const std::string& asked,
                             bool has_lists = false);

class PackageWriter {
 public:
  // kPermissionDenied: the folder cannot be written.
  static absl::StatusOr<std::unique_ptr<PackageWriter>> Make(std::string folder);

  MilBlobSink blobs();
  // Errors: kPermissionDenied, kResourceExhausted (2 GB without the weights).
  absl::Status Finish(const MilProgram& program, int opset, const PackageText& text);

 private:
  PackageWriter(std::string folder, std::string data);

  std::string folder_, data_;
  WeightsFile weights_;
};

// Writes a segment's network as a package; its ports are fp16 arrays with the engine's dims.
// kUnimplemented: no MIL form, or a port of bytes.
absl::StatusOr<PortNames> SaveSegmentPackage(const Network& network, const Target& target,
                                             const std::string& folder);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COREML_PACKAGE_WRITER_H_
