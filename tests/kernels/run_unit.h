// tests/kernels/run_unit.h: one unit of a netplist's keys, compiled for a target and run on the
// software device; for units that no ONNX operator becomes, and forms that none asks for.
//
//   auto y = RunUnit("Softmax", R"({"Dimension": "Width"})", "h14", x, {1, 8, 1, 16});
#ifndef ANEMONE_TESTS_KERNELS_RUN_UNIT_H_
#define ANEMONE_TESTS_KERNELS_RUN_UNIT_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "anemone/status_macros.h"
#include "engine/device.h"
#include "engine/network_builder.h"
#include "kernels/lowering.h"
#include "provider/crossing.h"

namespace anemone {

// `x` and the result are float, N, C, H, W; `shape` is the result's.
inline absl::StatusOr<Tensor> RunUnit(const std::string& type, const std::string& keys,
                                      const std::string& target_name, const Tensor& x,
                                      const std::vector<int64_t>& shape) {
  ANEMONE_ASSIGN_OR_RETURN(const Target* target, FindTarget(target_name));
  NetworkBuilder builder(*target, Route::kNetplist);
  const UnitKind& kind = *FindUnitKind(type);
  Operand input = builder.AddInput("x", PlaceShape(x.dims()));
  const Bottom bottom{.dims = builder.DimsOf(input)};
  ANEMONE_ASSIGN_OR_RETURN(auto params, kind.Read(Json::parse(keys), {&bottom, 1}, {}));
  ANEMONE_ASSIGN_OR_RETURN(Operand y, builder.AddUnit(kind, params, {input}, {}, "y"));
  if (builder.DimsOf(y) != PlaceShape(shape)) {
    return absl::InternalError("made " + DimsToString(builder.DimsOf(y)));
  }
  builder.AddOutput("y", y);
  auto device = MakeSoftwareDevice();
  ANEMONE_ASSIGN_OR_RETURN(auto program,
                           device->Compile(builder.TakeNetwork(), *target, Route::kNetplist));
  const SurfaceLayout &from = program->inputs()[0].layout, &to = program->outputs()[0].layout;
  std::vector<std::byte> in(from.bytes()), out(to.bytes());
  ToSurface(x, from, in.data());
  const std::byte* inputs[] = {in.data()};
  std::byte* outputs[] = {out.data()};
  ANEMONE_RETURN_IF_ERROR(device->Run(*program, {inputs, outputs}));
  return FromSurface(out.data(), to, DataType::kFloat, shape);
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_KERNELS_RUN_UNIT_H_
