// anemone/surfaces.h: memory of the engine that a caller reads and writes, so that no run copies or
// converts these inputs and outputs.
//
//   auto memory = session.MakeSurfaces({"image", "probs"});
//   if (!memory.ok()) return Fail(memory.status());
//   auto image = memory->View("image");            // fp16, where the engine reads it
//   while (Grab(image->data, image->strides)) {
//     if (auto ran = memory->Run({}); !ran.ok()) return Fail(ran.status());
//     Show(memory->View("probs")->data);           // where the engine wrote it
//   }
//
// The rows of a port may be padded (to 64 bytes on the engine of a Mac; the software engine packs
// them): heed the strides.
#ifndef ANEMONE_SURFACES_H_
#define ANEMONE_SURFACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/onnx_value.h"
#include "anemone/session.h"

namespace anemone {

// Element (i, j, ...) is a fp16 number at byte i * strides[0] + j * strides[1] + ...
struct SurfaceView {
  std::byte* data = nullptr;
  std::vector<int64_t> dims, strides;
};

// Of Session::MakeSurfaces(). It may outlive the session. Several can be used at the same time.
class Surfaces {
 public:
  Surfaces(Surfaces&&) noexcept;
  Surfaces& operator=(Surfaces&&) noexcept;
  ~Surfaces();

  // The memory of one of the ports, zeros at first. It is the same for the life of this object, and
  // must not be used while a run lasts: an output may then have any content. kNotFound: another
  // name.
  absl::StatusOr<SurfaceView> View(const std::string& port) const;

  // Runs the model on the inputs' memory, of which NaNs become +infinity, and on `others`: values
  // for all other inputs. Returns the other outputs. Runs wait for each other. Errors: those of
  // Session::Run().
  absl::StatusOr<std::map<std::string, OnnxValue>> Run(
      const std::map<std::string, OnnxValue>& others) const;

 private:
  friend class Session;
  struct State;
  explicit Surfaces(std::unique_ptr<State> state);
  static absl::StatusOr<Surfaces> Of(std::shared_ptr<CurrentModel> model,
                                     const std::vector<std::string>& ports);
  std::unique_ptr<State> state_;
};

}  // namespace anemone

#endif  // ANEMONE_SURFACES_H_
