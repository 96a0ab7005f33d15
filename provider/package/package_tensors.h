// provider/package/package_tensors.h: reads and writes the tensors of a package's networks. Their
// bytes are in section "weights"; a table for each tensor has its type, shape and position there.
#ifndef ANEMONE_PROVIDER_PACKAGE_PACKAGE_TENSORS_H_
#define ANEMONE_PROVIDER_PACKAGE_PACKAGE_TENSORS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "anemone/compressed.h"
#include "anemone/tensor.h"
#include "package_generated.h"  // generated

namespace anemone {

// Borrows the tensors. Bytes that two tensors share are stored once.
class PackageTensorWriter {
 public:
  // kInvalidArgument: a type that no device supports.
  absl::StatusOr<flatbuffers::Offset<format::Tensor>> Write(
      const Tensor& tensor, flatbuffers::FlatBufferBuilder& builder);

  // The parts of the section, in order.
  const std::vector<absl::string_view>& pieces() const { return pieces_; }

 private:
  format::Bytes Place(absl::string_view bytes);
  format::Bytes PlaceOwned(std::string bytes);

  std::vector<absl::string_view> pieces_;
  uint64_t size_ = 0;
  std::map<std::pair<const char*, size_t>, format::Bytes> placed_;
  std::deque<std::string> owned_;
};

// `weights` is the section, kept alive by `owner`. kDataLoss: the table contradicts itself or the
// section.
absl::StatusOr<Tensor> ReadPackageTensor(const format::Tensor& table, absl::string_view weights,
                                         const std::shared_ptr<const void>& owner);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_PACKAGE_TENSORS_H_
