#include "provider/buckets/bucketing.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "anemone/compressed.h"
#include "base/mapped_file.h"
#include "base/near_names.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "importer/read/bindings.h"
#include "provider/ports.h"

namespace anemone {
namespace {

// A limit, since `check` plans each bucket and each may become a program.
constexpr size_t kMostBuckets = 64;

// Constants of at least as many bytes are only read by programs, which import the model again.
constexpr int64_t kLargeConstant = 4096;

absl::Status Bad(absl::string_view where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

absl::Status WrongOption(absl::string_view option, absl::string_view what) {
  return AsUsageError(Bad(option, what));
}

std::string OptionOf(const std::string& symbol, const std::vector<int64_t>& sizes) {
  return absl::StrCat("--bucket ", symbol, "=", absl::StrJoin(sizes, ","));
}

// Frees the large constants that import computed, such as the transposed codes of compressed
// weights. Those in a file take no memory.
void DropComputed(Graph& graph) {
  for (Value& value : graph.values) {
    if (!value.constant || value.constant->is_fill()) continue;
    const Compressed* stored = value.constant->compressed();
    const int64_t size = stored != nullptr ? stored->stored_bytes()
                                           : static_cast<int64_t>(value.constant->bytes().size());
    if (size < kLargeConstant) continue;
    if (stored == nullptr && MappedFile::Contains(value.constant->bytes())) continue;
    value.constant.reset();
  }
}

}  // namespace

std::string BucketText(const BucketSizes& sizes) {
  return absl::StrJoin(sizes, ",", absl::PairFormatter("="));
}

absl::Status Bucketing::CheckSizes() const {
  size_t combinations = 1;
  for (const auto& [symbol, sizes] : buckets_) {
    const std::string option = OptionOf(symbol, sizes);
    if (sizes.empty()) return WrongOption(option, "want at least one size");
    if (sizes.front() < 1) return WrongOption(option, "want sizes of at least 1");
    if (options_.dims.contains(symbol)) {
      return WrongOption(option,
                         absl::StrCat("--dim binds '", symbol, "' too; drop one of the two"));
    }
    combinations *= std::min(sizes.size(), kMostBuckets + 1);
    if (combinations > kMostBuckets) {
      return WrongOption(option,
                         absl::StrCat("too many combinations of buckets; give fewer sizes, so that "
                                      "there are at most ",
                                      kMostBuckets));
    }
  }
  return absl::OkStatus();
}

absl::Status Bucketing::CheckSymbols() const {
  std::set<std::string> found;
  for (ValueId id : free_.graph.inputs) {
    const Value& value = free_.graph.values[id];
    if (!value.shape) continue;
    for (const Dim& dim : *value.shape) {
      if (!dim.known() && !dim.symbol.empty()) found.insert(dim.symbol);
    }
  }
  for (const auto& [symbol, sizes] : buckets_) {
    if (found.contains(symbol)) continue;
    return WrongOption(
        OptionOf(symbol, sizes),
        absl::StrCat("no input has a free dimension of that name; ",
                     found.empty() ? "all dimensions have a size in the model, or are bound"
                                   : absl::StrCat("there are ",
                                                  NearText(symbol, {found.begin(), found.end()}))));
  }
  return absl::OkStatus();
}

absl::StatusOr<Bucketing> Bucketing::Make(
    const std::map<std::string, std::vector<int64_t>>& buckets, ImportOptions options,
    Import import) {
  Bucketing made;
  made.buckets_ = buckets;
  for (auto& [symbol, sizes] : made.buckets_) {
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  }
  made.options_ = std::move(options);
  made.import_ = std::move(import);
  ANEMONE_RETURN_IF_ERROR(made.CheckSizes());
  ANEMONE_ASSIGN_OR_RETURN(made.free_, made.ProvableAt({}));
  ANEMONE_RETURN_IF_ERROR(made.CheckSymbols());
  // Dimensions without buckets must be bound. Importing at a bucket checks it. A bucket that the
  // model cannot have is no error here, since inputs of other sizes run at their exact size.
  for (const BucketSizes& bucket : made.All()) {
    absl::StatusOr<Model> model = made.ProvableAt(bucket, /*find_sizes=*/false);
    if (absl::IsInvalidArgument(model.status())) continue;
    ANEMONE_RETURN_IF_ERROR(model.status());
    ANEMONE_RETURN_IF_ERROR(RequireBound(*model));
    made.provable_[bucket] = *std::move(model);
    break;
  }
  return made;
}

Bucketing Bucketing::OfArrays(Model free, ImportOptions options, Import import) {
  Bucketing made;
  made.options_ = std::move(options);
  made.import_ = std::move(import);
  made.free_ = std::move(free);
  DropComputed(made.free_.graph);
  for (ValueId id : made.free_.graph.inputs) made.ports_.push_back(PortOf(made.free_.graph, id));
  return made;
}

absl::StatusOr<InputShapes> Bucketing::ShapesOf(const NamedValues& inputs) const {
  const Graph& graph = free_.graph;
  ANEMONE_ASSIGN_OR_RETURN(const std::vector<OnnxValue> values,
                           InputsInOrder(graph, ports_, inputs));
  InputShapes shapes;
  for (size_t i = 0; i < values.size(); ++i) {
    const Value& input = graph.values[graph.inputs[i]];
    if (!input.other_type.empty() || input.is_static()) continue;
    shapes[input.name] = values[i].tensor.dims();
  }
  return shapes;
}

std::string Bucketing::ReasonOf(const absl::Status& status) const {
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat(free_.path.empty() ? kInMemory : free_.path, ": "));
  return std::string(message);
}

ImportOptions Bucketing::OptionsAt(const BucketSizes& sizes, const InputShapes& shapes) const {
  ImportOptions options = options_;
  options.dims.insert(sizes.begin(), sizes.end());
  for (const auto& [input, shape] : shapes) options.shapes[input] = shape;
  return options;
}

absl::StatusOr<Model> Bucketing::ModelAt(const BucketSizes& sizes) const {
  return import_(OptionsAt(sizes));
}

absl::StatusOr<Model> Bucketing::ProvableAt(const BucketSizes& sizes, bool find_sizes) const {
  ImportOptions options = OptionsAt(sizes);
  options.stop_after = 0;
  options.find_sizes = find_sizes;
  return import_(options);
}

std::vector<BucketSizes> Bucketing::All() const {
  std::vector<BucketSizes> all = {{}};
  for (const auto& [symbol, sizes] : buckets_) {
    std::vector<BucketSizes> longer;
    for (const BucketSizes& begun : all) {
      for (int64_t size : sizes) {
        longer.push_back(begun);
        longer.back()[symbol] = size;
      }
    }
    all = std::move(longer);
  }
  return all;
}

absl::Status Bucketing::TakeSizes(const Value& input, const Tensor& tensor,
                                  BucketSizes& sizes) const {
  const Shape shape = input.shape.value_or(Shape());
  bool fits = tensor.type() == input.type && tensor.dims().size() == shape.size();
  for (size_t a = 0; fits && a < shape.size(); ++a) {
    fits = !shape[a].known() || shape[a].size == tensor.dims()[a];
  }
  if (!fits) {
    return Bad(absl::StrCat("input '", input.name, "'"),
               absl::StrCat("want ", DataTypeName(input.type), " ", ShapeText(shape), ", got ",
                            DataTypeName(tensor.type()), " ", DimsToString(tensor.dims()),
                            "; give an array of that type and shape"));
  }
  for (size_t a = 0; a < shape.size(); ++a) {
    const std::string& symbol = shape[a].symbol;
    if (shape[a].known() || !buckets_.contains(symbol)) continue;
    const int64_t size = tensor.dims()[a];
    const std::string where =
        absl::StrCat("input '", input.name, "', dimension ", a, " ('", symbol, "')");
    const std::vector<int64_t>& known = buckets_.at(symbol);
    if (size > known.back()) {
      return Bad(where, absl::StrCat("size ", size, " is above the largest bucket, ", known.back(),
                                     "; give a larger one (--bucket ", symbol, "=...,", size,
                                     "), or a shorter input"));
    }
    if (size < 1) return Bad(where, "is empty; give at least one element");
    const auto [found, is_new] = sizes.try_emplace(symbol, size);
    if (!is_new && found->second != size) {
      return Bad(where, absl::StrCat("size ", size, " differs from another input's size ",
                                     found->second, "; give inputs of the same size"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<BucketSizes> Bucketing::SizesOf(const std::map<std::string, Tensor>& inputs) const {
  BucketSizes sizes;
  for (ValueId id : free_.graph.inputs) {
    const Value& input = free_.graph.values[id];
    const auto given = inputs.find(input.name);
    if (given == inputs.end()) continue;  // the program reports missing inputs
    ANEMONE_RETURN_IF_ERROR(TakeSizes(input, given->second, sizes));
  }
  for (const auto& bucket : buckets_) {
    const std::string& symbol = bucket.first;
    if (sizes.contains(symbol)) continue;
    const auto& ports = free_.graph.inputs;
    const auto port = std::find_if(ports.begin(), ports.end(), [&](ValueId id) {
      const Shape shape = free_.graph.values[id].shape.value_or(Shape());
      return std::any_of(shape.begin(), shape.end(),
                         [&](const Dim& dim) { return dim.symbol == symbol; });
    });
    const std::string name = port == ports.end() ? "" : free_.graph.values[*port].name;
    return Bad(
        absl::StrCat("dimension '", symbol, "'"),
        absl::StrCat("no input with this dimension is given; give an array for '", name, "'"));
  }
  return sizes;
}

BucketSizes Bucketing::BucketOf(const BucketSizes& sizes) const {
  BucketSizes bucket;
  for (const auto& [symbol, size] : sizes) {
    const std::vector<int64_t>& known = buckets_.at(symbol);
    bucket[symbol] = *std::lower_bound(known.begin(), known.end(), size);
  }
  return bucket;
}

BucketSizes Bucketing::Below(const BucketSizes& bucket) const {
  BucketSizes below;
  for (const auto& [symbol, size] : bucket) {
    const bool fits = size > 1 && !std::binary_search(buckets_.at(symbol).begin(),
                                                      buckets_.at(symbol).end(), size - 1);
    below[symbol] = fits ? size - 1 : size;
  }
  return below;
}

absl::StatusOr<PaddingVerdict> Bucketing::Prove(const BucketSizes& bucket,
                                                const BucketSizes& sizes) {
  auto at_bucket = provable_.find(bucket);
  if (at_bucket == provable_.end()) {
    absl::StatusOr<Model> model = ProvableAt(bucket);
    if (absl::IsInvalidArgument(model.status())) {
      return PaddingVerdict{.proof = {}, .refusal = ReasonOf(model.status())};
    }
    ANEMONE_RETURN_IF_ERROR(model.status());
    at_bucket = provable_.emplace(bucket, *std::move(model)).first;
  }
  ANEMONE_ASSIGN_OR_RETURN(const Model exact, ProvableAt(sizes));
  return ProvePadding(at_bucket->second, exact);
}

}  // namespace anemone
