#include "provider/package/package_tensors.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/model_limits.h"
#include "base/status_macros.h"
#include "provider/package/package_format.h"

namespace anemone {
namespace {

template <class T>
absl::string_view RawBytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Packed like tensors of codes: of two 4-bit values in a byte, the first is in the low bits.
std::string ZeroPointsOf(const Compressed& stored) {
  const size_t per_byte = 8 / stored.code_bits();
  const std::vector<int16_t>& points = stored.zero_points();
  std::string bytes((points.size() + per_byte - 1) / per_byte, '\0');
  for (size_t i = 0; i < points.size(); ++i) {
    const int code = per_byte == 1 ? points[i] : (points[i] & 15) << i % 2 * 4;
    bytes[i / per_byte] = static_cast<char>(bytes[i / per_byte] | code);
  }
  return bytes;
}

format::Grid GridOf(const ScaleGrid& g) {
  return {g.axis, g.inner, g.block, g.outer_stride, g.axis_stride, g.inner_stride};
}

absl::Status DamagedTensor(const std::string& what) {
  return absl::DataLossError(absl::StrCat("a tensor with ", what));
}

class PackagedTensorReader {
 public:
  PackagedTensorReader(const format::Tensor& table, absl::string_view weights,
                       const std::shared_ptr<const void>& owner, absl::Span<const Tensor> sources)
      : table_(table),
        weights_(weights),
        owner_(owner),
        sources_(sources),
        type_(DataType(table.type())) {}

  absl::StatusOr<Tensor> Read() {
    if (table_.source() > 0 && sources_.empty()) {
      return absl::FailedPreconditionError(
          "its weights are in the file of the model, as those of an entry of the program cache can "
          "be; give a package that has them");
    }
    if (table_.source() > sources_.size()) {
      return DamagedTensor(absl::StrCat("bytes in source ", table_.source()));
    }
    if (!format::IsPackagedType(type_)) return DamagedTensor(absl::StrCat("type ", table_.type()));
    if (table_.dims() != nullptr) dims_.assign(table_.dims()->begin(), table_.dims()->end());
    absl::StatusOr<int64_t> elements = ElementCount(dims_);
    if (!elements.ok()) return DamagedTensor("dims that cannot be counted");
    elements_ = *elements;
    if (ByteSize(type_, dims_) > ValueOf(ModelLimit::kTensorBytes)) {
      return OverLimit(ModelLimit::kTensorBytes, absl::StrCat("a tensor: ", DataTypeName(type_),
                                                              " ", DimsToString(dims_), " has"));
    }
    const bool is_compressed =
        table_.form() != format::Form::Dense && table_.form() != format::Form::Fill;
    if (is_compressed && type_ != DataType::kFloat) return DamagedTensor("codes for another type");
    switch (table_.form()) {
      case format::Form::Dense:
        return ViewData(type_, dims_);
      case format::Form::Fill: {
        ANEMONE_ASSIGN_OR_RETURN(Tensor element, ViewData(type_, {1}));
        return Tensor::Fill(type_, dims_, element.bytes());
      }
      case format::Form::Affine:
        return ReadAffine();
      case format::Form::Palette: {
        ANEMONE_ASSIGN_OR_RETURN(Tensor codes, Codes());
        ANEMONE_ASSIGN_OR_RETURN(Tensor values, Values());
        return Made(Compressed::Palette(std::move(codes), values));
      }
      case format::Form::Sparse:
        return ReadSparse();
    }
    return DamagedTensor(absl::StrCat("form ", static_cast<int>(table_.form())));
  }

 private:
  static absl::StatusOr<absl::string_view> At(const format::Bytes* place, absl::string_view of) {
    if (place == nullptr) return absl::string_view();
    if (place->offset() <= of.size() && place->size() <= of.size() - place->offset()) {
      return of.substr(place->offset(), place->size());
    }
    return DamagedTensor(
        absl::StrCat(place->size(), " bytes at ", place->offset(), " of weights of ", of.size()));
  }

  static absl::StatusOr<Tensor> View(const format::Bytes* place, absl::string_view of,
                                     const std::shared_ptr<const void>& owner, DataType type,
                                     std::vector<int64_t> dims) {
    ANEMONE_ASSIGN_OR_RETURN(absl::string_view bytes, At(place, of));
    const int64_t want = ByteSize(type, dims);
    if (static_cast<int64_t>(bytes.size()) != want) {
      return DamagedTensor(absl::StrCat(bytes.size(), " bytes in place of ", want));
    }
    return Tensor::View(type, std::move(dims),
                        {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}, owner);
  }

  // `data`, which may be outside the package.
  absl::StatusOr<Tensor> ViewData(DataType type, std::vector<int64_t> dims) const {
    if (table_.source() == 0) return View(table_.data(), weights_, owner_, type, std::move(dims));
    const Tensor& source = sources_[table_.source() - 1];
    return View(table_.data(), BytesText(source), source.owner(), type, std::move(dims));
  }

  absl::StatusOr<DataType> CodeType() const {
    const auto type = DataType(table_.code_type());
    for (DataType known : {DataType::kInt8, DataType::kUInt8, DataType::kInt4, DataType::kUInt4}) {
      if (type == known) return type;
    }
    return DamagedTensor(absl::StrCat("codes of type ", table_.code_type()));
  }

  absl::StatusOr<Tensor> Codes() const {
    ANEMONE_ASSIGN_OR_RETURN(const DataType type, CodeType());
    return ViewData(type, {elements_});
  }

  // All float32 values of `values`.
  absl::StatusOr<Tensor> Values() const {
    ANEMONE_ASSIGN_OR_RETURN(absl::string_view bytes, At(table_.values(), weights_));
    const auto count = static_cast<int64_t>(bytes.size() / sizeof(float));
    return View(table_.values(), weights_, owner_, DataType::kFloat, {count});
  }

  absl::StatusOr<Tensor> ReadAffine() const {
    ANEMONE_ASSIGN_OR_RETURN(Tensor codes, Codes());
    ANEMONE_ASSIGN_OR_RETURN(Tensor scales, Values());
    Tensor zero_points;
    if (table_.zero_points() != nullptr && table_.zero_points()->size() > 0) {
      ANEMONE_ASSIGN_OR_RETURN(zero_points, View(table_.zero_points(), weights_, owner_,
                                                 codes.type(), {scales.elements()}));
    }
    const format::Grid* g = table_.grid();
    if (g == nullptr) return DamagedTensor("scales but no grid");
    return Made(Compressed::Affine(std::move(codes), scales, zero_points,
                                   {g->axis(), g->inner(), g->block(), g->outer_stride(),
                                    g->axis_stride(), g->inner_stride()}));
  }

  absl::StatusOr<Tensor> ReadSparse() const {
    ANEMONE_ASSIGN_OR_RETURN(absl::string_view bits, At(table_.data(), weights_));
    ANEMONE_ASSIGN_OR_RETURN(Tensor values, Values());
    if (bits.size() % sizeof(uint64_t) != 0) return DamagedTensor("part of a word of bits");
    std::vector<uint64_t> mask(bits.size() / sizeof(uint64_t));
    if (!mask.empty()) std::memcpy(mask.data(), bits.data(), bits.size());
    std::vector<float> kept(values.elements());
    if (!kept.empty()) std::memcpy(kept.data(), values.bytes().data(), values.bytes().size());
    return Made(Compressed::Masked(elements_, std::move(mask), std::move(kept)));
  }

  absl::StatusOr<Tensor> Made(absl::StatusOr<Compressed::Ptr> stored) const {
    if (!stored.ok()) return absl::DataLossError(stored.status().message());
    return Tensor::Of(dims_, *std::move(stored));
  }

  const format::Tensor& table_;
  absl::string_view weights_;
  const std::shared_ptr<const void>& owner_;
  const absl::Span<const Tensor> sources_;
  const DataType type_;
  std::vector<int64_t> dims_;
  int64_t elements_ = 0;
};

}  // namespace

std::optional<PackageSource> FindSource(absl::Span<const Tensor> sources, absl::string_view bytes) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const absl::string_view source = BytesText(sources[i]);
    const bool inside =
        std::less_equal<>()(source.data(), bytes.data()) &&
        std::less_equal<>()(bytes.data() + bytes.size(), source.data() + source.size());
    if (inside) return PackageSource{i, static_cast<uint64_t>(bytes.data() - source.data())};
  }
  return std::nullopt;
}

format::Bytes PackageTensorWriter::PlaceData(absl::string_view bytes, uint32_t& source) {
  const auto found = FindSource(sources_, bytes);
  source = found ? static_cast<uint32_t>(found->source + 1) : 0;
  return found ? format::Bytes(found->offset, bytes.size()) : Place(bytes);
}

format::Bytes PackageTensorWriter::Place(absl::string_view bytes) {
  if (bytes.empty()) return {0, 0};
  auto [place, is_new] = placed_.try_emplace({bytes.data(), bytes.size()}, size_, bytes.size());
  if (!is_new) return place->second;
  static constexpr char kZeros[format::kAlignment] = {};
  pieces_.push_back(bytes);
  pieces_.emplace_back(kZeros, format::Aligned(bytes.size()) - bytes.size());
  size_ += format::Aligned(bytes.size());
  return place->second;
}

format::Bytes PackageTensorWriter::PlaceOwned(std::string bytes) {
  return Place(owned_.emplace_back(std::move(bytes)));
}

absl::StatusOr<flatbuffers::Offset<format::Tensor>> PackageTensorWriter::Write(
    const Tensor& tensor, flatbuffers::FlatBufferBuilder& builder) {
  if (!format::IsPackagedType(tensor.type())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a constant of ", DataTypeName(tensor.type()), ", which no device supports"));
  }
  const auto type = static_cast<int32_t>(tensor.type());
  const auto dims = builder.CreateVector(tensor.dims());
  const Compressed* stored = tensor.compressed();
  uint32_t source = 0;
  if (stored == nullptr) {
    const format::Bytes data = PlaceData(BytesText(tensor), source);
    const format::Form form = tensor.is_fill() ? format::Form::Fill : format::Form::Dense;
    return format::CreateTensor(builder, type, dims, form, &data, 0, nullptr, nullptr, nullptr,
                                source);
  }
  if (stored->form() == CompressedForm::kSparse) {
    const format::Bytes bits = Place(RawBytes(stored->mask()));
    const format::Bytes kept = Place(RawBytes(stored->values()));
    return format::CreateTensor(builder, type, dims, format::Form::Sparse, &bits, 0, &kept);
  }
  const bool is_affine = stored->form() == CompressedForm::kAffine;
  const format::Bytes codes = PlaceData(BytesText(stored->codes()), source);
  const format::Bytes values = Place(RawBytes(is_affine ? stored->scales() : stored->values()));
  const format::Bytes zero_points = PlaceOwned(ZeroPointsOf(*stored));
  const format::Grid grid = GridOf(stored->grid());
  return format::CreateTensor(
      builder, type, dims, is_affine ? format::Form::Affine : format::Form::Palette, &codes,
      static_cast<int32_t>(stored->codes().type()), &values, &zero_points, &grid, source);
}

absl::StatusOr<Tensor> ReadPackageTensor(const format::Tensor& table, absl::string_view weights,
                                         const std::shared_ptr<const void>& owner,
                                         absl::Span<const Tensor> sources) {
  return PackagedTensorReader(table, weights, owner, sources).Read();
}

}  // namespace anemone
