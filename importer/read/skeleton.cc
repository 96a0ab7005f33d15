#include "importer/read/skeleton.h"

#include <google/protobuf/io/coded_stream.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/byte_sizes.h"
#include "base/give_back_large.h"
#include "base/model_limits.h"
#include "base/stack_room.h"
#include "base/status_macros.h"

namespace anemone {
namespace {

using onnx::TensorProto;

// The messages of onnx.proto that contain tensors or can be nested in themselves. All others are
// copied unchanged.
enum class Message : uint8_t {
  kCopied,
  kDropped,
  kModel,
  kGraph,
  kFunction,
  kNode,
  kAttribute,
  kTensor,
  kSparseTensor,
  kValueInfo,
  kType,
  kElementType,  // TypeProto.Sequence and .Optional
  kMapType,
  kCount,
};

constexpr absl::string_view kMessageNames[] = {"",
                                               "",
                                               "ModelProto",
                                               "GraphProto",
                                               "FunctionProto",
                                               "NodeProto",
                                               "AttributeProto",
                                               "TensorProto",
                                               "SparseTensorProto",
                                               "ValueInfoProto",
                                               "TypeProto",
                                               "TypeProto",
                                               "TypeProto.Map"};
static_assert(std::size(kMessageNames) == static_cast<size_t>(Message::kCount));

struct Edge {
  Message parent;
  int field;
  Message child;
};

constexpr Edge kEdges[] = {
    {Message::kModel, 7, Message::kGraph},
    {Message::kModel, 20, Message::kDropped},  // training_info
    {Message::kModel, 25, Message::kFunction},
    {Message::kGraph, 1, Message::kNode},
    {Message::kGraph, 5, Message::kTensor},
    {Message::kGraph, 11, Message::kValueInfo},
    {Message::kGraph, 12, Message::kValueInfo},
    {Message::kGraph, 13, Message::kValueInfo},
    {Message::kGraph, 15, Message::kSparseTensor},
    {Message::kFunction, 7, Message::kNode},
    {Message::kFunction, 11, Message::kAttribute},
    {Message::kFunction, 12, Message::kValueInfo},
    {Message::kNode, 5, Message::kAttribute},
    {Message::kAttribute, 5, Message::kTensor},
    {Message::kAttribute, 6, Message::kGraph},
    {Message::kAttribute, 10, Message::kTensor},
    {Message::kAttribute, 11, Message::kGraph},
    {Message::kAttribute, 14, Message::kType},
    {Message::kAttribute, 15, Message::kType},
    {Message::kAttribute, 22, Message::kSparseTensor},
    {Message::kAttribute, 23, Message::kSparseTensor},
    {Message::kSparseTensor, 1, Message::kTensor},
    {Message::kSparseTensor, 2, Message::kTensor},
    {Message::kValueInfo, 2, Message::kType},
    {Message::kType, 4, Message::kElementType},
    {Message::kType, 5, Message::kMapType},
    {Message::kType, 9, Message::kElementType},
    {Message::kElementType, 1, Message::kType},
    {Message::kMapType, 2, Message::kType},
};

constexpr int kFields = 32;  // all field numbers in kEdges are smaller
constexpr auto kChildren = [] {
  std::array<std::array<Message, kFields>, static_cast<size_t>(Message::kCount)> children{};
  for (const Edge& edge : kEdges) {
    children[static_cast<size_t>(edge.parent)][edge.field] = edge.child;
  }
  return children;
}();

Message ChildOf(Message parent, uint32_t field) {
  return field < kFields ? kChildren[static_cast<size_t>(parent)][field] : Message::kCopied;
}

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

constexpr int kLengthBytes = 5;

// Measured with nested Ifs, of which each is three messages (tests/cli/model_limits_test.py).
constexpr int64_t kStackOfAll = 128 << 10, kStackOfMessage = 4 << 10;
constexpr int kShallow = 12;  // a thread of any system has the stack for this

struct Field {
  uint32_t number = 0;
  WireType type = kVarint;
  size_t begin = 0;  // of the tag
  size_t value = 0;  // of the value, after tag and length
  size_t end = 0;
};

class Walker {
 public:
  Walker(absl::string_view file, size_t payload_from)
      : file_(file),
        payload_from_(payload_from),
        most_bytes_(ValueOf(ModelLimit::kModelBytes)),
        most_depth_(ValueOf(ModelLimit::kNesting)),
        longest_string_(ValueOf(ModelLimit::kStringBytes)) {}

  absl::Status WalkModel() {
    ANEMONE_RETURN_IF_ERROR(Walk(Message::kModel, 0, file_.size(), 0));
    return CheckStack();
  }
  const std::string& skeleton() const { return out_; }
  bool has_locations() const { return has_locations_; }
  std::vector<Payload>& payloads() { return payloads_; }

 private:
  absl::Status Walk(Message message, size_t begin, size_t end, int depth);
  absl::Status WalkChild(Message child, const Field& field, int depth);
  absl::Status WalkTensor(size_t begin, size_t end);
  absl::StatusOr<Field> ReadField(Message message, size_t begin, size_t end) const;
  absl::StatusOr<uint64_t> ReadVarint(Message message, size_t* at, size_t end) const;
  absl::Status Copy(size_t begin, size_t end);
  absl::Status CheckString(const Field& field) const;
  absl::Status CheckStack() const;
  void AppendVarint(uint64_t value);
  absl::Status Damaged(Message message, size_t at, absl::string_view what) const;

  absl::string_view file_;
  const size_t payload_from_;
  const int64_t most_bytes_, most_depth_, longest_string_;
  int deepest_ = 0;
  bool has_locations_ = false;  // of tensors' data
  std::string out_;
  std::vector<Payload> payloads_;
};

absl::Status Walker::Damaged(Message message, size_t at, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat("truncated, damaged or not an ONNX model: at byte ", at,
                                          ", in a ", kMessageNames[static_cast<int>(message)], ": ",
                                          what, kWriteModelAgain));
}

absl::StatusOr<uint64_t> Walker::ReadVarint(Message message, size_t* at, size_t end) const {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (*at >= end) {
      return Damaged(message, *at,
                     end == file_.size() ? absl::StrCat("the file ends at byte ", end)
                                         : "a number extends past the end of its message");
    }
    const auto byte = static_cast<uint8_t>(file_[(*at)++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return Damaged(message, *at, "a number has more than 10 bytes");
}

absl::StatusOr<Field> Walker::ReadField(Message message, size_t begin, size_t end) const {
  Field field;
  field.begin = begin;
  size_t at = begin;
  ANEMONE_ASSIGN_OR_RETURN(const uint64_t tag, ReadVarint(message, &at, end));
  const uint64_t number = tag >> 3;
  if (number == 0 || number > (1u << 29) - 1) {
    return Damaged(message, begin, absl::StrCat("field number ", number, " does not exist"));
  }
  field.number = static_cast<uint32_t>(number);
  field.type = static_cast<WireType>(tag & 7);
  uint64_t length = 0;
  switch (field.type) {
    case kVarint: {
      field.value = at;
      ANEMONE_RETURN_IF_ERROR(ReadVarint(message, &at, end).status());
      field.end = at;
      return field;
    }
    case kFixed64:
      length = 8;
      break;
    case kFixed32:
      length = 4;
      break;
    case kLengthDelimited: {
      ANEMONE_ASSIGN_OR_RETURN(length, ReadVarint(message, &at, end));
      break;
    }
    default:  // groups, which ONNX does not use, and invalid wire types
      return Damaged(message, begin, absl::StrCat("field ", number, " has wire type ", tag & 7));
  }
  if (length > end - at) {
    return Damaged(message, begin,
                   absl::StrCat("field ", number, " is ", length, " bytes long, but ",
                                end == file_.size() ? "the file" : "its message", " ends at byte ",
                                end, " (", end - at, " bytes left)"));
  }
  field.value = at;
  field.end = at + static_cast<size_t>(length);
  return field;
}

absl::Status Walker::Copy(size_t begin, size_t end) {
  if (static_cast<int64_t>(out_.size() + (end - begin)) > most_bytes_) {
    return OverLimit(ModelLimit::kModelBytes,
                     "without its mappable weights (raw_data, external data) the model has",
                     "store its tensors as these");
  }
  out_.append(file_.data() + begin, end - begin);
  return absl::OkStatus();
}

absl::Status Walker::CheckString(const Field& field) const {
  if (static_cast<int64_t>(field.end - field.value) <= longest_string_) return absl::OkStatus();
  return OverLimit(ModelLimit::kStringBytes,
                   absl::StrCat("at byte ", field.begin, ": a name, text or list of numbers has"));
}

void Walker::AppendVarint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
  out_.push_back(static_cast<char>(value));
}

// Reading, folding, planning and ONNX Runtime go into each body within those around it.
absl::Status Walker::CheckStack() const {
  if (deepest_ <= kShallow) return absl::OkStatus();  // do not ask the system
  const int64_t need = kStackOfAll + deepest_ * kStackOfMessage;
  const int64_t left = StackLeft();
  if (left >= need) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("graphs are nested ", deepest_, " or more messages deep, which needs ",
                   BytesText(need), " of stack, but this thread has ", BytesText(left),
                   " left; load the model in a thread with a larger stack (ulimit -s, "
                   "threading.stack_size()), or flatten the model"));
}

// Copies the fields of one message; all bytes between two children are copied at once.
absl::Status Walker::Walk(Message message, size_t begin, size_t end, int depth) {
  if (depth > most_depth_) {
    return OverLimit(ModelLimit::kNesting,
                     absl::StrCat("at byte ", begin, ": graphs or types are nested too deep,"),
                     "flatten the model");
  }
  if (depth > deepest_) {
    deepest_ = depth;
    if (depth % kShallow == 0) ANEMONE_RETURN_IF_ERROR(CheckStack());  // this walk needs some, too
  }
  size_t copied = begin;
  for (size_t at = begin; at < end;) {
    ANEMONE_ASSIGN_OR_RETURN(const Field field, ReadField(message, at, end));
    at = field.end;
    const Message child =
        field.type == kLengthDelimited ? ChildOf(message, field.number) : Message::kCopied;
    if (child == Message::kCopied) {
      ANEMONE_RETURN_IF_ERROR(CheckString(field));
      continue;
    }
    ANEMONE_RETURN_IF_ERROR(Copy(copied, field.begin));
    copied = field.end;
    if (child != Message::kDropped) ANEMONE_RETURN_IF_ERROR(WalkChild(child, field, depth + 1));
  }
  return Copy(copied, end);
}

// The child's length is known only after it is written, so five bytes are reserved for it. protobuf
// also accepts this longer form of a varint.
absl::Status Walker::WalkChild(Message child, const Field& field, int depth) {
  AppendVarint(uint64_t{field.number} << 3 | kLengthDelimited);
  const size_t length_at = out_.size();
  out_.append(kLengthBytes, '\0');
  ANEMONE_RETURN_IF_ERROR(child == Message::kTensor ? WalkTensor(field.value, field.end)
                                                    : Walk(child, field.value, field.end, depth));
  size_t length = out_.size() - length_at - kLengthBytes;
  for (int i = 0; i < kLengthBytes; ++i, length >>= 7) {
    out_[length_at + i] = static_cast<char>((length & 0x7f) | (i + 1 < kLengthBytes ? 0x80 : 0));
  }
  return absl::OkStatus();
}

absl::Status Walker::WalkTensor(size_t begin, size_t end) {
  std::optional<Field> payload;
  int payload_fields = 0;  // if there are several, they are copied: protobuf merges them
  for (size_t at = begin; at < end;) {
    ANEMONE_ASSIGN_OR_RETURN(const Field field, ReadField(Message::kTensor, at, end));
    at = field.end;
    if (field.number == TensorProto::kSegmentFieldNumber) {
      return absl::InvalidArgumentError(absl::StrCat(
          "at byte ", field.begin, ": a tensor is a segment of another, which is not supported ",
          "(ONNX Runtime refuses it too); store it whole"));
    }
    has_locations_ |= field.number == TensorProto::kDataLocationFieldNumber;
    if (field.number != TensorProto::kRawDataFieldNumber &&
        field.number != TensorProto::kFloatDataFieldNumber &&
        field.number != TensorProto::kDoubleDataFieldNumber) {
      if (field.number == TensorProto::kStringDataFieldNumber) {
        ANEMONE_RETURN_IF_ERROR(CheckString(field));
      }
      continue;
    }
    ++payload_fields;
    if (field.type == kLengthDelimited && field.end - field.value >= payload_from_) payload = field;
  }
  if (!payload.has_value() || payload_fields > 1) return Copy(begin, end);
  ANEMONE_RETURN_IF_ERROR(Copy(begin, payload->begin));
  ANEMONE_RETURN_IF_ERROR(Copy(payload->end, end));
  TensorProto reference;
  const auto index = static_cast<int64_t>(payloads_.size());
  reference.mutable_segment()->set_begin(index);
  reference.mutable_segment()->set_end(index + 1);
  reference.AppendToString(&out_);
  const absl::Span<const std::byte> bytes(
      reinterpret_cast<const std::byte*>(file_.data()) + payload->value,
      payload->end - payload->value);
  payloads_.push_back({bytes, static_cast<int>(payload->number)});
  GiveBackLarge(bytes);  // reading the tensor's header may have brought pages around it
  return absl::OkStatus();
}

// Recognizes, by their first bytes, other files that users often give instead of a model.
absl::Status RefuseOtherFormats(absl::string_view file) {
  constexpr struct {
    size_t at;
    absl::string_view magic, what;
  } kOthers[] = {
      {0, absl::string_view("PK\x03\x04", 4), "a zip archive; unpack it"},
      {0, absl::string_view("\x1f\x8b", 2), "a gzip file; unpack it"},
      {0, "version https://git-lfs", "a Git LFS pointer, not the file itself; run `git lfs pull`"},
      {0, "<!DOCTYPE", "a web page; download the file itself"},
      {0, "<html", "a web page; download the file itself"},
      {4, "ORTM", "an ONNX Runtime .ort file; use the .onnx file that it was made from"},
      {4, "TFL3", "a TensorFlow Lite model; convert it to ONNX"},
  };
  for (const auto& other : kOthers) {
    if (file.size() >= other.at && file.substr(other.at, other.magic.size()) == other.magic) {
      return absl::DataLossError(absl::StrCat("not an ONNX model: this is ", other.what));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Skeleton>> MakeSkeleton(absl::string_view file,
                                                       std::shared_ptr<const void> owner,
                                                       size_t payload_from) {
  ANEMONE_RETURN_IF_ERROR(RefuseOtherFormats(file));
  Walker walker(file, payload_from);
  ANEMONE_RETURN_IF_ERROR(walker.WalkModel());
  auto skeleton = std::make_unique<Skeleton>();
  skeleton->payloads = std::move(walker.payloads());
  skeleton->owner = std::move(owner);
  google::protobuf::io::CodedInputStream stream(
      reinterpret_cast<const uint8_t*>(walker.skeleton().data()),
      static_cast<int>(walker.skeleton().size()));
  stream.SetRecursionLimit(static_cast<int>(ValueOf(ModelLimit::kNesting)) + 10);
  if (!skeleton->proto.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    return absl::DataLossError(
        absl::StrCat("damaged or not an ONNX model: protobuf cannot parse it", kWriteModelAgain));
  }
  return skeleton;
}

bool MayHaveExternalData(absl::string_view file) {
  Walker walker(file, kPayloadFrom);
  return !walker.WalkModel().ok() || walker.has_locations();
}

void AddPayload(absl::Span<const std::byte> bytes, Skeleton* skeleton, onnx::TensorProto* tensor) {
  const auto index = static_cast<int64_t>(skeleton->payloads.size());
  tensor->mutable_segment()->set_begin(index);
  tensor->mutable_segment()->set_end(index + 1);
  skeleton->payloads.push_back({bytes, TensorProto::kRawDataFieldNumber});
}

}  // namespace anemone
