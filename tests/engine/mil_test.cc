// MIL text and weights files: writing and reading back, comparing programs, and damaged input.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/mapped_file.h"
#include "engine/formats/mil_blobs.h"
#include "engine/formats/mil_program.h"
#include "math/core/half.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

constexpr char kText[] = R"(program(1.3)
[buildInfo = dict<string, string>({{"component", "anemone \"1\""}})]
{
    func main<ios18>(tensor<fp16, [1, 4, 8, 8]> x, tensor<fp16, [1, 4, 8, 8]> z) {
            tensor<fp16, [6, 4, 1, 1]> w = const()[name = string("w"), val = tensor<fp16, [6, 4, 1, 1]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64)))];
            tensor<int32, [2]> strides = const()[name = string("strides"), val = tensor<int32, [2]>([1, 1])];
            string pad = const()[name = string("pad"), val = string("valid")];
            fp16 half = const()[name = string("half"), val = fp16(0x1p-1)];
            bool keep = const()[name = string("keep"), val = bool(true)];
            tensor<fp16, [1, 6, 8, 8]> c = conv(x = x, weight = w, strides = strides, pad_type = pad)[name = string("c")];
            tensor<fp16, [1, 10, 8, 8]> y = concat(values = (c, z), interleave = keep)[name = string("y")];
        } -> (y, c);
}
)";

TEST(Mil, IsWrittenAsItWasRead) {
  auto program = ReadMil(kText);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(WriteMil(*program), kText);
  EXPECT_EQ(program->statements[0].attribute("val")->blob->offset, 64);
  EXPECT_EQ(program->statements[3].attribute("val")->data, 0.5);
  EXPECT_EQ(program->statements[6].arguments[0].values, std::vector<std::string>({"c", "z"}));
}

TEST(Mil, NamesBetweenPortsDoNotCount) {
  auto a = ReadMil(kText), b = ReadMil(kText);
  b->build_info.clear();
  for (MilStatement& s : b->statements) {
    for (MilArgument& argument : s.arguments) {
      for (std::string& value : argument.values) value = value == "w" ? "kernel" : value;
    }
    if (s.outputs[0].name == "w") s.outputs[0].name = "kernel";
  }
  EXPECT_TRUE(CompareMil(*a, *b).ok()) << CompareMil(*a, *b);
  b->statements[6].arguments[0].values = {"z", "c"};
  EXPECT_THAT(CompareMil(*a, *b),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("statement 7, concat")));
}

TEST(Mil, ErrorsSayWhere) {
  auto error = [](std::string from, std::string to) {
    std::string text = kText;
    text.replace(text.find(from), from.size(), to);
    return ReadMil(text).status();
  };
  auto invalid = [](const char* words) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words));
  };
  EXPECT_THAT(error("x = x", "x = q"), invalid("line 10, column"));
  EXPECT_THAT(error("x = x", "x = q"), invalid("'q' is not defined here"));
  EXPECT_THAT(error("string pad", "string w"), invalid("'w' is defined twice"));
  EXPECT_THAT(error("[name = string(\"c\")]", "[name = string(\"c\"), name = string(\"c\")]"),
              invalid("attribute 'name' is given twice"));
  EXPECT_THAT(error("x = x", "x = c"), invalid("'c' is not defined here"));
  EXPECT_THAT(error("([1, 1])", "([1])"), invalid("want 2 elements"));
  EXPECT_THAT(error("[1, 4, 8, 8]", "[1, -4, 8, 8]"), invalid("an invalid shape"));
}

TEST(Mil, NumbersAreThoseOfTheLocaleC) {
  const auto number = [](std::string word) {
    std::string text = kText;
    const std::string from = "fp16(0x1p-1)";
    text.replace(text.find(from), from.size(), "fp16(" + word + ")");
    const auto program = ReadMil(text);
    return program.ok() ? WriteMil(*program) : "";
  };
  // One that writes numbers with a comma, if the machine has one.
  for (const char* locale : {"C", "de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_ALL, locale) == nullptr) continue;
    for (const auto& [word, same] :
         std::vector<std::pair<const char*, const char*>>{{"0.5", "0x1p-1"},
                                                          {"+.5e0", "0x1p-1"},
                                                          {"0X1P-1", "0x1p-1"},
                                                          {"-0x1.8p+1", "-0x1.8p+1"},
                                                          {"1e-400", "0x0p+0"},
                                                          {"1e400", "inf"},
                                                          {"-inf", "-inf"},
                                                          {"1.5", "0x1.8p+0"}}) {
      EXPECT_THAT(number(word), HasSubstr(std::string("fp16(") + same + ")")) << word;
    }
    for (const char* word : {"0x", "1.2.3", "--1", "+-1", "1,5", "0xp1", "e5", "-"}) {
      EXPECT_EQ(number(word), "") << word;
    }
  }
  std::setlocale(LC_ALL, "C");
}

// No truncated or changed text may crash; most are errors.
TEST(Mil, AnyDamageIsAnError) {
  const std::string text = kText;
  for (size_t i = 0; i < text.size(); ++i) {
    ReadMil(text.substr(0, i)).status().IgnoreError();
    for (char c : {'(', '"', '0', ',', '\\', '\0'}) {
      std::string spoilt = text;
      spoilt[i] = c;
      ReadMil(spoilt).status().IgnoreError();
    }
  }
  EXPECT_FALSE(ReadMil(text.substr(0, text.size() - 3)).ok());
}

TEST(MilBlobs, AreNotWrittenAfterTheTimeLimit) {
  constexpr int64_t kCount = 1 << 20;
  const std::vector<float> floats(kCount, 1);
  const float one = 1;
  const Tensor fill = Tensor::Fill(DataType::kFloat, {kCount},
                                   {reinterpret_cast<const std::byte*>(&one), sizeof(one)});
  const std::vector<uint8_t> bytes(kCount, 1);
  struct Case {
    Tensor tensor;
    const char* dtype;
  };
  for (const Case& c : {Case{Tensor::Floats({kCount}, floats), "fp16"}, Case{fill, "fp32"},
                        Case{Tensor::Of<uint8_t>(DataType::kUInt8, {kCount}, bytes), "uint8"}}) {
    SCOPED_TRACE(c.dtype);
    std::ostringstream out;
    const TimeLimit limit(1e-9);
    MilBlobWriter writer(out);
    writer.Add(c.tensor, c.dtype);
    EXPECT_THAT(writer.Finish(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                          testing::HasSubstr("at the weights file")));
    EXPECT_LT(out.str().size(), 1000);
  }
}

TEST(MilBlobs, AreNamedByTheirChunksHeader) {
  std::ostringstream out;
  MilBlobWriter writer(out);
  const float numbers[] = {1, -2, 0.5f};
  const int64_t first = writer.Add(Tensor::Floats({3}, numbers), "fp16");
  const uint16_t indices[] = {7, 8, 9};
  const int64_t second =
      writer.Add(Tensor::Of<uint16_t>(DataType::kUInt16, {3}, indices), "uint16");
  // Three nibbles: the second byte has four bits of padding.
  const uint8_t nibbles[] = {0x21, 0x03};
  const int64_t third = writer.Add(Tensor::Of<uint8_t>(DataType::kUInt4, {3}, nibbles), "uint4");
  ASSERT_TRUE(writer.Finish().ok());
  const std::string file = out.str();
  auto bytes = absl::MakeConstSpan(reinterpret_cast<const std::byte*>(file.data()), file.size());
  EXPECT_EQ(first, 64);  // orion.json 8
  EXPECT_EQ(file.size() % 64, 0);
  auto halves = MilBlobAt(bytes, first);
  ASSERT_TRUE(halves.ok()) << halves.status();
  ASSERT_EQ(halves->size(), 6);
  EXPECT_EQ(halves->data() - bytes.data(), 128);
  math::Half half;
  std::memcpy(&half, halves->data() + 2, 2);
  EXPECT_EQ(math::ToFloat(half), -2);
  EXPECT_EQ(MilBlobAt(bytes, second)->size(), 6);
  EXPECT_EQ(MilBlobAt(bytes, third)->size(), 2);
  const auto word = [&](int64_t at) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    return value;
  };
  EXPECT_EQ(word(first + 4), 1);  // coremltools BlobDataType.hpp
  EXPECT_EQ(word(second + 4), 7);
  EXPECT_EQ(word(third + 4), 11);
  EXPECT_EQ(word(third + 24), 4);
  for (int64_t wrong : {int64_t{0}, int64_t{128}, int64_t{-64}, int64_t(file.size())}) {
    EXPECT_THAT(MilBlobAt(bytes, wrong),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no chunk header")));
  }
  EXPECT_THAT(MilBlobAt(bytes.first(first + 64), first),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("does not fit")));
}

// A file in which large writes, whose bytes are all 0, are holes: they take neither disk nor time.
class HoleyFile : public std::streambuf {
 public:
  HoleyFile() : file_(mkstemp(path_.data())) {}
  ~HoleyFile() override {
    close(file_);
    unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 protected:
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    if (count < 1 << 20) return write(file_, bytes, count);
    return lseek(file_, count, SEEK_CUR) < 0 ? 0 : count;
  }

 private:
  std::string path_ = testing::TempDir() + "/holes.XXXXXX";
  int file_;
};

// Offsets and sizes have 64 bits (coremltools StorageFormat.hpp).
TEST(MilBlobs, MayHaveMoreThanFourGibibytes) {
  constexpr int64_t kLarge = (int64_t{1} << 32) + 192;
  void* zeros =
      mmap(nullptr, kLarge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  HoleyFile buffer;
  std::ostream out(&buffer);
  MilBlobWriter writer(out);
  const auto view = absl::MakeConstSpan(static_cast<const std::byte*>(zeros), kLarge);
  const int64_t first =
      writer.Add(Tensor::View(DataType::kUInt8, {kLarge}, view, nullptr), "uint8");
  const uint8_t numbers[] = {3, 1, 2};
  const int64_t second = writer.Add(Tensor::Of<uint8_t>(DataType::kUInt8, {3}, numbers), "uint8");
  ASSERT_TRUE(writer.Finish().ok());
  munmap(zeros, kLarge);
  EXPECT_EQ(second, 128 + kLarge);
  auto file = MappedFile::Open(buffer.path());
  ASSERT_TRUE(file.ok()) << file.status();
  auto large = MilBlobAt((*file)->bytes(), first), small = MilBlobAt((*file)->bytes(), second);
  ASSERT_TRUE(large.ok()) << large.status();
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(large->size(), kLarge);
  EXPECT_EQ(small->data() - (*file)->bytes().data(), second + 64);
  EXPECT_EQ((*small)[0], std::byte{3});
}

}  // namespace
}  // namespace anemone
