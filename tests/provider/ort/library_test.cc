// The plugin's shared library: the symbols that it exports and the libraries that it needs, and
// versions of ONNX Runtime that are too old.
#include <dlfcn.h>
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace anemone {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Names in the dynamic section of a 64-bit ELF file.
struct Dynamic {
  std::vector<std::string> exported, needed;

  explicit Dynamic(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    const auto header = At<Elf64_Ehdr>(0);
    for (int i = 0; i < header.e_shnum; ++i) {
      const auto section = At<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      const auto names = At<Elf64_Shdr>(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr));
      if (section.sh_type == SHT_DYNSYM) AddSymbols(section, names);
      if (section.sh_type == SHT_DYNAMIC) AddNeeded(section, names);
    }
    std::sort(exported.begin(), exported.end());
  }

 private:
  template <class T>
  T At(size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  std::string Text(const Elf64_Shdr& names, size_t at) const {
    return bytes_.c_str() + names.sh_offset + at;
  }
  void AddSymbols(const Elf64_Shdr& section, const Elf64_Shdr& names) {
    for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = At<Elf64_Sym>(section.sh_offset + at);
      const bool defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_ABS;
      if (defined && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) {
        exported.push_back(Text(names, symbol.st_name));
      }
    }
  }
  void AddNeeded(const Elf64_Shdr& section, const Elf64_Shdr& names) {
    for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Dyn)) {
      const auto entry = At<Elf64_Dyn>(section.sh_offset + at);
      if (entry.d_tag == DT_NEEDED) needed.push_back(Text(names, entry.d_un.d_val));
    }
  }
  std::string bytes_;
};

TEST(PluginLibrary, ExportsTheEntryPointsAndNothingElse) {
  const Dynamic dynamic(ANEMONE_PLUGIN);
  EXPECT_THAT(dynamic.exported,
              ElementsAre("CreateEpFactories", "RegisterCustomOps", "ReleaseEpFactory"));
}

TEST(PluginLibrary, NeedsNoOnnxRuntime) {
  const Dynamic dynamic(ANEMONE_PLUGIN);
  ASSERT_FALSE(dynamic.needed.empty());
  for (const std::string& library : dynamic.needed) {
    EXPECT_THAT(library, Not(HasSubstr("onnxruntime")));
  }
}

// An ONNX Runtime that supports API versions up to `newest` (0: none), and can only create a
// status.
uint32_t newest = 0;
std::string said;

const OrtApi* OldApi(uint32_t version) noexcept {
  static const OrtApi api = [] {
    OrtApi made{};
    made.CreateStatus = [](OrtErrorCode, const char* message) noexcept {
      said = message;
      return reinterpret_cast<OrtStatus*>(&said);
    };
    return made;
  }();
  return version > 0 && version <= newest ? &api : nullptr;
}

const OrtApiBase kOldHost{OldApi, []() noexcept { return "1.22.1"; }};

struct Library {
  Library() {
    handle = dlopen(ANEMONE_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return;
    create = reinterpret_cast<CreateEpApiFactoriesFn>(dlsym(handle, "CreateEpFactories"));
    add_operators = reinterpret_cast<OrtStatus* (*)(OrtSessionOptions*, const OrtApiBase*)>(
        dlsym(handle, "RegisterCustomOps"));
  }
  void* handle = nullptr;
  CreateEpApiFactoriesFn create = nullptr;
  OrtStatus* (*add_operators)(OrtSessionOptions*, const OrtApiBase*) = nullptr;
};

class OldHost : public testing::TestWithParam<uint32_t> {};

TEST_P(OldHost, IsToldSo) {
  const Library library;
  ASSERT_NE(library.create, nullptr) << dlerror();
  newest = GetParam();
  OrtEpFactory* factory = nullptr;
  size_t count = 7;
  said.clear();
  EXPECT_NE(library.create("ane", &kOldHost, nullptr, &factory, 1, &count), nullptr);
  EXPECT_EQ(count, 0u);
  EXPECT_THAT(said, HasSubstr("want ONNX Runtime 1.23 or newer, this is 1.22.1"));
  said.clear();
  EXPECT_NE(library.add_operators(nullptr, &kOldHost), nullptr);
  EXPECT_THAT(said, HasSubstr("want ONNX Runtime 1.23 or newer"));
}

INSTANTIATE_TEST_SUITE_P(Versions, OldHost, testing::Values(1, 17, 22));

TEST(PluginLibrary, AHostThatAnswersToNothingGetsNoFactory) {
  const Library library;
  ASSERT_NE(library.create, nullptr) << dlerror();
  newest = 0;
  OrtEpFactory* factory = nullptr;
  size_t count = 7;
  EXPECT_EQ(library.create("ane", &kOldHost, nullptr, &factory, 1, &count), nullptr);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(factory, nullptr);
}

}  // namespace
}  // namespace anemone
