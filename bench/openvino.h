// bench/openvino.h: OpenVINO's CPU plugin as a contestant, through its C API, opened at run time.
//
// fp32 and latency hints; `threads` threads. The library comes out of the PyPI wheel that
// bench/openvino.txt names; bench/peers.py puts it into the user's cache folder.
//
// The wheel brings a oneTBB, but its libraries find ours in the process, of the same soname, and
// take that: one pool of threads serves both. (With the wheel's own, put before ours by
// LD_LIBRARY_PATH, OpenVINO's times are the same.)
#ifndef ANEMONE_BENCH_OPENVINO_H_
#define ANEMONE_BENCH_OPENVINO_H_

#include <map>
#include <memory>
#include <string>

#include "tools/compare/contestants.h"

namespace anemone {

struct OpenVinoApi;  // its C functions

class OpenVino final : public Contestant {
 public:
  // Errors: kNotFound (no such library; says how to get it), kFailedPrecondition (another version).
  static absl::StatusOr<std::unique_ptr<OpenVino>> Open(const std::string& folder, int threads);

  // Where bench/peers.py puts the wheel's libraries.
  static std::string DefaultFolder();

  // Whether the library is in `folder`; if not, what to do.
  static absl::Status Find(const std::string& folder);

  ~OpenVino() override;
  absl::Status Load(const std::string& path, const Arrays& inputs) override;
  absl::Status SetInputs(const Arrays& inputs) override;
  absl::Status Run() override;
  absl::StatusOr<Arrays> Outputs() override;

 private:
  OpenVino(std::shared_ptr<const OpenVinoApi> api, int threads)
      : api_(std::move(api)), threads_(threads) {}
  absl::Status Reshape(const Arrays& inputs);
  absl::Status ToStatus(int code, const char* where) const;

  std::shared_ptr<const OpenVinoApi> api_;
  int threads_;
  void* core_ = nullptr;
  void* model_ = nullptr;
  void* compiled_ = nullptr;
  void* request_ = nullptr;
  Arrays inputs_;  // whose bytes the request reads
  std::map<std::string, void*> tensors_;
};

}  // namespace anemone

#endif  // ANEMONE_BENCH_OPENVINO_H_
