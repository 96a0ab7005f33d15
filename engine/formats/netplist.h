// engine/formats/netplist.h: a Network as the engine compiler's authored format, and back. A
// netplist is a folder: net.plist, and files weights.0, weights.1, ... with the constants as
// little-endian fp16 (indices as uint16), packed. Facts: netplist.md of the shared tables (guide
// ch22, ch26 and the supplement); which kinds have a form: netplist_form.h.
//
//   ANEMONE_ASSIGN_OR_RETURN(Netplist written, WriteNetplist(network, FormStatus::kKnown));
//   NetworkBuilder c(target, Route::kNetplist);
//   ANEMONE_RETURN_IF_ERROR(ReadNetplist(written.document, source, FindUnitKind, c));
//   c.network();  // it again
//
// Names of ports are kept, those of units where they clash with no port. What it cannot hold: an
// input that no unit reads, and an output that no unit makes.
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
  std::vector<Tensor> weights;  // of file 1, one behind the other; file 0 is empty
  PortNames ports;
};

// kUnimplemented: a unit without a form of at least `least`; the message names it and the reason.
absl::StatusOr<Netplist> WriteNetplist(const Network& network, FormStatus least);

// The network with every unit whose form is less sure than `least` composed of others, where its
// kind knows how (UnitRow.compose); the rest as it is.
absl::StatusOr<Network> ComposeForms(const Network& network, FormStatus least,
                                     const Target& target);

// The form of one unit of `network`: its own, or the least sure of those it is composed of.
UnitForm ComposedForm(const Network& network, const Unit& unit, const Target& target);

// Elements of a weights file, from a byte offset on: a view, or ZeroFill() where values do not
// matter.
using WeightSource = std::function<absl::StatusOr<Tensor>(int64_t file, int64_t offset, DataType,
                                                          std::vector<int64_t> dims)>;

// Appends what `document` says, each unit judged as a hand-written one (authored_unit.h).
// Errors: kInvalidArgument (no such document), and c.refusal() if a unit is refused.
absl::Status ReadNetplist(const Json& document, const WeightSource& weights,
                          const UnitKind* (*find_kind)(absl::string_view), NetworkBuilder& c);

}  // namespace anemone

#endif  // ANEMONE_ENGINE_FORMATS_NETPLIST_H_
