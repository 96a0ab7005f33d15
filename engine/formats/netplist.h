// engine/formats/netplist.h: converts a Network to a netplist, the engine compiler's directly
// authored format, and back. A netplist is a folder with net.plist and the files weights.0,
// weights.1, ..., which hold the constants as packed little-endian fp16 (indices as uint16). Facts:
// netplist.md of the shared tables (guide ch22, ch26 and the supplement). netplist_form.h says
// which kinds have a form.
//
//   ANEMONE_ASSIGN_OR_RETURN(Netplist written, WriteNetplist(network, FormStatus::kKnown));
//   NetworkBuilder c(target, Route::kNetplist);
//   ANEMONE_RETURN_IF_ERROR(ReadNetplist(written.document, source, FindUnitKind, c));
//   c.network();  // the same network
//
// Names of ports are kept. Names of units are kept unless they clash with another name. A netplist
// cannot hold an input that no unit reads, nor an output that no unit computes.
#ifndef ANEMONE_ENGINE_FORMATS_NETPLIST_H_
#define ANEMONE_ENGINE_FORMATS_NETPLIST_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/netplist_form.h"
#include "engine/network_builder.h"
#include "engine/port_names.h"

namespace anemone {

struct Netplist {
  Json document;                // net.plist
  std::vector<Tensor> weights;  // the tensors of weights.1, in order; weights.0 is empty
  PortNames ports;
};

// kUnimplemented if a unit has no form of at least status `least`; the message names the unit and
// the reason.
absl::StatusOr<Netplist> WriteNetplist(const Network& network, FormStatus least);

// Replaces every unit whose form has a status below `least` by an equivalent composition of other
// units, if its kind has one (UnitRow.spell.compose). Other units are not changed.
absl::StatusOr<Network> ComposeForms(const Network& network, FormStatus least,
                                     const Target& target);

// The form of one unit of `network`. If its own form is not kKnown and it can be composed of other
// units, this is the least certain form among those units.
UnitForm ComposedForm(const Network& network, const Unit& unit, const Target& target);

// Returns the elements of a weights file from a byte offset on: a view, or ZeroFill() if the values
// do not matter.
using WeightSource = std::function<absl::StatusOr<Tensor>(int64_t file, int64_t offset, DataType,
                                                          std::vector<int64_t> dims)>;

// Appends the network of `document` to `c`, with AddAuthoredUnit() for each unit. kInvalidArgument
// if the document is not valid; c.refusal() is set if a unit is refused.
absl::Status ReadNetplist(const Json& document, const WeightSource& weights,
                          const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETPLIST_H_
