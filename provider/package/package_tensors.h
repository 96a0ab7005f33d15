// provider/package/package_tensors.h: reads and writes the tensors of a package's networks. Their
// bytes are in section "weights"; a table for each tensor has its type, shape and position there.
#ifndef ANEMONE_PROVIDER_PACKAGE_PACKAGE_TENSORS_H_
#define ANEMONE_PROVIDER_PACKAGE_PACKAGE_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
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

// Where bytes are that a package refers to and does not hold.
struct PackageSource {
  size_t source = 0;  // an index of Package::sources
  uint64_t offset = 0;
};
// Nullopt if `bytes` are in none of `sources`.
std::optional<PackageSource> FindSource(absl::Span<const Tensor> sources, absl::string_view bytes);

// Borrows the tensors. Bytes that two tensors share are stored once.
class PackageTensorWriter {
 public:
  // Elements in one of `sources` are not stored but referred to.
  explicit PackageTensorWriter(absl::Span<const Tensor> sources = {}) : sources_(sources) {}

  // kInvalidArgument: a type that no device supports.
  absl::StatusOr<flatbuffers::Offset<format::Tensor>> Write(
      const Tensor& tensor, flatbuffers::FlatBufferBuilder& builder);

  // The parts of the section, in order.
  const std::vector<absl::string_view>& pieces() const { return pieces_; }

 private:
  // Of the elements or codes: `source` as in format::Tensor.
  format::Bytes PlaceData(absl::string_view bytes, uint32_t& source);
  format::Bytes Place(absl::string_view bytes);
  format::Bytes PlaceOwned(std::string bytes);

  absl::Span<const Tensor> sources_;
  std::vector<absl::string_view> pieces_;
  uint64_t size_ = 0;
  std::map<std::pair<const char*, size_t>, format::Bytes> placed_;
  std::deque<std::string> owned_;
};

// `weights` is the section, kept alive by `owner`. kDataLoss: the table contradicts itself, the
// section or `sources`. kResourceExhausted: beyond ModelLimit::kTensorBytes.
absl::StatusOr<Tensor> ReadPackageTensor(const format::Tensor& table, absl::string_view weights,
                                         const std::shared_ptr<const void>& owner,
                                         absl::Span<const Tensor> sources = {});

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_PACKAGE_PACKAGE_TENSORS_H_
