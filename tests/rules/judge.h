// tests/rules/judge.h: reads the written form of a network and returns the verdict of CheckNetwork
// as JSON.
#ifndef ANEMONE_TESTS_RULES_JUDGE_H_
#define ANEMONE_TESTS_RULES_JUDGE_H_

#include <string>

#include "engine/constant.h"
#include "engine/formats/netplist.h"
#include "engine/formats/network_json.h"
#include "engine/formats/property_list.h"

namespace anemone {

inline Json VerdictJson(const Verdict& verdict) {
  return {{"accepted", verdict.accepted},
          {"status", std::string(StatusName(verdict.status))},
          {"layer", verdict.accepted ? "" : std::string(LayerName(verdict.layer))},
          {"rule", verdict.rule_id()},
          {"message", verdict.message}};
}

// Reads the text of a netplist, or the JSON of a network.
inline absl::Status ReadWritten(const Json& written,
                                const UnitKind* (*find_kind)(absl::string_view),
                                NetworkBuilder& c) {
  if (!written.is_string()) return ReadNetwork(written, find_kind, c);
  absl::StatusOr<Json> document = ReadPropertyList(written.get<std::string>());
  if (!document.ok()) return document.status();
  auto zeros = [](int64_t, int64_t, DataType type, std::vector<int64_t> dims) {
    return ZeroFill(type, std::move(dims));
  };
  return ReadNetplist(*document, zeros, find_kind, c);
}

// Reads `written` and calls CheckNetwork, as Compile does first. If `network` is not null, it
// receives the network that was read.
inline Json Judged(const Json& written, const UnitKind* (*find_kind)(absl::string_view),
                   const Target& target, Route route, Network* network = nullptr) {
  NetworkBuilder c(target, route);
  absl::Status status = ReadWritten(written, find_kind, c);
  if (c.refusal()) return VerdictJson(*c.refusal());
  if (!status.ok()) return {{"error", std::string(status.message())}};
  Network read = c.TakeNetwork();
  Json answer = VerdictJson(CheckNetwork(read, target, route).verdict);
  if (network != nullptr) *network = std::move(read);
  return answer;
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_RULES_JUDGE_H_
