// provider/buckets/bucketing.h: which sizes of a model's symbolic dimensions are made to programs,
// which of them a run needs, and whether padding up to it is right.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto buckets, Bucketing::Make({{"seq", {32, 64}}}, {}, import));
//   ANEMONE_ASSIGN_OR_RETURN(BucketSizes sizes, buckets.SizesOf(inputs));   // seq=50
//   buckets.BucketOf(sizes);                                               // seq=64
//   buckets.Prove(bucket, sizes);                                          // a proof, or why not
#ifndef ANEMONE_PROVIDER_BUCKETS_BUCKETING_H_
#define ANEMONE_PROVIDER_BUCKETS_BUCKETING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "importer/importer.h"
#include "importer/padding/padding.h"

namespace anemone {

// By symbol.
using BucketSizes = std::map<std::string, int64_t>;

// "batch=4,seq=64".
std::string BucketText(const BucketSizes& sizes);

class Bucketing {
 public:
  using Import = std::function<absl::StatusOr<Model>(const ImportOptions&)>;

  // `options` binds what is no bucket. Errors: kInvalidArgument: a size below 1, none or too many,
  // a symbol that is bound too or that no input has, an input with a dimension that is neither.
  static absl::StatusOr<Bucketing> Make(const std::map<std::string, std::vector<int64_t>>& buckets,
                                        ImportOptions options, Import import);

  // The model with nothing bound but what `options` bind.
  const Model& free() const { return free_; }

  // Every combination, the smallest first.
  std::vector<BucketSizes> All() const;

  // The sizes of a run's inputs. kInvalidArgument: an input of another type, rank or size than the
  // model's, or two of different sizes; a size above the largest bucket.
  absl::StatusOr<BucketSizes> SizesOf(const std::map<std::string, Tensor>& inputs) const;

  // The smallest that fits sizes of SizesOf().
  BucketSizes BucketOf(const BucketSizes& sizes) const;

  // The largest sizes that are padded to this bucket: one less in each dimension that allows it.
  BucketSizes Below(const BucketSizes& bucket) const;

  // The model bound to these sizes, from one thread at a time.
  absl::StatusOr<Model> ModelAt(const BucketSizes& sizes) const;

  // From one thread at a time. Errors: those of making the model at one of these sizes.
  absl::StatusOr<PaddingVerdict> Prove(const BucketSizes& bucket, const BucketSizes& sizes);

 private:
  absl::Status CheckSizes() const;
  absl::Status CheckSymbols() const;
  absl::Status TakeSizes(const Value& input, const Tensor& tensor, BucketSizes& sizes) const;
  ImportOptions Bound(const BucketSizes& sizes) const;
  absl::StatusOr<Model> ProvableAt(const BucketSizes& sizes) const;  // as ProvePadding() wants it

  std::map<std::string, std::vector<int64_t>> buckets_;  // rising
  ImportOptions options_;
  Import import_;
  Model free_;
  std::map<BucketSizes, Model> provable_;  // of buckets
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_BUCKETING_H_
