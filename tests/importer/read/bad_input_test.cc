// Input that is not a valid model gives one clear error, never a crash or a hang.
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "importer/importer.h"
#include "importer/read/skeleton.h"
#include "tests/importer/onnx_builder.h"

namespace anemone {
namespace {

using absl::StatusCode;
using onnx::TensorProto;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

onnx::ModelProto ReluModel() {
  return ParseModel("agraph (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }");
}

absl::StatusOr<Model> Import(const std::string& bytes) { return ImportBytes(bytes, "", {}); }

// ReluModel() with an initializer 'w' that `edit` damages.
std::string WithTensor(const std::function<void(TensorProto&)>& edit) {
  onnx::ModelProto model = ReluModel();
  edit(AddInitializer<float>(model, "w", TensorProto::FLOAT, {2}, {1, 2}));
  return model.SerializeAsString();
}

std::string With(const std::function<void(onnx::ModelProto&)>& edit,
                 onnx::ModelProto model = ReluModel()) {
  edit(model);
  return model.SerializeAsString();
}

std::string Text(absl::string_view text) { return ParseModel(text).SerializeAsString(); }

std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string Wrapped(int field, const std::string& message) {
  return Varint(static_cast<uint64_t>(field) << 3 | 2) + Varint(message.size()) + message;
}

// Nested Ifs, serialized here because protobuf refuses such a depth.
std::string NestedBodies(int depth) {
  std::string graph = Wrapped(2, "g");
  for (int i = 0; i < depth; ++i) {
    const std::string attribute =
        Wrapped(1, "then_branch") + Wrapped(6, graph) + Varint(20 << 3) + Varint(5);
    graph = Wrapped(1, Wrapped(4, "If") + Wrapped(5, attribute)) + Wrapped(2, "g");
  }
  return Varint(1 << 3) + Varint(8) + Wrapped(7, graph);
}

std::string NestedTypes(int depth) {
  std::string type;
  for (int i = 0; i < depth; ++i) type = Wrapped(4, Wrapped(1, type));
  return Varint(1 << 3) + Varint(8) + Wrapped(7, Wrapped(11, Wrapped(1, "x") + Wrapped(2, type)));
}

std::string Random(int seed, int size) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

struct BadModel {
  const char* name;
  std::function<std::string()> bytes;
  StatusCode code;
  const char* text;
};

const BadModel kBad[] = {
    // Not a model at all.
    {"random", [] { return Random(1, 4000); }, StatusCode::kDataLoss, "not an ONNX model"},
    {"text", [] { return "hello, I am a text\n"; }, StatusCode::kDataLoss, "not an ONNX model"},
    {"zip", [] { return std::string("PK\x03\x04 and more", 13); }, StatusCode::kDataLoss,
     "zip archive; unpack it"},
    {"git-lfs", [] { return "version https://git-lfs.github.com/spec/v1\noid"; },
     StatusCode::kDataLoss, "run `git lfs pull`"},
    {"web-page", [] { return "<!DOCTYPE html><html></html>"; }, StatusCode::kDataLoss, "web page"},
    {"ort-format", [] { return std::string("\x1c\0\0\0ORTM....", 12); }, StatusCode::kDataLoss,
     ".ort file"},
    {"nothing", [] { return ""; }, StatusCode::kInvalidArgument, "there is no graph in it"},
    {"long-varint", [] { return std::string(20, '\xff'); }, StatusCode::kDataLoss,
     "more than 10 bytes"},
    {"length-overflow", [] { return "\x3a" + Varint(~uint64_t{0}) + "abc"; }, StatusCode::kDataLoss,
     "field 7 is 18446744073709551615 bytes long, but the file ends at byte 14"},
    {"group", [] { return "\x3b"; }, StatusCode::kDataLoss, "field 7 has wire type 3"},
    {"field-0", [] { return std::string("\x00\x01", 2); }, StatusCode::kDataLoss,
     "field number 0 does not exist"},
    {"bad-inner-length", [] { return Wrapped(7, Wrapped(1, "") + "\x0a\x7f"); },
     StatusCode::kDataLoss, "in a GraphProto: field 1 is 127 bytes long"},
    {"nested-bodies", [] { return NestedBodies(4000); }, StatusCode::kResourceExhausted,
     "nested too deep"},
    {"nested-types", [] { return NestedTypes(4000); }, StatusCode::kResourceExhausted,
     "nested too deep"},

    // Versions.
    {"no-graph", [] { return With([](auto& m) { m.clear_graph(); }); },
     StatusCode::kInvalidArgument, "there is no graph in it"},
    {"no-ir", [] { return With([](auto& m) { m.clear_ir_version(); }); },
     StatusCode::kInvalidArgument, "no IR version"},
    {"ir-999", [] { return With([](auto& m) { m.set_ir_version(999); }); },
     StatusCode::kInvalidArgument, "IR version 999 is not known, the newest known is 1"},
    {"no-opset", [] { return With([](auto& m) { m.clear_opset_import(); }); },
     StatusCode::kInvalidArgument, "no opset_import"},
    {"opset-999", [] { return With([](auto& m) { m.mutable_opset_import(0)->set_version(999); }); },
     StatusCode::kInvalidArgument,
     "opset 999 of domain 'ai.onnx': is not known, the newest known is 2"},
    {"opset-0", [] { return With([](auto& m) { m.mutable_opset_import(0)->set_version(0); }); },
     StatusCode::kInvalidArgument, "opset 0 of domain 'ai.onnx': is not a valid version"},
    {"opset-negative",
     [] { return With([](auto& m) { m.mutable_opset_import(0)->set_version(-3); }); },
     StatusCode::kInvalidArgument, "opset -3"},

    // Names and edges.
    {"undefined-input", [] { return Text("g (float x) => (float y) { y = Conv(x, w) }"); },
     StatusCode::kNotFound, "node /#0 (Conv): input 1 'w' is undefined"},
    {"name-of-two-lines",
     [] { return With([](auto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "a\nb"); }); },
     StatusCode::kNotFound, "input 0 'a\\x0ab' is undefined"},
    {"long-name",
     [] {
       return With([](auto& m) {
         m.mutable_graph()->mutable_node(0)->set_input(0, std::string(100000, 'n'));
       });
     },
     StatusCode::kNotFound, "nnn..."},
    {"undefined-in-body",
     [] {
       return Text(R"(g (bool c) => (float y) {
         y = If (c) <then_branch = g () => (float r) { r = Neg(q) },
                     else_branch = g () => (float r) { r = Neg(q) }> })");
     },
     StatusCode::kNotFound, "node /then_branch:If_0/#0 (Neg): input 0 'q'"},
    {"undefined-output", [] { return Text("g (float x) => (float z) { y = Relu(x) }"); },
     StatusCode::kNotFound, "graph 'g': output 'z' is undefined"},
    {"duplicate-output",
     [] { return Text("g (float x) => (float y) { [a] y = Relu(x)  [b] y = Neg(x) }"); },
     StatusCode::kInvalidArgument,
     "value 'y' is made by node 'b' (Neg, /#1) and also by node 'a' (Relu, /#0)"},
    {"output-is-an-input", [] { return Text("g (float x) => (float x) { x = Relu(x) }"); },
     StatusCode::kInvalidArgument, "also by an input, an initializer"},
    {"same-output-twice", [] { return Text("g (float x) => (float y, float y) { y = Relu(x) }"); },
     StatusCode::kInvalidArgument, "output 'y' is listed twice"},
    {"same-input-twice", [] { return Text("g (float x, float x) => (float y) { y = Relu(x) }"); },
     StatusCode::kInvalidArgument, "input 'x' is listed twice"},
    {"same-initializer-twice",
     [] {
       return With([](auto& m) {
         for (int i : {0, 1}) AddInitializer<float>(m, "w", TensorProto::FLOAT, {i}, {});
         m.mutable_graph()->mutable_initializer(1)->set_raw_data("abcd");
       });
     },
     StatusCode::kInvalidArgument, "initializer 'w' is defined twice"},
    {"input-without-name", [] { return With([](auto& m) { m.mutable_graph()->add_input(); }); },
     StatusCode::kInvalidArgument, "graph 'agraph': input 1 has no name"},
    {"initializer-without-name", [] { return WithTensor([](TensorProto& t) { t.clear_name(); }); },
     StatusCode::kInvalidArgument, "initializer 0 has no name"},
    {"node-without-operator",
     [] { return With([](auto& m) { m.mutable_graph()->mutable_node(0)->clear_op_type(); }); },
     StatusCode::kInvalidArgument, "has no op_type"},
    {"cycle", [] { return Text("g (float x) => (float y) { [b] y = Add(x, z) [a] z = Neg(y) }"); },
     StatusCode::kInvalidArgument, "graph 'g' has a cycle: b -> a -> b"},
    {"cycle-of-one", [] { return Text("g (float x) => (float y) { y = Add(x, y) }"); },
     StatusCode::kInvalidArgument, "cycle: /#0 -> /#0"},
    {"cycle-through-a-body",
     [] {
       return Text(R"(g (bool c) => (float y) {
         [if] y = If (c) <then_branch = g () => (float r) { r = Neg(q) },
                          else_branch = g () => (float r) { r = Abs(q) }>
         [neg] q = Neg(y) })");
     },
     StatusCode::kInvalidArgument, "cycle: if -> neg -> if"},

    // Schemas.
    {"unknown-operator", [] { return Text("g (float x) => (float y) { [n] y = Frobnicate(x) }"); },
     StatusCode::kInvalidArgument, "node 'n' (Frobnicate, /#0): ONNX has no such operator"},
    {"operator-too-new",
     [] {
       return Text(R"(<ir_version: 8, opset_import: ["" : 12]>
                      g (float x) => (float y) { y = HardSwish(x) })");
     },
     StatusCode::kInvalidArgument, "(HardSwish): is not in opset 12"},
    {"operator-removed",
     [] { return Text("g (float x, float s) => (float y) { y = Upsample(x, s) }"); },
     StatusCode::kInvalidArgument, "(Upsample): was removed in opset 10"},
    {"too-few-inputs", [] { return Text("g (float x) => (float y) { y = Add(x) }"); },
     StatusCode::kInvalidArgument, "node /#0 (Add): want 2 inputs, got 1"},
    {"too-many-inputs", [] { return Text("g (float x) => (float y) { y = Clip(x, x, x, x) }"); },
     StatusCode::kInvalidArgument, "want 1 to 3 inputs, got 4"},
    {"input-left-out", [] { return Text("g (float x) => (float y) { y = Add(, x) }"); },
     StatusCode::kInvalidArgument, "inputs: 'A', number 0, is missing"},
    {"one-of-many-left-out", [] { return Text("g (float x) => (float y) { y = Max(x, , x) }"); },
     StatusCode::kInvalidArgument, "inputs: 'data_0', number 1, is missing"},
    {"too-many-outputs", [] { return Text("g (float x) => (float y) { y, z = Relu(x) }"); },
     StatusCode::kInvalidArgument, "want 1 outputs, got 2"},
    {"attribute-missing", [] { return Text("g (float x) => (float y) { y = Cast(x) }"); },
     StatusCode::kInvalidArgument, "node /#0 (Cast): attribute 'to' is missing"},
    {"attribute-of-wrong-type",
     [] { return Text("g (float x) => (float y) { y = Elu <alpha = 2> (x) }"); },
     StatusCode::kInvalidArgument, "attribute 'alpha': want FLOAT, got INT"},
    {"attribute-unknown",
     [] { return Text("g (float x) => (float y) { y = Relu <slope = 2.0> (x) }"); },
     StatusCode::kInvalidArgument, "attribute 'slope' is not one of opset 21"},
    {"attribute-twice",
     [] { return Text("g (float x) => (float y) { y = Elu <alpha = 2.0, alpha = 3.0> (x) }"); },
     StatusCode::kInvalidArgument, "attribute 'alpha' is set twice"},
    {"attribute-without-type",
     [] {
       return With(
           [](auto& m) { m.mutable_graph()->mutable_node(0)->add_attribute()->set_name("a"); });
     },
     StatusCode::kInvalidArgument, "node /#0 (Relu): attribute 'a': has no type"},
    {"reference-outside-of-function",
     [] { return Text("g (float x) => (float y) { y = Elu <alpha : float = @a> (x) }"); },
     StatusCode::kInvalidArgument, "refers to attribute 'a' of a function, but is not inside one"},
    {"constant-of-nothing", [] { return Text("g () => (float y) { y = Constant() }"); },
     StatusCode::kInvalidArgument, "(Constant): want one attribute with the value, got 0"},

    // Tensors.
    {"element-type", [] { return WithTensor([](TensorProto& t) { t.set_data_type(99); }); },
     StatusCode::kInvalidArgument, "initializer 'w': element type 99 is not known"},
    {"element-type-of-input",
     [] {
       return With([](auto& m) {
         m.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
             -1);
       });
     },
     StatusCode::kInvalidArgument, "value 'x': element type -1"},
    {"negative-dim", [] { return WithTensor([](TensorProto& t) { t.set_dims(0, -2); }); },
     StatusCode::kInvalidArgument, "initializer 'w': dimension -2 of shape -2 is negative"},
    {"size-overflow",
     [] {
       return WithTensor([](TensorProto& t) {
         t.set_dims(0, int64_t{1} << 40);
         t.add_dims(int64_t{1} << 40);
       });
     },
     StatusCode::kInvalidArgument, "initializer 'w': shape 1099511627776x1099511627776 overflows"},
    {"size-beyond-data",
     [] { return WithTensor([](TensorProto& t) { t.set_dims(0, int64_t{1} << 50); }); },
     StatusCode::kInvalidArgument, "takes 4503599627370496 bytes of raw_data, found 8"},
    {"size-below-data", [] { return WithTensor([](TensorProto& t) { t.set_dims(0, 1); }); },
     StatusCode::kInvalidArgument, "float32 1 takes 4 bytes of raw_data, found 8"},
    {"mapped-size",
     [] { return WithTensor([](TensorProto& t) { t.set_raw_data(std::string(5000, 'x')); }); },
     StatusCode::kInvalidArgument, "takes 8 bytes of raw_data, found 5000"},
    {"mapped-floats-of-integers",
     [] {
       return WithTensor([](TensorProto& t) {
         t.clear_raw_data();
         t.set_data_type(TensorProto::INT32);
         t.set_dims(0, 500);
         for (int i = 0; i < 500; ++i) t.add_float_data(1);
       });
     },
     StatusCode::kInvalidArgument, "int32 500 takes 0 bytes of float_data, found 2000"},
    {"no-data", [] { return WithTensor([](TensorProto& t) { t.clear_raw_data(); }); },
     StatusCode::kInvalidArgument, "takes 2 entries of float_data, found 0"},
    {"raw-strings",
     [] { return WithTensor([](TensorProto& t) { t.set_data_type(TensorProto::STRING); }); },
     StatusCode::kInvalidArgument, "strings cannot be raw_data"},
    {"segment",
     [] { return WithTensor([](TensorProto& t) { t.mutable_segment()->set_begin(0); }); },
     StatusCode::kInvalidArgument, "a tensor is a segment of another"},
    {"external-without-folder",
     [] { return WithTensor([](TensorProto& t) { SetExternal(t, "w.bin"); }); },
     StatusCode::kInvalidArgument,
     "initializer 'w': external data file 'w.bin': a model in memory"},
    {"external-strings",
     [] {
       return WithTensor([](TensorProto& t) {
         SetExternal(t, "w.bin");
         t.set_data_type(TensorProto::STRING);
       });
     },
     StatusCode::kInvalidArgument, "strings cannot be external data"},
    {"input-of-another-type",
     [] { return Text(R"(g (float x, int64 w) => (float y) <float w = {1}> { y = Relu(x) })"); },
     StatusCode::kInvalidArgument, "initializer 'w' is float32, but the input of that name is"},
    {"sparse-attributes",
     [] {
       return With([](auto& m) {
         auto* attribute = m.mutable_graph()->mutable_node(0)->add_attribute();
         attribute->set_name("s");
         attribute->set_type(onnx::AttributeProto::SPARSE_TENSORS);
       });
     },
     StatusCode::kUnimplemented, "attribute 's': sparse tensors are not supported"},

    // Functions; more in inlining_test.cc.
    {"recursion",
     [] {
       return Text(R"(<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
           g (float x) => (float y) { y = my.F(x) }
           <domain: "my", opset_import: ["my" : 1]> F (a) => (b) { b = my.F(a) })");
     },
     StatusCode::kInvalidArgument, "function 'F' calls itself: F -> F"},
    {"function-of-opset-999",
     [] {
       return Text(R"(<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
           g (float x) => (float y) { y = my.F(x) }
           <domain: "my", opset_import: ["" : 999]> F (a) => (b) { b = Neg(a) })");
     },
     StatusCode::kInvalidArgument, "opset 999 of domain 'ai.onnx'"},
    {"function-output-undefined",
     [] {
       return Text(R"(<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
           g (float x) => (float y) { y = my.F(x) }
           <domain: "my", opset_import: ["" : 21]> F (a) => (b) { c = Neg(a) })");
     },
     StatusCode::kNotFound, "node /#0 (my.F): output 'b' of function 'F' is undefined"},
    {"function-arity",
     [] {
       return Text(R"(<ir_version: 10, opset_import: ["" : 21, "my" : 1]>
           g (float x) => (float y) { y = my.F(x, x) }
           <domain: "my", opset_import: ["" : 21]> F (a) => (b) { b = Neg(a) })");
     },
     StatusCode::kInvalidArgument, "has 1 inputs and 1 outputs, but is called with 2 and 1"},
};

class BadInput : public testing::TestWithParam<BadModel> {};

TEST_P(BadInput, IsRefused) {
  ASSERT_STRNE(GetParam().text, "");
  const auto model = Import(GetParam().bytes());
  EXPECT_THAT(model, StatusIs(GetParam().code,
                              AllOf(StartsWith("model in memory: "), HasSubstr(GetParam().text))));
  // One line for the command line, with a remedy.
  EXPECT_THAT(std::string(model.status().message()), AllOf(HasSubstr("; "), Not(HasSubstr("\n"))));
}

INSTANTIATE_TEST_SUITE_P(All, BadInput, testing::ValuesIn(kBad), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
});

TEST(BadFile, IsNamed) {
  TempFolder folder;
  EXPECT_THAT(ImportFile(folder.path("none.onnx"), {}),
              StatusIs(StatusCode::kNotFound, AllOf(HasSubstr("none.onnx: no such file"))));
  EXPECT_THAT(ImportFile(folder.path(), {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is a folder, not a file")));
  EXPECT_THAT(ImportFile(folder.Write("empty.onnx", ""), {}),
              StatusIs(StatusCode::kDataLoss, HasSubstr("empty.onnx: is empty")));
  EXPECT_THAT(ImportFile("/dev/null", {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a device or a pipe")));
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(ImportFile(folder.path("pipe"), {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("a device or a pipe")));
  EXPECT_THAT(ImportFile(folder.Write("text.onnx", "hello"), {}),
              StatusIs(StatusCode::kDataLoss, HasSubstr("text.onnx: ")));
  if (geteuid() != 0) {  // root may read everything
    const std::string path = folder.Write("secret.onnx", ReluModel().SerializeAsString());
    chmod(path.c_str(), 0);
    EXPECT_THAT(ImportFile(path, {}),
                StatusIs(StatusCode::kPermissionDenied, HasSubstr("cannot be opened")));
  }
}

struct BadExternal {
  const char* name;
  const char *location, *offset, *length;
  StatusCode code;
  const char* text;
};

// Files next to the model: w.bin of 12 bytes, folder/, empty.bin, and the links out -> a file in
// the folder elsewhere, around -> the folder elsewhere, loop -> itself; hard is a second name of a
// file in the folder elsewhere.
const BadExternal kBadExternal[] = {
    {"missing", "none.bin", "", "", StatusCode::kNotFound, "none.bin' does not exist"},
    {"no-location", "", "", "", StatusCode::kInvalidArgument, "names no file"},
    {"folder", "folder", "", "", StatusCode::kInvalidArgument, "is a folder"},
    {"itself", ".", "", "", StatusCode::kInvalidArgument, "is a folder"},
    {"empty", "empty.bin", "", "", StatusCode::kDataLoss, "is empty"},
    {"short", "w.bin", "5", "", StatusCode::kDataLoss,
     "'w.bin' is too short: want 8 bytes from byte 5, the file ends at byte 12"},
    {"offset-beyond", "w.bin", "1000", "", StatusCode::kDataLoss, "is too short"},
    {"offset-overflow", "w.bin", "9223372036854775807", "", StatusCode::kDataLoss, "is too short"},
    {"offset-too-large", "w.bin", "9223372036854775808", "", StatusCode::kInvalidArgument,
     "offset '9223372036854775808' is not a 64-bit number"},
    {"offset-negative", "w.bin", "-4", "", StatusCode::kInvalidArgument, "offset -4 is negative"},
    {"offset-no-number", "w.bin", "0x10", "", StatusCode::kInvalidArgument,
     "offset '0x10' is not a 64-bit number"},
    {"length-other", "w.bin", "", "12", StatusCode::kInvalidArgument,
     "its length is 12 bytes, but the tensor's type and dims need 8"},
    {"length-negative", "w.bin", "", "-8", StatusCode::kInvalidArgument, "length -8 is negative"},
    {"absolute", "/etc/passwd", "", "", StatusCode::kInvalidArgument, "is an absolute path"},
    {"dots", "../elsewhere/secret", "", "", StatusCode::kInvalidArgument,
     "leaves the folder with '..'"},
    {"hidden-dots", "folder/../../elsewhere/secret", "", "", StatusCode::kInvalidArgument,
     "leaves the folder with '..'"},
    {"link", "out", "", "", StatusCode::kInvalidArgument, "is a link to"},
    {"link-to-folder", "around/secret", "", "", StatusCode::kInvalidArgument, "is a link to"},
    {"hard-link", "hard", "", "", StatusCode::kInvalidArgument, "'hard' has 2 names (hard links)"},
    {"marker-of-onnx-runtime", "*/_ORT_MEM_ADDR_/*", "4096", "8", StatusCode::kNotFound,
     "does not exist"},
    {"link-loop", "loop", "", "", StatusCode::kInvalidArgument, "loop': "},
    {"through-a-file", "w.bin/x", "", "", StatusCode::kInvalidArgument,
     "w.bin/x': Not a directory"},
};

class BadExternalData : public testing::TestWithParam<BadExternal> {};

TEST_P(BadExternalData, IsRefused) {
  TempFolder folder;
  folder.Write("elsewhere/secret", "0123456789ab");
  folder.Write("model/w.bin", "0123456789ab");
  folder.Write("model/empty.bin", "");
  std::filesystem::create_directory(folder.path("model/folder"));
  std::filesystem::create_symlink("../elsewhere/secret", folder.path("model/out"));
  std::filesystem::create_symlink("../elsewhere", folder.path("model/around"));
  std::filesystem::create_symlink("loop", folder.path("model/loop"));
  folder.Write("elsewhere/other", "0123456789ab");
  std::filesystem::create_hard_link(folder.path("elsewhere/other"), folder.path("model/hard"));
  const BadExternal& bad = GetParam();
  const std::string model =
      WithTensor([&](TensorProto& t) { SetExternal(t, bad.location, bad.offset, bad.length); });
  EXPECT_THAT(ImportFile(folder.Write("model/m.onnx", model), {}),
              StatusIs(bad.code, AllOf(HasSubstr("m.onnx: initializer 'w': external data"),
                                       HasSubstr(bad.text), HasSubstr("; "))));
}

INSTANTIATE_TEST_SUITE_P(All, BadExternalData, testing::ValuesIn(kBadExternal),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST(MayHaveExternalData, IsSeenInInitializersAndAttributes) {
  EXPECT_FALSE(MayHaveExternalData(ReluModel().SerializeAsString()));
  EXPECT_FALSE(MayHaveExternalData(WithTensor([](TensorProto&) {})));
  EXPECT_TRUE(MayHaveExternalData(WithTensor([](TensorProto& t) { SetExternal(t, "w.bin"); })));
  EXPECT_TRUE(MayHaveExternalData(With([](auto& m) {
    auto* attribute = m.mutable_graph()->mutable_node(0)->add_attribute();
    SetExternal(*attribute->mutable_g()->add_node()->add_attribute()->mutable_t(), "w.bin");
  })));
  EXPECT_TRUE(MayHaveExternalData("hello"));
}

// The data of a model that is a link may be a link to a file next to the link's target, but not to
// a file in another folder.
TEST(BadExternalData, LinkedModelDoesNotOpenOtherFolders) {
  TempFolder folder;
  folder.Write("blobs/model", WithTensor([](TensorProto& t) { SetExternal(t, "data"); }));
  folder.Write("other/secret", "01234567");
  std::filesystem::create_directory(folder.path("snapshot"));
  std::filesystem::create_symlink("../blobs/model", folder.path("snapshot/m.onnx"));
  std::filesystem::create_symlink("../other/secret", folder.path("snapshot/data"));
  EXPECT_THAT(ImportFile(folder.path("snapshot/m.onnx"), {}),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is a link to")));
}

}  // namespace
}  // namespace anemone
