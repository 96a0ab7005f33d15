// tests/kernels/hidden/authored.h: compiles one unit, given by its netplist keys, for a target and
// runs it on the software engine. For units and forms that no ONNX operator is lowered to.
//
//   auto y = RunUnit({.type = "Softmax", .keys = {{"Dimension", "Width"}}, .inputs = {x}});
//   ExpectNear({{"Dropout", {{"DropoutRate", 0}}, {x}}, x.dims, x.values});
#ifndef ANEMONE_TESTS_KERNELS_HIDDEN_AUTHORED_H_
#define ANEMONE_TESTS_KERNELS_HIDDEN_AUTHORED_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/tensor.h"
#include "engine/device.h"
#include "engine/field.h"
#include "engine/network.h"

namespace anemone {

// A dense tensor in N, D, C, H, W order.
struct Input {
  Dims dims;
  std::vector<double> values;  // fp16 numbers, or uint8 numbers if that is the format
  Format format = Format::kFloat16;
};

Dims At(int64_t n, int64_t d, int64_t c, int64_t h, int64_t w);

// Random numbers, uniform in +-`most` and exact in fp16.
Input Random(const Dims& dims, double most = 2, int seed = 1);
// Multiples of 1 / 64 in +-`most`: their squares and sums are exact in any precision.
Input OnGrid(const Dims& dims, int most = 4, int seed = 1);
// A float tensor of rank 4 or less.
Input InputOf(const Tensor& tensor);

struct Authored {
  std::string type;
  Json keys;
  std::vector<Input> inputs;
  std::vector<Tensor> weights = {};
  std::string target = "h16";
  // Constant bottoms and their positions, after or between the inputs.
  std::vector<std::pair<size_t, Constant>> constants = {};
};

// kFailedPrecondition with the engine's message if the unit is refused.
absl::StatusOr<Network> NetworkOf(const Authored& unit);

struct Result {
  Dims dims;
  std::vector<math::Half> values;
};

// The only output of the network, which has the inputs of the unit.
absl::StatusOr<Result> RunNetwork(const Network& network, const Authored& unit,
                                  const SoftwareOptions& options = {});
// Also an error if a package changes the unit (tests/round_trip.h).
absl::StatusOr<Result> RunUnit(const Authored& unit);

// A unit, and its expected result by a plain formula in double precision.
struct Example {
  Authored unit;
  Dims dims;
  std::vector<double> want;
  // The bound of errors: the larger of `ulps` units in the last place of the reference and
  // `absolute`.
  double ulps = 0, absolute = 0;
};

struct Errors {
  double ulps = 0, absolute = 0;  // the largest
  std::string beyond;             // the first element beyond the bound; empty if there is none
};

// kInvalidArgument if the result has other dims.
absl::StatusOr<Errors> ErrorsOf(const Example& example, const Result& got);

void ExpectNear(const Example& example);

}  // namespace anemone

#endif  // ANEMONE_TESTS_KERNELS_HIDDEN_AUTHORED_H_
