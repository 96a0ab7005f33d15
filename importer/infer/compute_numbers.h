// importer/infer/compute_numbers.h: the numbers of constants, for the rules of compute.h. Integers
// are computed as int64 and then wrapped to their type, floats as double and then rounded.
//
//   const ConstantNode c(graph, node, 0);
//   const Numbers<double> x = Floats(c, 0);  // nullopt: other types, or too many
//   Result same = FromFloats(DataType::kFloat, c.In(0)->dims(), x.value());
#ifndef ANEMONE_IMPORTER_INFER_COMPUTE_NUMBERS_H_
#define ANEMONE_IMPORTER_INFER_COMPUTE_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "importer/infer/compute.h"

namespace anemone::compute {

using Ints = std::vector<int64_t>;
using Dims = std::vector<int64_t>;
template <class T>
using Numbers = std::optional<std::vector<T>>;
template <class T, class R>
using Function = std::optional<R> (*)(T, T);  // nullopt: left to ONNX Runtime

bool IsFloatOrDouble(DataType type);

// The elements of a small input of floats or doubles.
Numbers<double> Floats(const ConstantNode& c, size_t i);
// The same of an input that must have floats; nullopt also if there is no such input.
Numbers<double> OnlyFloats(const ConstantNode& c, size_t i);

// Wraps around. nullopt for types other than bool, int8, uint8, int32 and int64.
Result FromInts(DataType type, Dims dims, const Ints& ints);
// nullopt if one is NaN: which bits it has depends on the machine.
Result FromFloats(DataType type, Dims dims, const std::vector<double>& floats);
// Floats that are sums. nullopt if one is not a finite float: another order of summands may give
// another result.
Result FromSums(Dims dims, const std::vector<double>& sums);

}  // namespace anemone::compute

#endif  // ANEMONE_IMPORTER_INFER_COMPUTE_NUMBERS_H_
