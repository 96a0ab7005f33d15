#include "tools/zoo/site.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "engine/formats/json_keys.h"
#include "engine/target.h"
#include "engine/target_names.h"
#include "partitioner/plan_text.h"
#include "provider/new_file.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// Names of models are data, never markup. Control characters, and the marks that reverse the
// direction of text, are shown as numbers.
std::string Escaped(absl::string_view text) {
  std::string made;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const absl::string_view mark = text.substr(i, 3);
    const bool turns = (mark >= "\u202a" && mark <= "\u202e") ||
                       (mark >= "\u2066" && mark <= "\u2069") || mark == "\u200e" ||
                       mark == "\u200f";
    if (turns) {
      absl::StrAppend(
          &made, absl::StrFormat("\\x%02x\\x%02x\\x%02x", byte, mark[1] & 0xff, mark[2] & 0xff));
      i += 2;
    } else if (absl::StrContains("<>&\"'", text[i])) {
      absl::StrAppend(&made, "&#", static_cast<int>(byte), ";");
    } else if (byte < 0x20 || byte == 0x7f) {
      absl::StrAppend(&made, absl::StrFormat("\\x%02x", byte));
    } else {
      made.push_back(text[i]);
    }
  }
  return made;
}

constexpr char kHead[] = R"html(<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>%s</title>
<style>
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 90rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; } th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line);
  text-align: right; white-space: nowrap; } th:first-child, td:first-child { text-align: left;
  white-space: normal; overflow-wrap: anywhere; min-width: 12rem; } td.text { text-align: left; }
th[colspan] { text-align: center; } th[data-sort] { cursor: pointer; } th[aria-sort]::after { content: " \2193"; }
th[aria-sort="ascending"]::after { content: " \2191"; }
.ok { color: var(--good); } .bad { color: var(--bad); } input { font: inherit; padding: .2rem .4rem; }
</style>
)html";

// Sorts by a click on a head, or Enter; filters by the words in #search.
constexpr char kScript[] = R"html(<script>
const table = document.querySelector("#models"), body = table.tBodies[0];
const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
function sort(head) {
  const column = heads.indexOf(head), up = head.ariaSort === "descending";
  for (const other of heads) other.removeAttribute("aria-sort");
  head.ariaSort = up ? "ascending" : "descending";
  const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const order = (a, b) => {
    const x = value(a), y = value(b);
    if (x === "" || y === "") return (x === "") - (y === "");
    const by = isNaN(x) || isNaN(y) ? x.localeCompare(y) : x - y;
    return up ? by : -by;
  };
  body.append(...[...body.rows].sort(order));
}
for (const head of heads) {
  head.tabIndex = 0;
  head.onclick = () => sort(head);
  head.onkeydown = event => { if (event.key === "Enter") sort(head); };
}
const search = document.querySelector("#search");
search.oninput = () => {
  const words = search.value.toLowerCase().split(/\s+/);
  for (const row of body.rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every(word => text.includes(word));
  }
  document.querySelector("#shown").textContent = [...body.rows].filter(row => !row.hidden).length;
};
</script>
)html";

// A cell with the number that it is sorted by.
std::string Cell(const Json& number, const std::string& shown) {
  if (!number.is_number()) return "<td data-value=\"\">-</td>";
  return absl::StrFormat("<td data-value=\"%.9g\">%s</td>", number.get<double>(), shown);
}
std::string ShareCell(const Json& share) {
  return Cell(share, share.is_number() ? PercentText(share.get<double>()) : "");
}
std::string CountCell(const Json& count) {
  return Cell(count, count.is_number() ? absl::StrFormat("%.0f", count.get<double>()) : "");
}
std::string TimeCell(const Json& us) {
  return Cell(us, us.is_number() ? absl::StrFormat("%.2f ms", us.get<double>() / 1000) : "");
}
std::string SecondsCell(const Json& seconds) {
  return Cell(seconds, seconds.is_number() ? absl::StrFormat("%.1f", seconds.get<double>()) : "");
}
std::string CosineCell(const Json& cosine) {
  return Cell(cosine, cosine.is_number() ? absl::StrFormat("%.6f", cosine.get<double>()) : "");
}

struct Column {
  const char* title;
  std::string (*cell)(const Json& target);
};
constexpr Column kColumns[] = {
    {"MACs",
     [](const Json& t) {
       return ShareCell(AtOrNull(AtOrNull(t, "summary"), "engine_macs_share"));
     }},
    {"CPU nodes",
     [](const Json& t) { return CountCell(AtOrNull(AtOrNull(t, "summary"), "cpu_nodes")); }},
    {"segments",
     [](const Json& t) { return CountCell(AtOrNull(AtOrNull(t, "summary"), "engine_segments")); }},
    {"estimate", [](const Json& t) { return TimeCell(AtOrNull(t, "estimate_us")); }},
    {"cosine", [](const Json& t) { return CosineCell(AtOrNull(t, "cosine")); }}};

std::string StatusCell(const Json& line) {
  const std::string status = TextAt(line, "status");
  return absl::StrCat("<td class=\"text ", status == "ok" ? "ok" : "bad", "\">", Escaped(status),
                      "</td>");
}

std::vector<std::string> TargetsOf(const std::map<std::string, Json>& results) {
  std::vector<std::string> targets;
  for (const auto& [path, line] : results) {
    for (const Json& target : line["targets"]) {
      const std::string name = TextAt(target, "target");
      if (std::find(targets.begin(), targets.end(), name) == targets.end()) targets.push_back(name);
    }
  }
  return targets;
}

const Json& TargetOf(const Json& line, const std::string& name) {
  static const Json null;
  for (const Json& target : line["targets"]) {
    if (TextAt(target, "target") == name) return target;
  }
  return null;
}

// What a reason costs on one target.
struct Cost {
  int64_t models = 0, nodes = 0, macs = 0;
  std::set<std::string> paths;
};
using Reasons = std::map<std::pair<std::string, std::string>, Cost>;  // by rule and target

int64_t CountAt(const Json& object, const char* key) {
  const Json& count = AtOrNull(object, key);
  return count.is_number_integer() ? count.get<int64_t>() : 0;
}

Reasons ReasonsOf(const std::map<std::string, Json>& results) {
  Reasons reasons;
  for (const auto& [path, line] : results) {
    for (const Json& target : line["targets"]) {
      for (const Json& reason : AtOrNull(target, "reasons")) {
        Cost& cost = reasons[{TextAt(reason, "rule"), TextAt(target, "target")}];
        cost.nodes += CountAt(reason, "nodes");
        cost.macs += CountAt(reason, "macs");
        if (cost.paths.insert(path).second) ++cost.models;
      }
    }
  }
  return reasons;
}

// Rules are words and dashes; anything else would leave the folder.
std::string FileOfRule(const std::string& rule) {
  std::string name = rule;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return name + ".html";
}

// "M1 (h13)".
std::string TitleOf(const std::string& target) {
  const auto found = FindTarget(target);
  if (!found.ok()) return target;
  const std::string label = TargetLabel(**found);
  return label == target ? label : absl::StrCat(label, " (", target, ")");
}

// The folder that all models are in, with a slash; "" if there is none.
std::string CommonFolder(const std::map<std::string, Json>& results) {
  if (results.empty()) return "";
  // Of sorted texts, the first and the last share what all share.
  const std::string &first = results.begin()->first, &last = results.rbegin()->first;
  const size_t most = std::min(first.size(), last.size());
  size_t shared = 0;
  while (shared < most && first[shared] == last[shared]) ++shared;
  const size_t slash = first.substr(0, shared).rfind('/');
  return slash == std::string::npos ? "" : first.substr(0, slash + 1);
}

std::string HeadRow(const std::vector<std::string>& targets) {
  std::string html = "<thead><tr><th></th><th></th><th></th><th></th>";
  for (const std::string& target : targets) {
    absl::StrAppend(&html, "<th colspan=\"", std::size(kColumns), "\">", Escaped(TitleOf(target)),
                    "</th>");
  }
  absl::StrAppend(&html,
                  "</tr><tr><th data-sort>model</th><th data-sort>status</th>"
                  "<th data-sort>nodes</th><th data-sort>seconds</th>");
  for (size_t i = 0; i < targets.size(); ++i) {
    for (const Column& column : kColumns)
      absl::StrAppend(&html, "<th data-sort>", column.title, "</th>");
  }
  return html + "</tr></thead>\n";
}

std::string ModelRow(const Json& line, const std::string& folder,
                     const std::vector<std::string>& targets) {
  std::string html = absl::StrCat(
      "<tr><td><a href=\"models/", Escaped(TextAt(line, "id")), "/index.html\">",
      Escaped(TextAt(line, "path").substr(folder.size())), "</a></td>", StatusCell(line),
      CountCell(AtOrNull(line, "nodes")), SecondsCell(AtOrNull(line, "seconds")));
  for (const std::string& target : targets) {
    const Json& item = TargetOf(line, target);
    for (const Column& column : kColumns) html += column.cell(item);
  }
  return html + "</tr>\n";
}

std::string IndexPage(const std::map<std::string, Json>& results, const Reasons& reasons) {
  const std::vector<std::string> targets = TargetsOf(results);
  const std::string folder = CommonFolder(results);
  std::map<std::string, int> by_status;
  for (const auto& [path, line] : results) ++by_status[TextAt(line, "status")];
  std::string html =
      absl::StrCat(absl::StrFormat(kHead, "Model zoo"), "<h1>", results.size(), " models");
  for (const auto& [status, count] : by_status)
    absl::StrAppend(&html, ", ", count, " ", Escaped(status));
  absl::StrAppend(&html, "</h1>\n",
                  folder.empty() ? "" : absl::StrCat("<p>in ", Escaped(folder), "</p>\n"),
                  "<p><label>filter <input id=\"search\"></label> <span id=\"shown\">",
                  results.size(), "</span> shown</p>\n<div class=\"wide\"><table id=\"models\">",
                  HeadRow(targets), "<tbody>\n");
  for (const auto& [path, line] : results) html += ModelRow(line, folder, targets);
  absl::StrAppend(
      &html,
      "</tbody></table></div>\n<h2>What keeps nodes off the engine</h2>\n"
      "<div class=\"wide\"><table id=\"reasons\"><thead><tr><th>reason</th><th>target</th>"
      "<th>models</th><th>nodes</th><th>MACs</th></tr></thead><tbody>\n");
  std::vector<const Reasons::value_type*> sorted;
  for (const auto& reason : reasons) sorted.push_back(&reason);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->second.models > b->second.models;
  });
  for (const auto* reason : sorted) {
    const Cost& cost = reason->second;
    absl::StrAppend(&html, "<tr><td><a href=\"reasons/", FileOfRule(reason->first.first), "\">",
                    Escaped(reason->first.first), "</a></td><td>",
                    Escaped(TitleOf(reason->first.second)), "</td><td>", cost.models, "</td><td>",
                    cost.nodes, "</td><td>", ShortCount(cost.macs), "</td></tr>\n");
  }
  return absl::StrCat(html, "</tbody></table></div>\n", kScript, "</html>\n");
}

std::string ModelPage(const Json& line) {
  const std::string path = TextAt(line, "path");
  std::string html =
      absl::StrCat(absl::StrFormat(kHead, Escaped(path)),
                   "<p><a href=\"../../index.html\">all models</a></p><h1>", Escaped(path),
                   "</h1>\n<p>status: ", Escaped(TextAt(line, "status")));
  const std::string error = TextAt(line, "error");
  if (!error.empty()) absl::StrAppend(&html, ": ", Escaped(error));
  absl::StrAppend(&html, "</p><p>sha256: ", Escaped(TextAt(line, "sha256")),
                  "</p>\n<div class=\"wide\"><table><thead><tr><th>target</th>");
  for (const Column& column : kColumns) absl::StrAppend(&html, "<th>", column.title, "</th>");
  absl::StrAppend(&html, "</tr></thead><tbody>\n");
  for (const Json& target : line["targets"]) {
    absl::StrAppend(&html, "<tr><td>", Escaped(TitleOf(TextAt(target, "target"))), "</td>");
    for (const Column& column : kColumns) html += column.cell(target);
    absl::StrAppend(&html, "</tr>\n");
  }
  absl::StrAppend(
      &html,
      "</tbody></table></div>\n<h2>What keeps nodes off the engine</h2><div class=\"wide\">"
      "<table><thead><tr><th>reason</th><th>target</th><th>nodes</th><th>MACs</th></tr></thead>"
      "<tbody>\n");
  for (const Json& target : line["targets"]) {
    for (const Json& reason : AtOrNull(target, "reasons")) {
      const std::string rule = TextAt(reason, "rule");
      absl::StrAppend(&html, "<tr><td><a href=\"../../reasons/", FileOfRule(rule), "\">",
                      Escaped(rule), "</a></td><td>", Escaped(TitleOf(TextAt(target, "target"))),
                      "</td>", CountCell(AtOrNull(reason, "nodes")), "<td>",
                      ShortCount(CountAt(reason, "macs")), "</td></tr>\n");
    }
  }
  return html + "</tbody></table></div></html>\n";
}

std::string ReasonPage(const std::string& rule, const Reasons& reasons,
                       const std::map<std::string, Json>& results) {
  std::string html =
      absl::StrCat(absl::StrFormat(kHead, Escaped(rule)),
                   "<p><a href=\"../index.html\">all models</a></p><h1>", Escaped(rule),
                   "</h1>\n<p><code>anemone units</code> lists the rules with their sources.</p>\n"
                   "<div class=\"wide\"><table><thead><tr><th>model</th><th>target</th>"
                   "<th>nodes</th><th>MACs</th></tr></thead><tbody>\n");
  for (const auto& [key, cost] : reasons) {
    if (key.first != rule) continue;
    for (const std::string& path : cost.paths) {
      const Json& line = results.at(path);
      for (const Json& reason : AtOrNull(TargetOf(line, key.second), "reasons")) {
        if (TextAt(reason, "rule") != rule) continue;
        absl::StrAppend(&html, "<tr><td><a href=\"../models/", Escaped(TextAt(line, "id")),
                        "/index.html\">", Escaped(path), "</a></td><td>",
                        Escaped(TitleOf(key.second)), "</td>", CountCell(AtOrNull(reason, "nodes")),
                        "<td>", ShortCount(CountAt(reason, "macs")), "</td></tr>\n");
      }
    }
  }
  return html + "</tbody></table></div></html>\n";
}

absl::Status WritePage(const std::string& path, const std::string& html) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  ANEMONE_ASSIGN_OR_RETURN(const auto file, NewFile::Make(path));
  ANEMONE_RETURN_IF_ERROR(file->Write(html));
  return file->PutIntoPlace();
}

}  // namespace

absl::Status WriteSite(const std::string& folder, const std::map<std::string, Json>& results) {
  const Reasons reasons = ReasonsOf(results);
  for (const auto& [path, line] : results) {
    ANEMONE_RETURN_IF_ERROR(WritePage(
        absl::StrCat(folder, "/models/", TextAt(line, "id"), "/index.html"), ModelPage(line)));
  }
  std::set<std::string> rules;
  for (const auto& [key, cost] : reasons) rules.insert(key.first);
  for (const std::string& rule : rules) {
    ANEMONE_RETURN_IF_ERROR(WritePage(absl::StrCat(folder, "/reasons/", FileOfRule(rule)),
                                      ReasonPage(rule, reasons, results)));
  }
  return WritePage(absl::StrCat(folder, "/index.html"), IndexPage(results, reasons));
}

}  // namespace anemone
