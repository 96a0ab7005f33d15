// bench/openvino.h: runs a model on OpenVINO's CPU plugin, through its C API, which is opened at
// run time.
//
// Uses the hints for fp32 and latency, and `threads` threads. The library is from the PyPI wheel
// that bench/openvino.txt names; bench/peers.py copies it to the user's cache folder.
//
// The wheel contains oneTBB, but its libraries use the oneTBB that is already in the process, which
// has the same soname. So one thread pool serves both. (With the wheel's oneTBB, put first by
// LD_LIBRARY_PATH, OpenVINO's times are the same.)
#ifndef ANEMONE_BENCH_OPENVINO_H_
#define ANEMONE_BENCH_OPENVINO_H_

#include <map>
#include <memory>
#include <string>

#include "tools/compare/contestants.h"

namespace anemone {

struct OpenVinoApi;  // pointers to OpenVINO's C functions

class OpenVino final : public Contestant {
 public:
  // Errors: kNotFound (the library is not in `folder`; the message says how to get it),
  // kFailedPrecondition (a version that does not fit).
  static absl::StatusOr<std::unique_ptr<OpenVino>> Open(const std::string& folder, int threads);

  // The folder to which bench/peers.py copies the libraries of the wheel.
  static std::string DefaultFolder();

  // OK if the library is in `folder`, else kNotFound with a remedy.
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
  Arrays inputs_;  // the request reads their bytes
  std::map<std::string, void*> tensors_;
};

}  // namespace anemone

#endif  // ANEMONE_BENCH_OPENVINO_H_
