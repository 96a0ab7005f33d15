// Packages: what is written is read; what is damaged, stale or foreign is refused by name.
#include "provider/package.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "anemone/compressed.h"
#include "engine/device.h"
#include "engine/network_json.h"
#include "engine/table_hash.h"
#include "provider/cbor.h"
#include "provider/package_format.h"
#include "tests/provider/packages.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string& SmallBytes() {
  static const std::string& bytes = *new std::string(*WritePackage(SmallPackage()));
  return bytes;
}

TEST(Package, EveryFormOfWeightsIsKept) {
  for (const auto& [name, kernel] : KernelForms()) {
    const absl::Status same =
        CheckPackageRoundTrip(ConvBy(kernel), **FindTarget("h16"), Route::kNetplist);
    EXPECT_TRUE(same.ok()) << name << ": " << same;
  }
}

TEST(Package, SaysWhatTheSegmentsAre) {
  const Package package = SmallPackage();
  const auto read = ReadPackage(SmallBytes(), nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->target, package.target);
  EXPECT_EQ(read->route, package.route);
  EXPECT_EQ(read->producer, "tests");
  ASSERT_EQ(read->segments.size(), package.segments.size());
  for (size_t i = 0; i < package.segments.size(); ++i) {
    const PackagedSegment &got = read->segments[i], &want = package.segments[i];
    EXPECT_EQ(got.name, want.name);
    const absl::Status same = CompareNetworks(got.network, want.network);
    EXPECT_TRUE(same.ok()) << same;
    ASSERT_EQ(got.inputs.size(), want.inputs.size());
    EXPECT_EQ(got.inputs[0].name, want.inputs[0].name);
    EXPECT_EQ(got.inputs[0].type, want.inputs[0].type);
    EXPECT_EQ(got.outputs.back().dims, want.outputs.back().dims);
  }
  EXPECT_EQ(*WritePackage(*read), SmallBytes());
}

TEST(Package, MayHaveNoSegmentsAndAnyNames) {
  EXPECT_TRUE(ReadPackage(*WritePackage(PackageOf({})), nullptr)->segments.empty());
  Network network = ConvBy(KernelForms()[0].second);
  network.inputs[0].name = std::string("no UTF-8: \xff\xfe\0.", 15);
  network.units[0].name = "\xc0";
  const absl::Status same = CheckPackageRoundTrip(network, **FindTarget("h16"), Route::kNetplist);
  EXPECT_TRUE(same.ok()) << same;
}

TEST(Package, StoresSharedWeightsOnce) {
  const Network network = ConvBy(KernelForms()[0].second);
  const size_t one = WritePackage(PackageOf({network}))->size();
  const size_t three = WritePackage(PackageOf({network, network, network}))->size();
  EXPECT_LT(three - one, 4096) << "the kernel takes 8192 bytes";
}

TEST(Package, IsReadFromAnyAddress) {
  const std::string shifted = "." + SmallBytes();
  const auto read = ReadPackage(absl::string_view(shifted).substr(1), nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*WritePackage(*read), SmallBytes());
}

TEST(Package, IsMappedFromItsFile) {
  TemporaryFolder folder(testing::TempDir());
  const std::string path = folder.path() + "/net.anemone";
  ASSERT_TRUE(SavePackage(SmallPackage(), path).ok());
  auto read = OpenPackage(path);
  ASSERT_TRUE(read.ok()) << read.status();
  std::filesystem::remove(path);
  EXPECT_EQ(*WritePackage(*read), SmallBytes());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THAT(OpenPackage(path), StatusIs(absl::StatusCode::kNotFound, HasSubstr(path)));
  std::ofstream(path) << "some other file";
  EXPECT_THAT(OpenPackage(path), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  EXPECT_THAT(SavePackage(SmallPackage(), folder.path() + "/none/net.anemone"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/net.anemone")));
}

TEST(Package, RefusesToWriteWhatCannotBeRead) {
  Package package = PackageOf({ConvBy(KernelForms()[0].second)});
  package.segments[0].outputs[0].dims = {1, 2, 3};
  EXPECT_THAT(WritePackage(package),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("segment 1"), HasSubstr("port 'y' is 1x2x3"))));
  package = PackageOf({ConvBy(KernelForms()[0].second)});
  package.segments[0].inputs[0].type = DataType::kInt64;
  EXPECT_THAT(WritePackage(package), StatusIs(absl::StatusCode::kInvalidArgument,
                                              HasSubstr("no port of the engine is int64")));
  package = PackageOf({});
  package.extensions = {{"weights", Tensor::Zeros(DataType::kUInt8, {3})}};
  EXPECT_THAT(WritePackage(package),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("section 'weights'")));
}

// Fields and sections of later minor formats.
TEST(Package, OfALaterMinorIsReadAndItsSectionsKept) {
  PackageParts parts = PackageParts::Of(SmallBytes());
  parts.minor = 9;
  parts.has_unknown_field = true;
  parts.sections.insert(parts.sections.begin() + 1, {"later", "what we do not know"});
  const std::string bytes = parts.Sealed();
  const auto read = ReadPackage(bytes, nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->extensions.size(), 1);
  const std::string again = *WritePackage(*read);
  EXPECT_EQ(PackageParts::Of(again).section("later").bytes, "what we do not know");
  EXPECT_EQ(PackageParts::Of(again).minor, format::kMinor);
  EXPECT_TRUE(ReadPackage(again, nullptr).ok());
}

struct Bad {
  const char* name;
  std::string (*make)();
  absl::StatusCode code;
  std::vector<std::string> words;
};

template <class F>
std::string With(F change) {
  PackageParts parts = PackageParts::Of(SmallBytes());
  change(parts);
  return parts.Sealed();
}

// The JSON of the first network of a package changed.
template <class F>
std::string WithNetwork(F change, const std::string& bytes = SmallBytes()) {
  PackageParts parts = PackageParts::Of(bytes);
  flatbuffers::FlatBufferBuilder fbb;
  const auto* segment = flatbuffers::GetRoot<format::Segments>(
                            parts.section(format::kSegmentsSection).bytes.data())
                            ->segments()
                            ->Get(0);
  const auto* units = segment->network();
  Json json = *ReadCbor({reinterpret_cast<const char*>(units->data()), units->size()});
  const std::string changed = change(json);
  const auto ports = [&](const auto* from) {
    std::vector<flatbuffers::Offset<format::Port>> to;
    for (const format::Port* port : *from) {
      to.push_back(format::CreatePort(fbb, fbb.CreateString(port->name()), port->type(),
                                      fbb.CreateVector(std::vector<int64_t>(
                                          port->dims()->begin(), port->dims()->end()))));
    }
    return fbb.CreateVector(to);
  };
  std::vector<flatbuffers::Offset<format::Tensor>> tensors;
  for (const format::Tensor* t : *segment->tensors()) {
    tensors.push_back(format::CreateTensor(
        fbb, t->type(),
        fbb.CreateVector(std::vector<int64_t>(t->dims()->begin(), t->dims()->end())), t->form(),
        t->data(), t->code_type(), t->values(), t->zero_points(), t->grid()));
  }
  const auto made = format::CreateSegment(
      fbb, fbb.CreateString("segment 1"),
      fbb.CreateVector(reinterpret_cast<const uint8_t*>(changed.data()), changed.size()),
      fbb.CreateVector(tensors), ports(segment->inputs()), ports(segment->outputs()));
  fbb.Finish(format::CreateSegments(fbb, fbb.CreateVector(&made, 1)), format::kSegmentsIdentifier);
  parts.section(format::kSegmentsSection)
      .bytes.assign(reinterpret_cast<const char*>(fbb.GetBufferPointer()), fbb.GetSize());
  return parts.Sealed();
}

constexpr auto kForeign = absl::StatusCode::kInvalidArgument;
constexpr auto kDamaged = absl::StatusCode::kDataLoss;
constexpr auto kStale = absl::StatusCode::kFailedPrecondition;

const Bad kBad[] = {
    {"empty", [] { return std::string(); }, kForeign, {"no package"}},
    {"foreign", [] { return std::string(500, 'x'); }, kForeign, {"no package"}},
    {"cut in the header", [] { return SmallBytes().substr(0, 40); }, kDamaged, {"byte 40"}},
    {"cut at the end",
     [] { return SmallBytes().substr(0, SmallBytes().size() - 65); },
     kDamaged,
     {"section 'weights' is cut off"}},
    {"a bit of the header",
     [] {
       std::string bytes = SmallBytes();
       bytes[60] ^= 4;
       return bytes;
     },
     kDamaged,
     {"header", "compile the model again"}},
    {"a bit of the weights",
     [] {
       std::string bytes = SmallBytes();
       bytes[bytes.size() - 200] ^= 1;
       return bytes;
     },
     kDamaged,
     {"section 'weights' is not what was written"}},
    {"later major",
     [] { return With([](PackageParts& p) { p.major = 2; }); },
     absl::StatusCode::kUnimplemented,
     {"format 2.0", "written by tests", "reads 1.x"}},
    {"other tables",
     [] { return With([](PackageParts& p) { p.tables = "0123abc"; }); },
     kStale,
     {"0123abc", std::string(TableHash()), "compile the model again"}},
    {"another target", [] { return With([](PackageParts& p) { p.target = "h99"; }); }, kDamaged,
     {"no such target"}},
    {"refused by its target",
     [] { return With([](PackageParts& p) { p.target = "h11"; }); },
     kStale,
     {"h11 refuses it", "compile the model again"}},
    {"no weights", [] { return With([](PackageParts& p) { p.sections.resize(1); }); }, kDamaged,
     {"section is missing"}},
    {"weights twice",
     [] { return With([](PackageParts& p) { p.sections.push_back(p.sections[1]); }); },
     kDamaged,
     {"'weights' is there twice"}},
    {"fewer weights",
     [] { return With([](PackageParts& p) { p.sections[1].bytes.resize(64); }); },
     kDamaged,
     {"segment 1", "of weights of 64"}},
    {"no segments",
     [] { return With([](PackageParts& p) { p.sections[0].bytes = "x"; }); },
     kDamaged,
     {"no FlatBuffer"}},
    {"no CBOR",
     [] { return WithNetwork([](Json) { return std::string("\xbf"); }); },
     kDamaged,
     {"no CBOR"}},
    {"deep CBOR",
     [] { return WithNetwork([](Json) { return std::string(1 << 20, '\x81'); }); },
     kDamaged,
     {"no CBOR"}},
    {"an array of 2^60",
     [] { return WithNetwork([](Json) { return std::string("\x9b\x10\0\0\0\0\0\0\0", 9); }); },
     kDamaged,
     {"no CBOR"}},
    {"many keys",
     [] {
       return WithNetwork([](Json json) {
         for (int i = 0; i < 1000; ++i) json[absl::StrCat("key ", i)] = i;
         return WriteCbor(json);
       });
     },
     kDamaged,
     {"no CBOR"}},
    {"an operand out of range",
     [] {
       return WithNetwork([](Json json) {
         json["units"][0]["bottoms"][0] = "unit 7";
         return WriteCbor(json);
       });
     },
     kDamaged,
     {"segment 1", "an operand that is there"}},
    {"huge dims",
     [] {
       return WithNetwork([](Json json) {
         json["inputs"][0]["dims"] = {1, 1, int64_t{1} << 40, int64_t{1} << 40, 1};
         return WriteCbor(json);
       });
     },
     kDamaged,
     {"segment 1"}},
    {"a tensor less",
     [] {
       return WithNetwork([](Json json) {
         json["units"][0]["weights"].erase(1);  // the bias
         return WriteCbor(json);
       });
     },
     kDamaged,
     {"segment 1", "value"}},
    {"a weight of another shape",
     [] {
       return WithNetwork([](Json json) {
         for (Json& unit : json["units"]) {
           for (Json& weight : unit["weights"]) weight["dims"] = {1, 1};
         }
         return WriteCbor(json);
       });
     },
     kDamaged,
     {"a value of float32 1x1"}},
    {"an unknown key",
     [] {
       return WithNetwork([](Json json) {
         json["units"][0]["params"]["Colour"] = "red";
         return WriteCbor(json);
       });
     },
     kDamaged,
     {"Colour"}},
    {"an unknown kind",
     [] {
       return WithNetwork([](Json json) {
         json["units"][0]["type"] = "Oracle";
         return WriteCbor(json);
       });
     },
     kDamaged,
     {"Oracle"}},
    {"another port",
     [] {
       return WithNetwork([](Json json) {
         json["inputs"].push_back(json["inputs"][0]);
         return WriteCbor(json);
       });
     },
     kDamaged,
     {"inputs"}},
};

TEST(Package, IsRefusedByName) {
  for (const Bad& bad : kBad) {
    SCOPED_TRACE(bad.name);
    const absl::Status status = ReadPackage(bad.make(), nullptr).status();
    EXPECT_EQ(status.code(), bad.code) << status;
    for (const std::string& words : bad.words) EXPECT_THAT(status.message(), HasSubstr(words));
  }
}

// Compiles and runs what a changed package still says; the outcome is nobody's, but no crash.
void TryAll(const Package& package) {
  for (const PackagedSegment& segment : package.segments) {
    int64_t elements = 0;
    for (const Tensor* t : TensorsOf(segment.network)) elements += t->is_fill() ? t->elements() : 0;
    for (const Unit& unit : segment.network.units) elements += unit.dims.elements();
    if (elements > 1 << 20) continue;  // nothing wrong with it, but slow
    (void)OutputsOf(segment.network, *package.target, package.route, 1);
  }
}

// Bits, bytes and ends changed at random; sizes and checksums are put right again, so that what is
// behind them is reached.
TEST(Package, SurvivesChanges) {
  std::map<absl::StatusCode, int> codes;
  for (int seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    PackageParts parts = PackageParts::Of(SmallBytes());
    std::string& segments = parts.sections[0].bytes;
    if (seed % 4 == 3) {
      std::string& cut = parts.sections[seed / 4 % 2].bytes;
      cut.resize(random() % cut.size());
    }
    for (unsigned i = 0; i < 1 + random() % 3 && !segments.empty(); ++i) {
      char& byte = segments[random() % segments.size()];
      byte = static_cast<char>(seed % 2 == 0 ? byte ^ 1 << random() % 8 : random());
    }
    const auto read = ReadPackage(parts.Sealed(), nullptr);
    ++codes[read.status().code()];
    if (read.ok()) TryAll(*read);
  }
  for (const auto& [code, count] : codes) {
    std::printf("%4d x %s\n", count, absl::StatusCodeToString(code).c_str());
    EXPECT_TRUE(code == absl::StatusCode::kOk || code == kDamaged || code == kStale ||
                code == absl::StatusCode::kResourceExhausted);
  }
  EXPECT_GT(codes[absl::StatusCode::kOk], 20);
  EXPECT_GT(codes[kDamaged], 200);
  // As they are, checksums find every change.
  for (int seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    std::string bytes = SmallBytes();
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    if (seed % 2 == 0) bytes.resize(random() % bytes.size());
    const auto read = ReadPackage(bytes, nullptr);
    if (!read.ok()) continue;
    EXPECT_EQ(*WritePackage(*read), SmallBytes()) << "changed unseen: " << seed;
  }
}

// Networks of many kinds.
const char* const kModels[] = {
    "(float[1,8,9,7] x) => (float[1,8,9,7] y) <float[8,8,3,3] w, float[8] b> {"
    "  a = Conv<pads = [1,1,1,1]>(x, w, b) y = Relu(a) }",
    "(float[4,24] x) => (float[4,16] y) <float[24,16] m, float[16] s, float[16] t> {"
    "  a = MatMul(x, m) b = LayerNormalization(a, s, t) y = Gelu(b) }",
    "(float[1,4,6,6] x) => (float[1,2,3,3] y) <float[4,2,2,2] w> {"
    "  a = MaxPool<kernel_shape = [2,2], strides = [2,2]>(x) b = ConvTranspose<strides = [2,2]>(a, w)"
    "  y = AveragePool<kernel_shape = [2,2], strides = [2,2]>(b) }",
    "(float[1,4,8,16] q, float[1,4,8,16] k, float[1,4,8,16] v) => (float[1,4,8,16] y) {"
    "  t = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, t) p = Softmax<axis = -1>(s)"
    "  y = MatMul(p, v) }",
    "(float[1,4,8,8] x) => (float[1,4,2,32] y) {"
    "  a = InstanceNormalization(x, s, b) s = Constant<value = float[4] {1, 2, 3, 4}>()"
    "  b = Constant<value = float[4] {1, 2, 3, 4}>() r = Constant<value = int64[4] {1, 4, 2, 32}>()"
    "  y = Reshape(a, r) }",
    "(float[1,4,8,8] x) => (float[1,4,16,16] y, float[1,4,1,1] z) {"
    "  s = Constant<value = float[4] {1, 1, 2, 2}>() n = Constant<value = float[0] {}>()"
    "  y = Resize<mode = \"nearest\">(x, n, s) z = GlobalAveragePool(x) }",
    "(float[1,4,8,8] x) => (float[1,4,12,4] y) {"
    "  p = Constant<value = int64[8] {0, 0, 2, 0, 0, 0, 2, 0}>() a = Pad(x, p)"
    "  i = Constant<value = int64[4] {3, 1, 0, 2}>() y = Gather<axis = 3>(a, i) }",
    "(float[1,4,8,8] x) => (float[1,4,8,3] y) { k = Constant<value = int64[1] {3}>()"
    "  y, i = TopK<axis = 3>(x, k) }",
};

// All values of a document but the objects.
void Leaves(Json& json, std::vector<Json*>& leaves) {
  if (!json.is_object()) leaves.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& inner : json) Leaves(inner, leaves);
}

void ChangeOne(Json& json, std::mt19937& random) {
  std::vector<Json*> leaves;
  Leaves(json, leaves);
  Json& leaf = *leaves[random() % leaves.size()];
  const Json other = *leaves[random() % leaves.size()];
  constexpr int64_t kNumbers[] = {0, 1, 2, 3, -1, 255, 65536, int64_t{1} << 31, int64_t{1} << 62};
  if (leaf.is_array() && !leaf.empty() && random() % 2 == 0) {
    leaf.erase(random() % leaf.size());
  } else if (leaf.is_number_integer() && random() % 4 != 0) {
    leaf = kNumbers[random() % std::size(kNumbers)];
  } else if (leaf.is_boolean()) {
    leaf = !leaf.get<bool>();
  } else {
    leaf = other;
  }
}

// What a forger could say in a network: wrong numbers, names, operands, weights of another shape.
TEST(Package, SurvivesForgedNetworks) {
  std::vector<std::string> packages;
  for (const char* model : kModels) {
    for (const Network& network : NetworksOf(model)) {
      packages.push_back(*WritePackage(PackageOf({network})));
    }
  }
  std::map<absl::StatusCode, int> codes;
  for (unsigned seed = 0; seed < 5000; ++seed) {
    std::mt19937 random(seed);
    const std::string forged = WithNetwork(
        [&](Json json) {
          for (unsigned i = 0; i < 1 + random() % 2; ++i) ChangeOne(json, random);
          return WriteCbor(json);
        },
        packages[seed % packages.size()]);
    const auto read = ReadPackage(forged, nullptr);
    ++codes[read.status().code()];
    if (read.ok()) TryAll(*read);
  }
  for (const auto& [code, count] : codes) {
    std::printf("%4d x %s\n", count, absl::StatusCodeToString(code).c_str());
  }
  EXPECT_GT(codes[absl::StatusCode::kOk], 100);
  EXPECT_GT(codes[kDamaged], 100);
  EXPECT_GT(codes[kStale], 100);
}

}  // namespace
}  // namespace anemone
