// Tests tensors: every element type from every field, mapped without a copy, external, sparse.
#include <unistd.h>

#include <numeric>

#include "importer/importer.h"
#include "importer/read/tensor_reader.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using onnx::TensorProto;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Lt;
using testing::SizeIs;

TEST(Tensor, CountsElementsAndBytes) {
  EXPECT_EQ(*ElementCount({}), 1);
  EXPECT_EQ(*ElementCount({2, 3}), 6);
  EXPECT_EQ(*ElementCount({int64_t{1} << 40, 0}), 0);
  EXPECT_THAT(ElementCount({2, -1}), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("dimension -1 of shape 2x-1")));
  EXPECT_THAT(ElementCount({int64_t{1} << 40, int64_t{1} << 40, 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("overflows")));
  EXPECT_EQ(ByteSize(DataType::kInt4, {3}), 2);
  EXPECT_EQ(ByteSize(DataType::kUInt2, {5}), 2);
  EXPECT_EQ(ByteSize(DataType::kComplex128, {2}), 32);
  EXPECT_EQ(DimsToString({}), "scalar");
  EXPECT_EQ(DimsToString({1, 3}), "1x3");
  EXPECT_THAT(DimsToString(std::vector<int64_t>(100, 7)),
              AllOf(SizeIs(Lt(100)), HasSubstr("7x7x... (100 dimensions)")));
}

TEST(Tensor, OwnedViewedFilled) {
  Tensor zeros = Tensor::Zeros(DataType::kFloat, {2, 2});
  zeros.mutable_data<float>()[3] = 5;
  const Tensor shared = zeros;
  EXPECT_EQ(shared.at<float>(3), 5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(shared.bytes().data()) % 64, 0);
  EXPECT_EQ(shared.Reshaped({4}).dims(), std::vector<int64_t>{4});

  const float one = 1;
  const auto* one_bytes = reinterpret_cast<const std::byte*>(&one);
  const Tensor fill = Tensor::Fill(DataType::kFloat, {1000, 1000}, {one_bytes, sizeof(one)});
  EXPECT_EQ(fill.elements(), 1000000);
  EXPECT_THAT(fill.bytes(), SizeIs(4));
  EXPECT_EQ(fill.at<float>(999999), 1);
  EXPECT_FALSE(fill.aligned<float>());

  EXPECT_THAT(Tensor::Strings({2}, {"a", "b"}).strings(), ElementsAre("a", "b"));
  EXPECT_THAT(Tensor::Zeros(DataType::kString, {2}).strings(), ElementsAre("", ""));
  EXPECT_EQ(Tensor().type(), DataType::kUndefined);
}

absl::StatusOr<Tensor> ReadTensor(const TensorProto& proto) {
  return TensorReader(nullptr, nullptr).Read(proto, "tensor 't'");
}

TensorProto Proto(int type, std::vector<int64_t> dims) {
  TensorProto proto;
  proto.set_data_type(type);
  for (int64_t dim : dims) proto.add_dims(dim);
  return proto;
}

TEST(TensorReading, RawBytesOfEveryType) {
  for (int type = 1; type <= kLastDataType; ++type) {
    if (type == TensorProto::STRING) continue;
    SCOPED_TRACE(DataTypeName(static_cast<DataType>(type)));
    TensorProto proto = Proto(type, {3});
    std::string bytes(ByteSize(static_cast<DataType>(type), {3}), '\0');
    std::iota(bytes.begin(), bytes.end(), 1);
    proto.set_raw_data(bytes);
    const auto tensor = ReadTensor(proto);
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(static_cast<int>(tensor->type()), type);
    EXPECT_EQ(
        std::string(reinterpret_cast<const char*>(tensor->bytes().data()), tensor->bytes().size()),
        bytes);
    proto.set_raw_data(bytes + "x");
    EXPECT_THAT(ReadTensor(proto),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("tensor 't'")));
  }
}

// The entries 1, 2, ... of the typed field become elements 1, 2, ....
TEST(TensorReading, TypedFieldsOfEveryType) {
  for (int type = 1; type <= kLastDataType; ++type) {
    SCOPED_TRACE(DataTypeName(static_cast<DataType>(type)));
    TensorProto proto = Proto(type, {2});
    EXPECT_THAT(ReadTensor(proto), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("_data, found 0; the model is damaged")));
    const int bits = BitsOf(static_cast<DataType>(type));
    const bool is_complex = type == TensorProto::COMPLEX64 || type == TensorProto::COMPLEX128;
    const int entries = bits > 0 && bits < 8 ? 1 : is_complex ? 4 : 2;
    for (int i = 1; i <= entries; ++i) {
      switch (type) {
        case TensorProto::FLOAT:
        case TensorProto::COMPLEX64:
          proto.add_float_data(i);
          break;
        case TensorProto::DOUBLE:
        case TensorProto::COMPLEX128:
          proto.add_double_data(i);
          break;
        case TensorProto::INT64:
          proto.add_int64_data(i);
          break;
        case TensorProto::UINT32:
        case TensorProto::UINT64:
          proto.add_uint64_data(i);
          break;
        case TensorProto::STRING:
          proto.add_string_data(absl::StrCat(i));
          break;
        default:
          proto.add_int32_data(i);
      }
    }
    const auto tensor = ReadTensor(proto);
    ASSERT_THAT(tensor, IsOk());
    EXPECT_EQ(tensor->elements(), 2);
    if (type == TensorProto::STRING) {
      EXPECT_THAT(tensor->strings(), ElementsAre("1", "2"));
    } else if (type == TensorProto::FLOAT) {
      EXPECT_EQ(tensor->at<float>(1), 2);
    } else if (type == TensorProto::DOUBLE) {
      EXPECT_EQ(tensor->at<double>(1), 2);
    } else if (type == TensorProto::COMPLEX128) {
      EXPECT_EQ(tensor->at<double>(3), 4);
    } else if (type == TensorProto::COMPLEX64) {
      EXPECT_EQ(tensor->at<float>(3), 4);
    } else if (bits == 64) {
      EXPECT_EQ(tensor->at<int64_t>(1), 2);
    } else if (bits == 32) {
      EXPECT_EQ(tensor->at<int32_t>(1), 2);
    } else if (bits == 16) {
      EXPECT_EQ(tensor->at<uint16_t>(1), 2);
    } else {
      EXPECT_EQ(tensor->at<uint8_t>(entries - 1), entries);
    }
  }
}

TEST(TensorReading, NegativeInt32DataNarrows) {
  TensorProto proto = Proto(TensorProto::INT8, {2});
  proto.add_int32_data(-1);
  proto.add_int32_data(-128);
  EXPECT_EQ(ReadTensor(proto)->at<int8_t>(0), -1);
  EXPECT_EQ(ReadTensor(proto)->at<int8_t>(1), -128);
}

TEST(TensorReading, SparseBecomesDense) {
  for (const bool linear : {true, false}) {
    onnx::ModelProto model = ParseModel("agraph () => (float y) { y = Relu(s) }");
    onnx::SparseTensorProto* sparse = model.mutable_graph()->add_sparse_initializer();
    sparse->add_dims(2);
    sparse->add_dims(3);
    *sparse->mutable_values() = Proto(TensorProto::FLOAT, {2});
    sparse->mutable_values()->set_name("s");
    for (float v : {7.f, 8.f}) sparse->mutable_values()->add_float_data(v);
    *sparse->mutable_indices() =
        Proto(TensorProto::INT64, linear ? std::vector<int64_t>{2} : std::vector<int64_t>{2, 2});
    const std::vector<int64_t> indices =
        linear ? std::vector<int64_t>{1, 5} : std::vector<int64_t>{0, 1, 1, 2};
    for (int64_t i : indices) sparse->mutable_indices()->add_int64_data(i);
    const auto read = Read(model);
    ASSERT_THAT(read, IsOk());
    const Tensor& dense = *ValueNamed(read->graph, "s").constant;
    EXPECT_EQ(dense.dims(), (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(dense.at<float>(1), 7);
    EXPECT_EQ(dense.at<float>(5), 8);
    EXPECT_EQ(dense.at<float>(0), 0);

    sparse->mutable_indices()->set_int64_data(1, -1);
    EXPECT_THAT(Read(model),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("sparse initializer 's'")));
    sparse->set_dims(0, int64_t{1} << 30);
    EXPECT_THAT(Read(model),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("store it dense")));
  }
}

// True if the tensor's bytes are in the mapping that keeps them alive.
bool IsMapped(const Tensor& tensor) {
  const auto* file = static_cast<const MappedFile*>(tensor.owner().get());
  const std::byte* begin = tensor.bytes().data();
  return begin >= file->bytes().data() &&
         begin + tensor.bytes().size() <= file->bytes().data() + file->bytes().size();
}

TEST(Mapping, LargePayloadsOfEachKindAreViews) {
  onnx::ModelProto model = ParseModel(R"(
      agraph (float x) => (float y) {
        c = Constant <value = float[1] {0}> ()
        y = my.Op (x, raw, floats, doubles, c)
      })");
  AddInitializer<float>(model, "raw", TensorProto::FLOAT, {300}, std::vector<float>(300, 1));
  TensorProto* floats = model.mutable_graph()->add_initializer();
  *floats = Proto(TensorProto::FLOAT, {300});
  floats->set_name("floats");
  TensorProto* doubles = model.mutable_graph()->add_initializer();
  *doubles = Proto(TensorProto::DOUBLE, {300});
  doubles->set_name("doubles");
  for (int i = 0; i < 300; ++i) {
    floats->add_float_data(i);
    doubles->add_double_data(i);
  }
  TensorProto* constant = model.mutable_graph()->mutable_node(0)->mutable_attribute(0)->mutable_t();
  constant->set_dims(0, 5000);
  constant->clear_float_data();
  constant->set_raw_data(std::string(20000, 'a'));
  TempFolder folder;
  const auto read = ReadFile(folder.Write("m.onnx", model.SerializeAsString()));
  ASSERT_THAT(read, IsOk());
  for (const char* name : {"raw", "floats", "doubles", "c"}) {
    EXPECT_TRUE(IsMapped(*ValueNamed(read->graph, name).constant)) << name;
  }
  EXPECT_EQ(ValueNamed(read->graph, "raw").constant->at<float>(299), 1);
  EXPECT_EQ(ValueNamed(read->graph, "floats").constant->at<float>(299), 299);
  EXPECT_EQ(ValueNamed(read->graph, "doubles").constant->at<double>(299), 299);
}

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string LengthDelimited(int field, uint64_t length) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(length);
}

TEST(Mapping, PackedPiecesOfOneFieldAreJoined) {
  onnx::ModelProto model = ParseModel("agraph (float[600] x) => (float y) { y = Add(x, w) }");
  TensorProto piece = Proto(TensorProto::FLOAT, {600});
  piece.set_name("w");
  for (int i = 0; i < 300; ++i) piece.add_float_data(i);
  TensorProto more;
  for (int i = 300; i < 600; ++i) more.add_float_data(i);
  // protobuf merges two concatenated messages.
  const std::string tensor = piece.SerializeAsString() + more.SerializeAsString();
  model.mutable_graph()->mutable_unknown_fields()->append(
      LengthDelimited(onnx::GraphProto::kInitializerFieldNumber, tensor.size()) + tensor);
  const auto read = Read(model);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(ValueNamed(read->graph, "w").constant->at<float>(599), 599);
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

// The file is sparse: the weight is a hole, so the file has a large length but uses little disk.
TEST(Mapping, AModelOfHalfAGigabyteCostsKilobytes) {
  constexpr int64_t kFloats = 125'000'000;
  onnx::ModelProto model = ParseModel("agraph (float[1] x) => (float y) { y = Add(x, w) }");
  std::string graph = model.graph().SerializeAsString();
  model.clear_graph();
  TensorProto weight = Proto(TensorProto::FLOAT, {kFloats});
  weight.set_name("w");
  std::string tensor =
      weight.SerializeAsString() + LengthDelimited(TensorProto::kRawDataFieldNumber, kFloats * 4);
  graph += LengthDelimited(onnx::GraphProto::kInitializerFieldNumber, tensor.size() + kFloats * 4);
  graph += tensor;
  const std::string head =
      model.SerializeAsString() +
      LengthDelimited(onnx::ModelProto::kGraphFieldNumber, graph.size() + kFloats * 4) + graph;
  TempFolder folder;
  const std::string path = folder.Write("large.onnx", head);
  std::filesystem::resize_file(path, head.size() + kFloats * 4);

  const int64_t before = ResidentBytes();
  const auto read = ReadFile(path);
  const int64_t grown = ResidentBytes() - before;
  ASSERT_THAT(read, IsOk());
  const Tensor& w = *ValueNamed(read->graph, "w").constant;
  EXPECT_TRUE(IsMapped(w));
  EXPECT_THAT(w.bytes(), SizeIs(kFloats * 4));
  EXPECT_EQ(w.at<float>(kFloats - 1), 0);
  EXPECT_LT(grown, 16 << 20);
}

onnx::ModelProto ExternalModel(const std::string& location, const std::string& offset = "",
                               const std::string& length = "") {
  onnx::ModelProto model = ParseModel("agraph (float[2] x) => (float y) { y = Add(x, w) }");
  SetExternal(AddInitializer<float>(model, "w", TensorProto::FLOAT, {2}, {}), location, offset,
              length);
  return model;
}

const std::string kThreeFloats("\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40", 12);  // 1, 2, 3

TEST(External, IsMappedOncePerFile) {
  onnx::ModelProto model = ExternalModel("sub/./w.bin", "4", "8");
  SetExternal(AddInitializer<float>(model, "v", TensorProto::FLOAT, {2}, {}), "sub/./w.bin");
  TempFolder folder;
  folder.Write("sub/w.bin", kThreeFloats);
  const auto read = ReadFile(folder.Write("m.onnx", model.SerializeAsString()));
  ASSERT_THAT(read, IsOk());
  const Tensor& w = *ValueNamed(read->graph, "w").constant;
  const Tensor& v = *ValueNamed(read->graph, "v").constant;
  EXPECT_TRUE(IsMapped(w));
  EXPECT_EQ(w.owner(), v.owner());
  EXPECT_EQ(w.at<float>(1), 3);
  EXPECT_EQ(v.at<float>(1), 2);
}

TEST(External, IsFoundBesideAModelNamedWithoutFolder) {
  TempFolder folder;
  folder.Write("w.bin", kThreeFloats);
  folder.Write("m.onnx", ExternalModel("w.bin").SerializeAsString());
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_THAT(ReadFile("m.onnx"), IsOk());
  std::filesystem::current_path(before);
  EXPECT_THAT(Read(ExternalModel("w.bin"), folder.path()), IsOk());
}

// models--x/snapshots/1/model.onnx -> ../../blobs/aa, and the data next to it is a link too.
TEST(External, TheCacheOfHuggingFaceLoads) {
  TempFolder folder;
  folder.Write("blobs/aa", ExternalModel("model.onnx_data").SerializeAsString());
  folder.Write("blobs/bb", kThreeFloats);
  std::filesystem::create_directories(folder.path("snapshots/1/onnx"));
  const auto link = [&](const char* to, const char* name) {
    std::filesystem::create_symlink(to, folder.path(name));
  };
  link("../../../blobs/aa", "snapshots/1/onnx/model.onnx");
  link("../../../blobs/bb", "snapshots/1/onnx/model.onnx_data");
  const auto read = ReadFile(folder.path("snapshots/1/onnx/model.onnx"));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(ValueNamed(read->graph, "w").constant->at<float>(0), 1);
}

TEST(External, LinksThatStayInTheFolderLoad) {
  TempFolder folder;
  folder.Write("data/w.bin", kThreeFloats);
  std::filesystem::create_symlink("data/w.bin", folder.path("w.bin"));
  std::filesystem::create_symlink("data", folder.path("linked"));
  for (const char* location : {"w.bin", "linked/w.bin", "data/../w.bin"}) {
    EXPECT_THAT(ReadFile(folder.Write("m.onnx", ExternalModel(location).SerializeAsString())),
                IsOk())
        << location;
  }
}

TEST(External, NothingIsOpenedForATensorWithoutElements) {
  onnx::ModelProto model = ParseModel("agraph (float[0] x) => (float y) { y = Add(x, w) }");
  SetExternal(AddInitializer<float>(model, "w", TensorProto::FLOAT, {0}, {}), "missing");
  EXPECT_THAT(Read(model), IsOk());
}

}  // namespace
}  // namespace anemone
