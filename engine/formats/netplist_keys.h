// engine/formats/netplist_keys.h: keys and names that the writer and the reader of netplists share
// (netplist.md).
#ifndef ANEMONE_ENGINE_FORMATS_NETPLIST_KEYS_H_
#define ANEMONE_ENGINE_FORMATS_NETPLIST_KEYS_H_

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/dims.h"
#include "engine/field.h"

namespace anemone {

inline constexpr const char kNetplistVersion[] = "1.0.10", kNetwork[] = "net", kOperation[] = "op0";
inline constexpr const char kUnits[] = "Units", kWeights[] = "Weights", kConstants[] = "Constants";

// The names of Format, in its order.
inline constexpr const char* kFormatNames[] = {"Float16", "UInt8", "UInt16", "Int8"};

// Keys of all extents except the batch, without their prefix: InputChannels, ConstantWidth.
inline constexpr std::pair<Axis, const char*> kExtentKeys[] = {
    {Axis::kC, "Channels"}, {Axis::kD, "Depth"}, {Axis::kH, "Height"}, {Axis::kW, "Width"}};

inline void WriteDims(const char* prefix, const char* batch_key, const Dims& dims, Json& to) {
  to[batch_key] = dims.n();
  for (const auto& [axis, key] : kExtentKeys) to[absl::StrCat(prefix, key)] = dims[axis];
}

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETPLIST_KEYS_H_
