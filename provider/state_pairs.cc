#include "provider/state_pairs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/near_names.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/usage_error.h"
#include "base/wrapped_text.h"
#include "provider/ports.h"

namespace anemone {
namespace {

// Names of an input and of the output that is its next value; `*` stands for any text, the same in
// both.
struct NamePair {
  const char* past;
  const char* present;
};
const NamePair kNamePairs[] = {
    {"past_key_values.*", "present.*"},  // optimum; ONNX Runtime GenAI
    {"past_key_values_*", "present_*"},  // the same, as names that PyTorch's exporters accept
    {"past*", "present*"},               // past_0, past_key_0 and past_key_values.0.key
    {"h0", "hn"},                        // PyTorch's documentation of GRU and LSTM, also as h_0
    {"c0", "cn"},
    {"h_0", "h_n"},
    {"c_0", "c_n"},
    {"hx", "hy"},  // the names in PyTorch's code
    {"cx", "cy"},
    {"initial_h", "Y_h"},  // ONNX's GRU, LSTM and RNN
    {"initial_c", "Y_c"},
};

// The name of the output that belongs to the input by this row; nullopt: the row does not name it.
std::optional<std::string> PresentOf(const NamePair& row, const std::string& input) {
  const absl::string_view past = row.past;
  if (!absl::EndsWith(past, "*")) {
    return input == past ? std::optional<std::string>(row.present) : std::nullopt;
  }
  const absl::string_view stem = past.substr(0, past.size() - 1);
  if (!absl::StartsWith(input, stem)) return std::nullopt;
  const absl::string_view present = row.present;
  return absl::StrCat(present.substr(0, present.size() - 1), input.substr(stem.size()));
}

std::optional<size_t> PortIndexOf(Ports ports, absl::string_view name) {
  const PortInfo* found = FindPort(ports, name);
  if (found == nullptr) return std::nullopt;
  return static_cast<size_t>(found - ports.data());
}

// "float32 1x?x8".
std::string TypeText(const PortInfo& port) {
  if (port.kind != PortKind::kTensor) return port.type_text;
  const std::string dims = absl::StrJoin(port.dims, "x", [](std::string* out, int64_t size) {
    absl::StrAppend(out, size < 0 ? "?" : absl::StrCat(size));
  });
  return absl::StrCat(port.type_text, port.dims.empty() ? "" : " ", dims);
}

bool Fit(const PortInfo& past, const PortInfo& present) {
  if (past.kind != PortKind::kTensor || present.kind != PortKind::kTensor) return false;
  if (past.type != present.type || past.dims.size() != present.dims.size()) return false;
  return std::equal(past.dims.begin(), past.dims.end(), present.dims.begin(),
                    [](int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; });
}

std::vector<std::string> NamesOf(Ports ports) {
  std::vector<std::string> names;
  names.reserve(ports.size());
  for (const PortInfo& port : ports) names.push_back(port.name);
  return names;
}

// Values of bodies have their path before the name (importer/read/graph_reader.h).
bool BodyHas(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes) {
    for (const Attribute::GraphPtr& body : BodiesOf(node)) {
      const bool has = std::any_of(
          body->values.begin(), body->values.end(),
          [&](const Value& value) { return absl::EndsWith(value.name, absl::StrCat("/", name)); });
      if (has || BodyHas(*body, name)) return true;
    }
  }
  return false;
}

absl::Status Bad(const std::string& past, const std::string& present, absl::string_view what) {
  return UsageError(absl::StrCat("state ", Printable(past), "=", Printable(present), ": ", what));
}

// The port of one side of a pair. `side` is "input" or "output".
absl::StatusOr<size_t> PortNamed(const std::string& past, const std::string& present,
                                 const std::string& name, const char* side, const Graph& graph,
                                 Ports ports) {
  if (const auto found = PortIndexOf(ports, name)) return *found;
  if (BodyHas(graph, name)) {
    return Bad(past, present,
               absl::StrCat("'", Printable(name),
                            "' is a value of a body (of If, Loop or Scan); a pair is of an input "
                            "and an output of the model itself"));
  }
  return Bad(past, present,
             absl::StrCat("the model has no ", side, " '", Printable(name), "'; it has ",
                          Printable(NearText(name, NamesOf(ports)))));
}

absl::StatusOr<StatePair> NamedPair(const std::string& past, const std::string& present,
                                    const Graph& graph, Ports inputs, Ports outputs) {
  StatePair pair;
  ANEMONE_ASSIGN_OR_RETURN(pair.input, PortNamed(past, present, past, "input", graph, inputs));
  ANEMONE_ASSIGN_OR_RETURN(pair.output,
                           PortNamed(past, present, present, "output", graph, outputs));
  const PortInfo& in = inputs[pair.input];
  const PortInfo& out = outputs[pair.output];
  if (Fit(in, out)) return pair;
  const bool are_tensors = in.kind == PortKind::kTensor && out.kind == PortKind::kTensor;
  const bool is_axis = are_tensors && in.type == out.type && in.dims.size() == out.dims.size();
  return Bad(
      past, present,
      absl::StrCat("the input is ", TypeText(in), ", the output ", TypeText(out), "; ",
                   !are_tensors ? "only tensors can be kept"
                   : is_axis    ? "export the model with that axis free, or give the input by hand"
                                : "give a pair of one type and shape"));
}

std::string PairsText(absl::Span<const StatePair> pairs, Ports inputs, Ports outputs,
                      bool every_pair) {
  constexpr size_t kListed = 3;
  std::vector<std::string> texts;
  for (const StatePair& pair : pairs) {
    if (!every_pair && texts.size() == kListed) break;
    texts.push_back(absl::StrCat(Printable(inputs[pair.input].name), " = ",
                                 Printable(outputs[pair.output].name)));
  }
  if (texts.size() < pairs.size()) texts.emplace_back("...");
  return absl::StrJoin(texts, ", ");
}

}  // namespace

std::vector<StatePair> UsualStatePairs(Ports inputs, Ports outputs) {
  std::vector<StatePair> pairs;
  std::set<size_t> used;
  for (size_t i = 0; i < inputs.size(); ++i) {
    for (const NamePair& row : kNamePairs) {
      const auto present = PresentOf(row, inputs[i].name);
      const auto output = present ? PortIndexOf(outputs, *present) : std::nullopt;
      if (!output || !Fit(inputs[i], outputs[*output]) || !used.insert(*output).second) continue;
      pairs.push_back({i, *output});
      break;
    }
  }
  return pairs;
}

absl::StatusOr<std::vector<StatePair>> FindStatePairs(
    const std::map<std::string, std::string>& state, const Graph& graph, Ports inputs,
    Ports outputs) {
  std::vector<StatePair> pairs;
  for (const auto& [past, present] : state) {
    if (past == kUsualPairs && present.empty()) continue;
    ANEMONE_ASSIGN_OR_RETURN(pairs.emplace_back(),
                             NamedPair(past, present, graph, inputs, outputs));
  }
  const auto usual = state.find(kUsualPairs);
  if (usual != state.end() && usual->second.empty()) {
    const std::vector<StatePair> found = UsualStatePairs(inputs, outputs);
    if (found.empty()) {
      return UsageError(
          "state auto: no input and output have a pair of usual names, as past_key_values.0.key "
          "and "
          "present.0.key or h0 and hn; give PAST=PRESENT");
    }
    for (const StatePair& pair : found) {
      const bool named = std::any_of(pairs.begin(), pairs.end(), [&](const StatePair& other) {
        return other.input == pair.input;
      });
      if (!named) pairs.push_back(pair);
    }
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const StatePair& a, const StatePair& b) { return a.input < b.input; });
  return pairs;
}

std::string StateText(absl::Span<const StatePair> kept, Ports inputs, Ports outputs,
                      bool every_pair, int width) {
  if (!kept.empty()) {
    return absl::StrCat(Wrapped(absl::StrCat("  state kept between runs: ",
                                             PairsText(kept, inputs, outputs, every_pair)),
                                width, 4),
                        "\n");
  }
  const std::vector<StatePair> usual = UsualStatePairs(inputs, outputs);
  if (usual.empty()) return "";
  return absl::StrCat(Wrapped(absl::StrCat("  could be kept between runs by --state auto: ",
                                           PairsText(usual, inputs, outputs, every_pair)),
                              width, 4),
                      "\n");
}

std::string NotInPlaceText(const std::string& refusal, bool grows, int width) {
  if (refusal.empty()) return "";
  const char* what = grows ? "  the state grows, and each length is planned: "
                           : "  rows of the state are written, and each run copies all of it: ";
  return absl::StrCat(Wrapped(absl::StrCat(what, Printable(refusal)), width, 4), "\n");
}

}  // namespace anemone
