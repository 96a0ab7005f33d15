#include "tools/zoo/site.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/mapped_file.h"
#include "base/status_macros.h"
#include "engine/cost.h"
#include "engine/formats/json_keys.h"
#include "partitioner/plan_text.h"
#include "provider/new_file.h"
#include "tools/zoo/html.h"
#include "tools/zoo/page_files.h"

namespace anemone {
namespace {

namespace fs = std::filesystem;

// Rules are words and dashes; anything else would leave the folder.
std::string FileOfRule(const std::string& rule) {
  std::string name = rule;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  }
  return name + ".html";
}

std::string RuleLink(const std::string& rule, absl::string_view folder) {
  return absl::StrCat("<a class=\"rule\" href=\"", folder, FileOfRule(rule), "\">", Escaped(rule),
                      "</a>");
}

// A column of the tables about a model on a target.
struct Column {
  const char* title;
  const char* about;
  bool minor;                                // is left out on a narrow page
  const Json& (*value)(const Json& target);  // is null if it was not asked for
  std::string (*text)(double value);
};
template <const char* kKey>
const Json& OfPlan(const Json& target) {
  return AtOrNull(AtOrNull(target, "summary"), kKey);
}
template <const char* kKey>
const Json& OfTarget(const Json& target) {
  return AtOrNull(target, kKey);
}
std::string Whole(double count) { return absl::StrFormat("%.0f", count); }

constexpr char kShare[] = "engine_macs_share", kCpuNodes[] = "cpu_nodes",
               kSegments[] = "engine_segments", kEstimate[] = "estimate_us",
               kCompile[] = "compile_ms", kCosine[] = "cosine";
constexpr Column kColumns[] = {
    {"MACs", "the share of multiply-accumulates on the engine", false, OfPlan<kShare>,
     [](double share) { return BarAndText(share, PercentText(share)); }},
    {"CPU nodes", "nodes that stay on the CPU", false, OfPlan<kCpuNodes>, Whole},
    {"segments", "parts that run on the engine", true, OfPlan<kSegments>, Whole},
    {"estimate", "the estimated time on the chip", true, OfTarget<kEstimate>, TimeText},
    {"compile", "the time to compile the engine segments on the machine of the zoo", true,
     OfTarget<kCompile>, [](double ms) { return TimeText(ms * 1000); }},
    {"cosine", "the worst output against ONNX Runtime", true, OfTarget<kCosine>,
     [](double cosine) { return absl::StrFormat("%.6f", cosine); }}};

// The columns for which a result has a value.
std::vector<const Column*> ColumnsOf(const ZooLines& lines) {
  std::vector<const Column*> columns;
  for (const Column& column : kColumns) {
    const bool is_used = std::any_of(lines.begin(), lines.end(), [&](const auto& line) {
      const Json& targets = line.second["targets"];
      return std::any_of(targets.begin(), targets.end(),
                         [&](const Json& target) { return !column.value(target).is_null(); });
    });
    if (is_used) columns.push_back(&column);
  }
  return columns;
}

std::string ColumnCell(const Column& column, const Json& target, absl::string_view classes) {
  const Json& value = column.value(target);
  return NumberCell(value, value.is_number() ? column.text(value.get<double>()) : "",
                    absl::StrCat(classes, column.minor ? " minor" : ""));
}

std::string StatusHtml(const Json& line) {
  const std::string status = TextAt(line, "status");
  return absl::StrCat("<span class=\"", status == "ok" ? "ok" : "bad", "\" title=\"",
                      Escaped(TextAt(line, "error")), "\">", Escaped(status), "</span>");
}

// `skipped`: so many characters of the path are left out.
std::string ModelLink(const Json& line, absl::string_view folder, size_t skipped = 0) {
  return absl::StrCat("<a href=\"", folder, TextAt(line, "id"), "/index.html\">",
                      NameHtml(TextAt(line, "path").substr(skipped)), "</a>");
}

// The folder that all models are in, with a slash; "" if there is none.
std::string CommonFolder(const ZooLines& lines) {
  if (lines.empty()) return "";
  // Of sorted texts, the first and the last share what all share.
  const std::string &first = lines.begin()->first, &last = lines.rbegin()->first;
  const size_t most = std::min(first.size(), last.size());
  size_t shared = 0;
  while (shared < most && first[shared] == last[shared]) ++shared;
  const size_t slash = first.substr(0, shared).rfind('/');
  const bool is_root = slash == 0;  // which says nothing
  return slash == std::string::npos || is_root ? "" : first.substr(0, slash + 1);
}

// "Softmax keeps nodes of the most models off it (12), Conv the most MACs (3.1 G)."
std::string LeadOf(const TargetSummary& summary) {
  std::string lead;
  if (summary.macs > 0) {
    lead = absl::StrCat(
        PercentText(static_cast<double>(summary.engine_macs) / static_cast<double>(summary.macs)),
        " of all MACs run on the engine. ");
  }
  if (summary.reasons.empty()) return absl::StrCat(lead, "Nothing keeps nodes off it.");
  const ReasonSummary& models = summary.reasons.front();
  const ReasonSummary* macs = summary.MostMacs();
  absl::StrAppend(&lead, RuleLink(models.rule, "reasons/"), " keeps nodes of the most models (",
                  models.models.size(), ")");
  if (macs == &models) {
    absl::StrAppend(&lead, " and the most MACs (", ShortCount(macs->macs), ")");
  }
  absl::StrAppend(&lead, " off it");
  if (macs != nullptr && macs != &models) {
    absl::StrAppend(&lead, ", and ", RuleLink(macs->rule, "reasons/"), " the most MACs (",
                    ShortCount(macs->macs), ")");
  }
  return lead + ".";
}

// The first names, and how many more there are.
std::string OperatorsText(const std::set<std::string>& operators) {
  constexpr size_t kMost = 8;
  std::vector<std::string> names(operators.begin(), operators.end());
  const size_t more = names.size() > kMost ? names.size() - kMost : 0;
  names.resize(names.size() - more);
  return absl::StrCat(Escaped(absl::StrJoin(names, ", ")),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

std::string ReasonsTable(const TargetSummary& summary) {
  std::string html =
      "<div class=\"wide\"><table><thead><tr><th>reason</th><th>models</th><th>nodes</th>"
      "<th title=\"multiply-accumulates that stay on the CPU for it\">MACs</th>"
      "<th class=\"text minor\">operators</th><th class=\"text minor\">words</th></tr></thead>"
      "<tbody>\n";
  for (const ReasonSummary& reason : summary.reasons) {
    const double models = static_cast<double>(reason.models.size()) / summary.planned;
    const double macs = static_cast<double>(reason.macs) /
                        static_cast<double>(std::max<int64_t>(1, summary.cpu_macs()));
    absl::StrAppend(&html, "<tr><td>", RuleLink(reason.rule, "reasons/"), "</td><td>",
                    BarAndText(models, absl::StrCat(reason.models.size()), "cpu"), "</td><td>",
                    reason.nodes, "</td><td>", BarAndText(macs, ShortCount(reason.macs), "cpu"),
                    "</td><td class=\"text words minor\">", OperatorsText(reason.operators),
                    "</td><td class=\"text words minor\">", Escaped(reason.message),
                    "</td></tr>\n");
  }
  return html + "</tbody></table></div>\n";
}

std::string TargetSection(const TargetSummary& summary, size_t index) {
  const std::string title = Escaped(summary.title);
  std::string html =
      absl::StrCat("<section class=\"target target-", index, "\"><h1>", title, " runs ",
                   summary.whole, " of ", Counted(summary.planned, "model"),
                   " whole</h1>\n<p class=\"lead\">", LeadOf(summary), "</p>\n");
  if (summary.without_macs > 0) {
    absl::StrAppend(&html, "<p class=\"quiet\">The MACs of ",
                    Counted(summary.without_macs, "model"),
                    " are not known: their dimensions are free.</p>\n");
  }
  if (summary.reasons.empty()) return html + "</section>\n";
  return absl::StrCat(html, "<h2>What keeps nodes off ", title, "</h2>\n", ReasonsTable(summary),
                      "</section>\n");
}

// The models that are not ok, with their errors.
std::string FailuresTable(const ZooLines& lines, const std::string& folder) {
  std::string rows;
  for (const auto& [path, line] : lines) {
    if (TextAt(line, "status") == "ok") continue;
    absl::StrAppend(&rows, "<tr><td>", ModelLink(line, "models/", folder.size()),
                    "</td><td class=\"text\">", StatusHtml(line), "</td><td class=\"text words\">",
                    Escaped(TextAt(line, "error")), "</td></tr>\n");
  }
  if (rows.empty()) return "";
  return absl::StrCat(
      "<h2>Models that failed</h2>\n<div class=\"wide\"><table id=\"failures\"><thead><tr>"
      "<th>model</th><th class=\"text\">status</th><th "
      "class=\"text\">error</th></tr></thead><tbody>\n",
      rows, "</tbody></table></div>\n");
}

std::string StatusText(const ZooLines& lines) {
  std::map<std::string, int> by_status;
  for (const auto& [path, line] : lines) ++by_status[TextAt(line, "status")];
  std::string text = Counted(static_cast<int64_t>(lines.size()), "model");
  for (const auto& [status, count] : by_status) {
    absl::StrAppend(&text, ", ", count, " ", Escaped(status));
  }
  return text;
}

std::string HeadRows(const std::vector<TargetSummary>& summaries,
                     const std::vector<const Column*>& columns) {
  std::string html =
      "<thead><tr><th></th><th></th><th class=\"minor\"></th><th class=\"minor\"></th>";
  for (size_t i = 0; i < summaries.size(); ++i) {
    absl::StrAppend(&html, "<th class=\"target target-", i, "\" colspan=\"", columns.size(), "\">",
                    Escaped(summaries[i].title), "</th>");
  }
  absl::StrAppend(&html,
                  "</tr>\n<tr><th class=\"sorts\">model</th><th class=\"sorts text\">status</th>"
                  "<th class=\"sorts minor\">nodes</th>"
                  "<th class=\"sorts minor\" title=\"the time that the zoo took\">seconds</th>");
  for (size_t i = 0; i < summaries.size(); ++i) {
    for (const Column* column : columns) {
      absl::StrAppend(&html, "<th class=\"sorts target target-", i, column->minor ? " minor" : "",
                      "\" title=\"", column->about, "\">", column->title, "</th>");
    }
  }
  return html + "</tr></thead>\n";
}

std::string ModelRow(const Json& line, const std::string& folder,
                     const std::vector<TargetSummary>& summaries,
                     const std::vector<const Column*>& columns) {
  std::set<std::string> words = {TextAt(line, "status")};
  for (const Json& target : line["targets"]) {
    for (const Json& reason : AtOrNull(target, "reasons")) words.insert(TextAt(reason, "rule"));
  }
  const Json &nodes = AtOrNull(line, "nodes"), &seconds = AtOrNull(line, "seconds");
  std::string html = absl::StrCat(
      "<tr data-words=\"", Escaped(absl::StrJoin(words, " ")), "\"><td>",
      ModelLink(line, "models/", folder.size()), "</td><td class=\"text\">", StatusHtml(line),
      "</td>", NumberCell(nodes, nodes.is_number() ? Whole(nodes.get<double>()) : "", "minor"),
      NumberCell(seconds, seconds.is_number() ? absl::StrFormat("%.1f", seconds.get<double>()) : "",
                 "minor"));
  for (size_t i = 0; i < summaries.size(); ++i) {
    const Json& target = TargetOf(line, summaries[i].name);
    for (const Column* column : columns) {
      html += ColumnCell(*column, target, absl::StrCat("target target-", i));
    }
  }
  return html + "</tr>\n";
}

// A button for each target, and one for all of them, if they fit beside each other.
std::string Buttons(const std::vector<TargetSummary>& summaries) {
  constexpr size_t kMostTogether = 4;
  if (summaries.size() < 2) return "";
  std::string html = "<nav id=\"targets\">";
  for (size_t i = 0; i < summaries.size(); ++i) {
    absl::StrAppend(&html, "<button value=\"", i, "\">", Escaped(summaries[i].title), "</button>");
  }
  if (summaries.size() <= kMostTogether) html += "<button value=\"\">all</button>";
  return html + "</nav>\n";
}

std::string IndexPage(const ZooLines& lines, const std::vector<TargetSummary>& summaries) {
  const std::string folder = CommonFolder(lines);
  const std::vector<const Column*> columns = ColumnsOf(lines);
  std::string html = absl::StrCat(PageHead("Model zoo", kZooStyle), Buttons(summaries));
  if (summaries.empty()) html += "<h1>No model has a plan</h1>\n";
  for (size_t i = 0; i < summaries.size(); ++i) html += TargetSection(summaries[i], i);
  html += FailuresTable(lines, folder);
  absl::StrAppend(&html, "<h2>", StatusText(lines), "</h2>\n<p><label>filter <input id=\"search\" ",
                  "placeholder=\"words of a name, a status or a reason\"></label> ",
                  "<span class=\"quiet\"><span id=\"shown\">", lines.size(), "</span> shown",
                  folder.empty() ? "" : absl::StrCat(", in ", NameHtml(folder)),
                  "</span></p>\n<div class=\"wide\"><table id=\"models\">",
                  HeadRows(summaries, columns), "<tbody>\n");
  for (const auto& [path, line] : lines) html += ModelRow(line, folder, summaries, columns);
  return absl::StrCat(html, "</tbody></table></div>\n<script>\n", kZooScript, "</script></html>\n");
}

// A word of a shell's command line.
std::string ShellWord(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", R"('\'')"}}), "'");
}

std::string ModelPage(const Json& line, const std::vector<TargetSummary>& summaries,
                      const std::vector<const Column*>& columns) {
  const std::string path = TextAt(line, "path"), error = TextAt(line, "error");
  std::string html = absl::StrCat(
      PageHead(path, kZooStyle), "<p><a href=\"../../index.html\">all models</a></p>\n<h1>",
      NameHtml(fs::path(path).filename().string()), "</h1>\n<p class=\"quiet\">", NameHtml(path),
      "</p>\n<p class=\"lead\">", StatusHtml(line),
      error.empty() ? "" : absl::StrCat(": ", Escaped(error)), "</p>\n");
  std::vector<std::string> names;
  if (!line["targets"].empty()) {
    html += "<div class=\"wide\"><table><thead><tr><th>target</th>";
    for (const Column* column : columns) {
      absl::StrAppend(&html, "<th title=\"", column->about, "\">", column->title, "</th>");
    }
    html += "</tr></thead><tbody>\n";
  }
  for (const TargetSummary& summary : summaries) {
    const Json& target = TargetOf(line, summary.name);
    if (target.is_null()) continue;
    names.push_back(summary.name);
    absl::StrAppend(&html, "<tr><td>", Escaped(summary.title), "</td>");
    for (const Column* column : columns) {
      // All columns: the page is for one model.
      const Json& value = column->value(target);
      html += NumberCell(value, value.is_number() ? column->text(value.get<double>()) : "");
    }
    html += "</tr>\n";
  }
  if (!line["targets"].empty()) html += "</tbody></table></div>\n";
  for (const TargetSummary& summary : summaries) {
    const Json& reasons = AtOrNull(TargetOf(line, summary.name), "reasons");
    if (reasons.empty()) continue;
    absl::StrAppend(&html, "<h2>What keeps nodes off ", Escaped(summary.title),
                    "</h2>\n<div class=\"wide\"><table><thead><tr><th>reason</th><th>nodes</th>"
                    "<th>MACs</th><th class=\"text minor\">operators</th>"
                    "<th class=\"text\">words</th></tr></thead><tbody>\n");
    for (const Json& reason : reasons) {
      std::vector<std::string> operators;
      for (const Json& name : AtOrNull(reason, "operators")) {
        if (name.is_string()) operators.push_back(name.get<std::string>());
      }
      absl::StrAppend(&html, "<tr><td>", RuleLink(TextAt(reason, "rule"), "../../reasons/"),
                      "</td><td>", CountAt(reason, "nodes"), "</td><td>",
                      ShortCount(CountAt(reason, "macs")), "</td><td class=\"text words minor\">",
                      Escaped(absl::StrJoin(operators, ", ")), "</td><td class=\"text words\">",
                      Escaped(TextAt(reason, "message")), "</td></tr>\n");
    }
    html += "</tbody></table></div>\n";
  }
  if (!names.empty()) {
    absl::StrAppend(&html, "<h2>All nodes</h2>\n<pre>anemone check -v ", Escaped(ShellWord(path)),
                    " --target ", Escaped(absl::StrJoin(names, ",")), "</pre>\n");
  }
  return absl::StrCat(html, "<p class=\"quiet\">SHA-256 ", Escaped(TextAt(line, "sha256")),
                      "</p></html>\n");
}

std::string ReasonPage(const std::string& rule, const std::vector<TargetSummary>& summaries) {
  std::string html =
      absl::StrCat(PageHead(rule, kZooStyle), "<p><a href=\"../index.html\">all models</a></p><h1>",
                   Escaped(rule), "</h1>\n");
  bool has_words = false;
  for (const TargetSummary& summary : summaries) {
    const auto reason = std::find_if(summary.reasons.begin(), summary.reasons.end(),
                                     [&](const ReasonSummary& r) { return r.rule == rule; });
    if (reason == summary.reasons.end()) continue;
    if (!has_words) {
      absl::StrAppend(
          &html, "<p class=\"lead\">", Escaped(reason->layer), reason->layer.empty() ? "" : ": ",
          Escaped(reason->message), "</p>\n",
          reason->remedy.empty() ? "" : absl::StrCat("<p>", Escaped(reason->remedy), "</p>\n"),
          "<p class=\"quiet\">Operators: ", Escaped(absl::StrJoin(reason->operators, ", ")),
          "</p>\n");
      has_words = true;
    }
    absl::StrAppend(&html, "<h2>", Escaped(summary.title), ": ",
                    Counted(static_cast<int64_t>(reason->models.size()), "model"), ", ",
                    Counted(reason->nodes, "node"), ", ", ShortCount(reason->macs),
                    " MACs</h2>\n<div class=\"wide\"><table><thead><tr><th>model</th><th>nodes</th>"
                    "<th>MACs</th></tr></thead><tbody>\n");
    for (const ReasonSummary::OfModel& model : reason->models) {
      absl::StrAppend(&html, "<tr><td>", ModelLink(*model.line, "../models/"), "</td><td>",
                      model.nodes, "</td><td>", ShortCount(model.macs), "</td></tr>\n");
    }
    html += "</tbody></table></div>\n";
  }
  return html + "</html>\n";
}

absl::Status WritePage(const std::string& path, const std::string& html) {
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  fs::create_directories(folder, error);
  if (error) return NotWritten(folder.string());
  ANEMONE_ASSIGN_OR_RETURN(const auto file, NewFile::Make(path));
  ANEMONE_RETURN_IF_ERROR(file->Write(html));
  return file->PutIntoPlace(/*flush=*/false);
}

}  // namespace

absl::Status WriteSite(const std::string& folder, const ZooLines& lines) {
  const std::vector<TargetSummary> summaries = SummariesOf(lines);
  const std::vector<const Column*> columns = ColumnsOf(lines);
  for (const auto& [path, line] : lines) {
    ANEMONE_RETURN_IF_ERROR(
        WritePage(absl::StrCat(folder, "/models/", TextAt(line, "id"), "/index.html"),
                  ModelPage(line, summaries, columns)));
  }
  std::set<std::string> rules;
  for (const TargetSummary& summary : summaries) {
    for (const ReasonSummary& reason : summary.reasons) rules.insert(reason.rule);
  }
  for (const std::string& rule : rules) {
    ANEMONE_RETURN_IF_ERROR(WritePage(absl::StrCat(folder, "/reasons/", FileOfRule(rule)),
                                      ReasonPage(rule, summaries)));
  }
  return WritePage(absl::StrCat(folder, "/index.html"), IndexPage(lines, summaries));
}

}  // namespace anemone
