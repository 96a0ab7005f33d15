#include "tests/fuzzers/mutate_model.h"

#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <random>
#include <vector>

namespace anemone {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The types of ONNX's messages, from their .proto file, and those of Core ML's, from the set of
// descriptors of the build. The lite versions in the libraries have no reflection.
const google::protobuf::Descriptor* OnnxModel() {
  static google::protobuf::compiler::DiskSourceTree& sources =
      *new google::protobuf::compiler::DiskSourceTree;
  sources.MapPath("onnx-ml.proto", ANEMONE_ONNX_PROTO);
  auto* importer = new google::protobuf::compiler::Importer(&sources, nullptr);
  const auto* file = importer->Import("onnx-ml.proto");
  return file == nullptr ? nullptr : file->FindMessageTypeByName("ModelProto");
}

const google::protobuf::Descriptor* CoreMlModel() {
  google::protobuf::FileDescriptorSet files;
  std::ifstream in(ANEMONE_COREML_SCHEMA, std::ios::binary);
  auto* pool = new google::protobuf::DescriptorPool;
  if (!files.ParseFromIstream(&in)) return nullptr;
  for (const auto& file : files.file()) pool->BuildFile(file);
  return pool->FindMessageTypeByName("CoreML.Specification.Model");
}

const Message& PrototypeOf(const google::protobuf::Descriptor* type) {
  static google::protobuf::DynamicMessageFactory& factory =
      *new google::protobuf::DynamicMessageFactory;
  if (type == nullptr) {
    std::fprintf(stderr, "cannot read %s or %s\n", ANEMONE_ONNX_PROTO, ANEMONE_COREML_SCHEMA);
    std::abort();
  }
  return *factory.GetPrototype(type);
}

std::unique_ptr<Message> NewModel(MessageKind kind) {
  if (kind == MessageKind::kCoreMl) {
    static const Message& core_ml = PrototypeOf(CoreMlModel());
    return std::unique_ptr<Message>(core_ml.New());
  }
  static const Message& onnx = PrototypeOf(OnnxModel());
  return std::unique_ptr<Message>(onnx.New());
}

class Mutation {
 public:
  Mutation(Message& model, unsigned seed) : random_(seed) { Collect(model, 0); }

  void Change() {
    Message& message = *Pick(messages_);
    const auto& type = *message.GetDescriptor();
    if (type.field_count() == 0) return;
    const FieldDescriptor* field = type.field(static_cast<int>(random_() % type.field_count()));
    if (field->is_repeated()) {
      ChangeRepeated(message, field);
    } else if (random_() % 4 == 0) {
      message.GetReflection()->ClearField(&message, field);
    } else {
      Set(message, field, /*add=*/false);
    }
  }

 private:
  static constexpr int kDeepest = 40;

  // Finds all messages and texts inside of `message`.
  void Collect(Message& message, int depth) {
    messages_.push_back(&message);
    if (depth == kDeepest) return;
    const Reflection& access = *message.GetReflection();
    std::vector<const FieldDescriptor*> fields;
    access.ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const int count = field->is_repeated() ? access.FieldSize(message, field) : 1;
      for (int i = 0; i < count; ++i) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          Collect(*(field->is_repeated() ? access.MutableRepeatedMessage(&message, field, i)
                                         : access.MutableMessage(&message, field)),
                  depth + 1);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
          texts_.push_back(field->is_repeated() ? access.GetRepeatedString(message, field, i)
                                                : access.GetString(message, field));
        }
      }
    }
  }

  void ChangeRepeated(Message& message, const FieldDescriptor* field) {
    const Reflection& access = *message.GetReflection();
    const int size = access.FieldSize(message, field);
    switch (size == 0 ? 0 : random_() % 4) {
      case 0:
        Set(message, field, /*add=*/true);
        break;
      case 1:
        access.RemoveLast(&message, field);
        break;
      case 2:
        access.SwapElements(&message, field, static_cast<int>(random_() % size),
                            static_cast<int>(random_() % size));
        break;
      default:
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          const Message& copied =
              access.GetRepeatedMessage(message, field, static_cast<int>(random_() % size));
          std::unique_ptr<Message> copy(copied.New());
          copy->CopyFrom(copied);
          access.AddAllocatedMessage(&message, field, copy.release());
        } else {
          access.SwapElements(&message, field, 0, size - 1);
          access.RemoveLast(&message, field);
          Set(message, field, /*add=*/true);
        }
    }
  }

  // Sets the field, or adds an element to it.
  void Set(Message& message, const FieldDescriptor* field, bool add) {
    const Reflection& access = *message.GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        add ? access.AddInt32(&message, field, static_cast<int32_t>(Integer()))
            : access.SetInt32(&message, field, static_cast<int32_t>(Integer()));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        add ? access.AddInt64(&message, field, Integer())
            : access.SetInt64(&message, field, Integer());
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        add ? access.AddBool(&message, field, random_() % 2 == 0)
            : access.SetBool(&message, field, random_() % 2 == 0);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        add ? access.AddUInt64(&message, field, Integer())
            : access.SetUInt64(&message, field, Integer());
        break;
      case FieldDescriptor::CPPTYPE_FLOAT:
        add ? access.AddFloat(&message, field, Number())
            : access.SetFloat(&message, field, Number());
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        add ? access.AddDouble(&message, field, Number())
            : access.SetDouble(&message, field, Number());
        break;
      case FieldDescriptor::CPPTYPE_ENUM: {
        const auto& values = *field->enum_type();
        const auto* value = values.value(static_cast<int>(random_() % values.value_count()));
        add ? access.AddEnum(&message, field, value) : access.SetEnum(&message, field, value);
        break;
      }
      case FieldDescriptor::CPPTYPE_STRING:
        add ? access.AddString(&message, field, Text()) : access.SetString(&message, field, Text());
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE: {
        // Copied first: setting a field of a oneof frees the messages of the others.
        const std::unique_ptr<Message> copy = CopyOfA(field->message_type());
        Message* made =
            add ? access.AddMessage(&message, field) : access.MutableMessage(&message, field);
        if (copy != nullptr) made->CopyFrom(*copy);
        break;
      }
      default:
        break;
    }
  }

  // The content of a message of this type; null if some tries find none that is small.
  std::unique_ptr<Message> CopyOfA(const google::protobuf::Descriptor* type) {
    for (int i = 0; i < 8; ++i) {
      const Message& other = *Pick(messages_);
      if (other.GetDescriptor() != type || other.ByteSizeLong() > 4096) continue;
      std::unique_ptr<Message> copy(other.New());
      copy->CopyFrom(other);
      return copy;
    }
    return nullptr;
  }

  int64_t Integer() {
    constexpr int64_t kValues[] = {0,
                                   1,
                                   -1,
                                   2,
                                   3,
                                   7,
                                   16,
                                   255,
                                   65536,
                                   std::numeric_limits<int32_t>::max(),
                                   std::numeric_limits<int32_t>::min(),
                                   std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::min(),
                                   int64_t{1} << 40};
    return random_() % 2 == 0 ? kValues[random_() % std::size(kValues)]
                              : static_cast<int64_t>(random_() % 32);
  }

  float Number() {
    constexpr float kValues[] = {0.0f,
                                 -0.0f,
                                 1.0f,
                                 -1.0f,
                                 0.5f,
                                 65504.0f,
                                 70000.0f,
                                 1e-8f,
                                 1e38f,
                                 std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN()};
    return kValues[random_() % std::size(kValues)];
  }

  std::string Text() {
    if (random_() % 8 == 0) return std::string(random_() % 9, static_cast<char>(random_() % 256));
    return texts_.empty() ? "" : Pick(texts_);
  }

  template <class T>
  const T& Pick(const std::vector<T>& of) {
    return of[random_() % of.size()];
  }

  std::minstd_rand random_;
  std::vector<Message*> messages_;
  std::vector<std::string> texts_;
};

}  // namespace

std::string MutatedModel(absl::string_view bytes, unsigned seed, MessageKind kind) {
  const std::unique_ptr<Message> model = NewModel(kind);
  if (!model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return "";
  const unsigned changes = 1 + seed / 4 % 4;
  for (unsigned i = 0; i < changes; ++i) {
    // Each change may free messages that the last one collected.
    Mutation(*model, seed + i).Change();
  }
  return model->SerializeAsString();
}

}  // namespace anemone
