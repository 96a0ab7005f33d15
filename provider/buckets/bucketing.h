// provider/buckets/bucketing.h: the sizes of a model's free dimensions for which programs are
// compiled. Without buckets they are the sizes of each run's arrays. With buckets it chooses the
// bucket of a run, and proves that padding to it is correct.
//
//   ANEMONE_ASSIGN_OR_RETURN(auto buckets, Bucketing::Make({{"seq", {32, 64}}}, {}, import));
//   ANEMONE_ASSIGN_OR_RETURN(BucketSizes sizes, buckets.SizesOf(inputs));  // seq=50
//   BucketSizes bucket = buckets.BucketOf(sizes);                          // seq=64
//   // A proof, or why not.
//   ANEMONE_ASSIGN_OR_RETURN(PaddingVerdict verdict, buckets.Prove(bucket, sizes));
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
#include "provider/run_inputs.h"

namespace anemone {

// By symbol.
using BucketSizes = std::map<std::string, int64_t>;

// Whole shapes, by input.
using InputShapes = std::map<std::string, std::vector<int64_t>>;

// "batch=4,seq=64".
std::string BucketText(const BucketSizes& sizes);

class Bucketing {
 public:
  using Import = std::function<absl::StatusOr<Model>(const ImportOptions&)>;

  // `options` binds the dimensions without buckets. A bucket may be a size that the model cannot
  // have. Errors: kInvalidArgument (a size below 1, no sizes or too many, a symbol that `options`
  // binds too or that no input has, an input with a dimension that has no bucket and is not bound).
  static absl::StatusOr<Bucketing> Make(const std::map<std::string, std::vector<int64_t>>& buckets,
                                        ImportOptions options, Import import);

  // Without buckets. `free` is the model as `import` returns it for `options`.
  static Bucketing OfArrays(Model free, ImportOptions options, Import import);

  // The model with only the dimensions bound that `options` binds.
  const Model& free() const { return free_; }
  bool has_buckets() const { return !buckets_.empty(); }

  // The shapes of a run's inputs that have free dimensions. Errors: those of InputsInOrder().
  absl::StatusOr<InputShapes> ShapesOf(const NamedValues& inputs) const;

  // All combinations of bucket sizes, smallest first.
  std::vector<BucketSizes> All() const;

  // The sizes of a run's inputs. kInvalidArgument: an input has another type, rank or size than the
  // model declares, two inputs have different sizes for one symbol, or a size is above the largest
  // bucket.
  absl::StatusOr<BucketSizes> SizesOf(const std::map<std::string, Tensor>& inputs) const;

  // The smallest bucket that fits `sizes`, a result of SizesOf().
  BucketSizes BucketOf(const BucketSizes& sizes) const;

  // The largest sizes that are padded to this bucket: one less in each dimension that allows it.
  BucketSizes Below(const BucketSizes& bucket) const;

  // The options that bind the model to these sizes.
  ImportOptions OptionsAt(const BucketSizes& sizes, const InputShapes& shapes = {}) const;
  // The model bound to these sizes. A UsageError if the model cannot have them; the message names
  // them, and sizes that fit. Not thread-safe.
  absl::StatusOr<Model> ModelAt(const BucketSizes& sizes) const;
  // The message of an import's error without the model's name, which a report has already.
  std::string ReasonOf(const absl::Status& status) const;

  // Proves that inputs of `sizes` can be padded to `bucket`, or says why not, for example because
  // the model cannot have the size of the bucket. Not thread-safe. Errors: those of importing the
  // model at `sizes`, as those of ModelAt().
  absl::StatusOr<PaddingVerdict> Prove(const BucketSizes& bucket, const BucketSizes& sizes);

 private:
  absl::Status CheckSizes() const;
  absl::Status CheckSymbols() const;
  absl::Status TakeSizes(const Value& input, const Tensor& tensor, BucketSizes& sizes) const;
  // Prepared for ProvePadding().
  absl::StatusOr<Model> ProvableAt(const BucketSizes& sizes, bool find_sizes = true) const;

  std::map<std::string, std::vector<int64_t>> buckets_;  // ascending
  ImportOptions options_;
  Import import_;
  Model free_;
  std::vector<PortInfo> ports_;            // of free_'s inputs; without buckets only
  std::map<BucketSizes, Model> provable_;  // by bucket
};

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_BUCKETS_BUCKETING_H_
