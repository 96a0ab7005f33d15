// A run of a program must not allocate memory after scratch memory and arenas exist. This is a
// separate program, because it replaces the C library's allocator to count allocations.
#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "anemone/session.h"
#include "engine/device.h"
#include "engine/surface.h"
#include "importer/importer.h"
#include "partitioner/plan.h"
#include "provider/settings.h"
#include "tests/onnx_text.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<int> allocations{0}, large_allocations{0};
}  // namespace

#if defined(__GLIBC__) && !defined(ANEMONE_SANITIZED)
#define ANEMONE_COUNTS_ALLOCATIONS 1
static void Count(size_t size) {
  constexpr size_t kLarge = 100'000;
  if (!counting) return;
  ++allocations;
  if (size >= kLarge) ++large_allocations;
}

// The C library's functions that implement malloc() and others.
extern "C" {
void* __libc_malloc(size_t size);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t size);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, size_t size);       // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t size) {
  Count(size);
  return __libc_malloc(size);
}
void* calloc(size_t nmemb, size_t size) {
  Count(nmemb * size);
  return __libc_calloc(nmemb, size);
}
void* realloc(void* ptr, size_t size) {
  Count(size);
  return __libc_realloc(ptr, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  Count(size);
  return __libc_memalign(alignment, size);
}
}
#endif

namespace anemone {
namespace {

struct AllocationCase {
  std::string name;
  std::string text;
};

void PrintTo(const AllocationCase& c, std::ostream* out) { *out << c.name; }

const AllocationCase kCases[] = {
    {"Convolutions",
     "(float[1,8,20,30] x) => (float[1,32,20,30] y)"
     " <float[32,8,3,3] s, float[32,32,3,3] w, float[32,1,3,3] d, float[32,32,1,1] p> {"
     "  a = Conv<pads = [1,1,1,1]>(x, s) b = Relu(a) c = Conv<pads = [1,1,1,1]>(b, w)"
     "  e = Conv<pads = [1,1,1,1], group = 32>(c, d) f = Conv(e, p) g = Add(f, b)"
     "  h = Sigmoid(g) i = Mul(g, h) y = LeakyRelu(i) }"},
    {"StridesAndPools",
     "(float[1,8,21,33] x) => (float[1,16,1,1] y) <float[8,8,3,3] w> {"
     "  a = Conv<pads = [1,1,1,1], strides = [2,2]>(x, w) b = HardSwish(a)"
     "  c = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(b)"
     "  d = AveragePool<kernel_shape = [3,3], pads = [1,1,1,1]>(c) e = Concat<axis = 1>(c, d)"
     "  y = GlobalAveragePool(e) }"},
    {"ManyLinks",
     "(float[1,8,9,7] x) => (float[1,8,9,7] y) <float[8,8,1,1] w, float[8,1,1] c> {"
     "  a = Conv(x, w) b = Mul(a, c) d = Add(b, c) e = Relu(d) f = Mul(e, c) g = Sigmoid(f)"
     "  h = Add(g, x) i = Tanh(h) j = Mul(i, x) k = Sub(j, c) l = Elu(k) y = Add(l, x) }"},
    {"Attention",
     "(float[1,20,24] x) => (float[1,20,24] y)"
     " <float[24,24] q, float[24,24] k, float[24,24] v, float[24] g, float[24] b> {"
     "  a = MatMul(x, q) c = MatMul(x, k) d = MatMul(x, v) t = Transpose<perm = [0,2,1]>(c)"
     "  s = MatMul(a, t) p = Softmax(s) o = MatMul(p, d) r = Add(o, x)"
     "  n = LayerNormalization(r, g, b) y = Gelu(n) }"},
    {"MovedAxes",
     "(float[1,8,9,7] x) => (float[1,8,18,14] y, float[1,1,9,1] r, float[1,8,9,3] t) {"
     "  a = LpNormalization<axis = 1>(x) axes = Constant<value_ints = [1,3]>()"
     "  r = ReduceMean(a, axes) s = Softmax<axis = 1>(a)"
     "  k = Constant<value_ints = [3]>() t, i = TopK(s, k)"
     "  z = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>() y = Resize<mode = \"linear\">(s, , z) "
     "}"},
};

class AllocationTest : public testing::TestWithParam<AllocationCase> {};

TEST_P(AllocationTest, ARunAllocatesNothing) {
#ifndef ANEMONE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  std::mt19937 random(7);
  onnx::ModelProto proto = ModelOfText(GetParam().text);
  FillDeclared(*proto.mutable_graph(), -0.5f, 0.5f, random);
  const auto model = ImportBytes(proto.SerializeAsString(), "", {});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto planning = PlanOptionsOf({.target = "h16"});
  ASSERT_TRUE(planning.ok()) << planning.status();
  const auto plan = MakePlan(*model, *planning);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->segments.size(), 1);
  ASSERT_EQ(plan->segments[0].placement, Placement::kEngine);
  tbb::task_arena arena(1);
  arena.execute([&] {
    const auto device = MakeSoftwareDevice();
    const auto program = device->Compile(plan->segments[0].network, *plan->target, plan->route);
    ASSERT_TRUE(program.ok()) << program.status();
    std::vector<Surface> surfaces;
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    const auto surface = [&](const ProgramPort& port) {
      surfaces.push_back(*Surface::Allocate(port.layout.bytes()));
      return surfaces.back().data();
    };
    for (const ProgramPort& port : (*program)->inputs()) inputs.push_back(surface(port));
    for (const ProgramPort& port : (*program)->outputs()) outputs.push_back(surface(port));
    for (int run = 0; run < 3; ++run) {
      counting = run == 2;
      allocations = 0;
      const absl::Status status = device->Run(**program, {.inputs = inputs, .outputs = outputs});
      counting = false;
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(allocations, 0);
    // Check that allocations are counted at all.
    counting = true;
    std::vector<int> one(1000);
    counting = false;
    EXPECT_GE(allocations, 1);
  });
}

// Values that leave the engine use the memory of earlier runs: those between segments, and outputs
// that the caller no longer holds.
TEST(SessionAllocation, ValuesUseMemoryOfEarlierRuns) {
#ifndef ANEMONE_COUNTS_ALLOCATIONS
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  const auto session = Session::LoadBytes(
      ModelOfText("(float[1,8,64,64] x) => (float[1,8,64,64] y) {"
                  "  a = Sigmoid(x)"
                  "  b = MaxPool<kernel_shape = [3,3], pads = [1,1,1,1]>(a) y = Sigmoid(b) }")
          .SerializeAsString(),
      {.policy = "refuse:Pooling", .threads = 1});
  ASSERT_TRUE(session.ok()) << session.status();
  const Tensor x = Tensor::Zeros(DataType::kFloat, {1, 8, 64, 64});
  std::vector<Tensor> held;
  for (int run = 0; run < 4; ++run) {
    counting = run >= 2;
    large_allocations = 0;
    const auto outputs = session->Run({{"x", x}});
    counting = false;
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    held.push_back(outputs->at("y"));
    if (run < 2) continue;
    EXPECT_EQ(large_allocations, 1) << "the output, as the caller holds the others";
  }
  held.clear();
  counting = true;
  large_allocations = 0;
  ASSERT_TRUE(session->Run({{"x", x}}).ok());
  counting = false;
  EXPECT_EQ(large_allocations, 0);
}

INSTANTIATE_TEST_SUITE_P(Networks, AllocationTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace anemone
