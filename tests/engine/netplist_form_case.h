// tests/engine/netplist_form_case.h: builds networks of one unit from netplist keys, for the tests
// of netplists.
#ifndef ANEMONE_TESTS_ENGINE_NETPLIST_FORM_CASE_H_
#define ANEMONE_TESTS_ENGINE_NETPLIST_FORM_CASE_H_

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/authored_unit.h"
#include "engine/constant.h"
#include "engine/formats/netplist.h"
#include "kernels/lowering.h"

namespace anemone {

struct FormCase {
  std::string type;
  std::vector<Dims> inputs;
  std::string params;  // in the spelling of netplist.md
  std::vector<int64_t> kernel = {};
  std::vector<Dims> constants = {};  // bottoms after the inputs
};

inline void PrintTo(const FormCase& form, std::ostream* out) {
  *out << form.type << " " << form.params;
}

inline const Target& FormTarget() { return **FindTarget("h16"); }

inline absl::StatusOr<Tensor> ZeroWeights(int64_t, int64_t, DataType type,
                                          std::vector<int64_t> dims) {
  return ZeroFill(type, std::move(dims));
}

inline Dims At(int64_t n, int64_t d, int64_t c, int64_t h, int64_t w) {
  return Dims{{n, d, c, h, w}};
}

// The network; its only unit is called "unit".
inline Network NetworkOf(const FormCase& form) {
  NetworkBuilder c(FormTarget(), Route::kNetplist);
  std::vector<Operand> bottoms;
  for (const Dims& dims : form.inputs) {
    bottoms.push_back(c.AddInput(absl::StrCat("x", bottoms.size()), dims));
  }
  for (const Dims& dims : form.constants) {
    DataType type = form.type == "Gather" ? DataType::kUInt16 : DataType::kFloat16;
    bottoms.push_back(
        c.AddConstant(*ZeroFill(type, {dims.extent.begin(), dims.extent.end()}), dims));
  }
  std::vector<Tensor> weights;
  if (!form.kernel.empty()) weights.push_back(*ZeroFill(DataType::kFloat, form.kernel));
  const Operand unit = AddAuthoredUnit(c, *FindUnitKind(form.type), Json::parse(form.params),
                                       bottoms, std::move(weights), "unit");
  EXPECT_TRUE(c.ok()) << c.status() << (c.refusal() ? c.refusal()->message : "");
  if (c.ok()) c.AddOutput("y", unit);
  return c.TakeNetwork();
}

inline constexpr char kConvKeys[] =
    R"({"Type": "Conv", "KernelWidth": 3, "KernelHeight": 3, "KernelDepth": 1,
    "KernelMode": "Dense", "KernelType": "Float16", "KernelGroupReuse": false,
    "KernelMutable": false, "Step": [1, 1, 1], "PadLeft": 1, "PadRight": 1, "PadTop": 1,
    "PadBot": 1, "PadFront": 0, "PadBack": 0, "PaddingMode": "Zero"})";

inline const Dims kImage = At(1, 1, 4, 8, 8);

}  // namespace anemone

#endif  // ANEMONE_TESTS_ENGINE_NETPLIST_FORM_CASE_H_
