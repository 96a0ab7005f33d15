// engine/apple/driver.h: what engine/apple asks of Apple's frameworks, in plain C++. driver.mm
// implements it with Objective-C. It checks nothing and remembers nothing: apple_device.h does.
//
// On macOS driver.mm is part of the library. Elsewhere it is a separate library, which only tests
// build (on GNUstep) and open at run time (open_driver.h). So this header uses no library but
// C++'s, and an error is a text. Objects may be used from any thread, by one thread at a time.
#ifndef ANEMONE_ENGINE_APPLE_DRIVER_H_
#define ANEMONE_ENGINE_APPLE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace anemone::apple {

// nullopt: no error. An empty text: the framework failed and said nothing.
using Error = std::optional<std::string>;

struct WeightFile {
  std::string name;
  const void* data = nullptr;
  size_t bytes = 0;
};

struct ModelSource {
  bool is_mil = false;
  const void* text = nullptr;  // net.plist or MIL text, until MakeModel() returns
  size_t text_bytes = 0;
  std::vector<WeightFile> weights;
};

// An entry of LiveInputList or LiveOutputList. Strides are in bytes.
struct LivePort {
  std::string symbol, type;
  int64_t batches = 0, channels = 0, depth = 0, height = 0, width = 0;
  int64_t batch_stride = 0, depth_stride = 0, plane_stride = 0, row_stride = 0;
};

// Shared memory that the engine reads and writes (an IOSurface).
class DriverSurface {
 public:
  virtual ~DriverSurface() = default;
  virtual size_t bytes() const = 0;
  // The memory may be used between Lock() and Unlock(). Null if it cannot be locked.
  virtual std::byte* Lock(bool only_to_read) = 0;
  virtual void Unlock(bool only_to_read) = 0;
};

using DriverSurfaces = std::vector<std::unique_ptr<DriverSurface>>;

// A model of the framework. Load() needs Compile(), all others need Load().
class DriverModel {
 public:
  virtual ~DriverModel() = default;  // does not unload
  // The folder that the compiler reads; "" if the framework names none.
  virtual std::string Folder() = 0;
  virtual Error Compile() = 0;
  virtual Error Load() = 0;
  virtual Error ListPorts(std::vector<LivePort>& inputs, std::vector<LivePort>& outputs) = 0;
  // Makes a request of these surfaces, in the order of the ports, and maps them. A model has one
  // request; the surfaces must outlive it.
  virtual Error Map(const DriverSurfaces& inputs, const DriverSurfaces& outputs) = 0;
  virtual Error Evaluate() = 0;
  virtual Error Unmap() = 0;
  virtual Error Unload() = 0;
};

class Driver {
 public:
  virtual ~Driver() = default;
  // "Apple M1 Pro"; "" if the system does not say.
  virtual std::string Chip() = 0;
  virtual Error MakeModel(const ModelSource& source, std::unique_ptr<DriverModel>& model) = 0;
  virtual Error MakeSurface(size_t bytes, std::unique_ptr<DriverSurface>& surface) = 0;
};

}  // namespace anemone::apple

// Opens the framework's library at `framework`, and looks up every class, message and symbol of
// apple_facts.json. An error names the first that is missing.
extern "C" __attribute__((visibility("default"))) void anemone_open_apple_driver(
    const char* framework, std::unique_ptr<anemone::apple::Driver>& driver,
    anemone::apple::Error& error);

#endif  // ANEMONE_ENGINE_APPLE_DRIVER_H_
