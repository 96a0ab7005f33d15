#include "tools/train/training_page.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/zoo/html.h"

namespace anemone {
namespace {

constexpr double kWidth = 720, kHeight = 300, kLeft = 64, kBottom = 36, kTop = 12, kRight = 12;
constexpr size_t kMostPoints = 600;  // of a line; more are averaged

constexpr char kStyle[] =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:760px;padding:0 1rem}"
    "svg{width:100%;height:auto}text{font-size:12px;fill:currentColor}"
    ".axis{stroke:currentColor;stroke-opacity:.3}.each{stroke:#8ab;stroke-opacity:.6}"
    ".mean{stroke:#06c;stroke-width:2}.each,.mean{fill:none}"
    "td,th{text-align:left;padding:.15rem 1rem .15rem 0;vertical-align:top}";

// Means of neighbors, at most kMostPoints; losses that are not finite are left out.
std::vector<Metric> Thinned(const std::vector<Metric>& metrics) {
  const size_t group = std::max<size_t>(1, (metrics.size() + kMostPoints - 1) / kMostPoints);
  std::vector<Metric> thinned;
  for (size_t at = 0; at < metrics.size(); at += group) {
    Metric mean;
    int count = 0;
    for (size_t i = at; i < std::min(at + group, metrics.size()); ++i) {
      if (!std::isfinite(metrics[i].loss)) continue;
      mean.step = metrics[i].step;
      mean.loss += metrics[i].loss;
      ++count;
    }
    if (count == 0) continue;
    mean.loss /= count;
    thinned.push_back(mean);
  }
  return thinned;
}

// A moving mean, so that noise does not hide the trend.
std::vector<Metric> Smoothed(std::vector<Metric> metrics) {
  double mean = 0;
  for (size_t i = 0; i < metrics.size(); ++i) {
    const double share = std::max(0.05, 1 / static_cast<double>(i + 1));
    mean += share * (metrics[i].loss - mean);
    metrics[i].loss = mean;
  }
  return metrics;
}

struct Scale {
  double first, last, low, high;
  double X(double step) const {
    return kLeft + (kWidth - kLeft - kRight) * (step - first) / std::max(last - first, 1.0);
  }
  double Y(double loss) const {
    const double range = std::max(high - low, 1e-12);
    return kHeight - kBottom - (kHeight - kBottom - kTop) * (loss - low) / range;
  }
};

std::string Line(const std::vector<Metric>& metrics, const Scale& scale, const char* name) {
  std::string points;
  for (const Metric& metric : metrics) {
    absl::StrAppendFormat(&points, "%.1f,%.1f ", scale.X(static_cast<double>(metric.step)),
                          scale.Y(metric.loss));
  }
  return absl::StrCat("<polyline class=\"", name, "\" points=\"", points, "\"/>");
}

std::string Plot(const std::vector<Metric>& metrics) {
  const std::vector<Metric> shown = Thinned(metrics);
  if (shown.empty()) return "<p>No step had a finite loss.</p>";
  Scale scale = {static_cast<double>(shown.front().step), static_cast<double>(shown.back().step),
                 shown.front().loss, shown.front().loss};
  for (const Metric& metric : shown) {
    scale.low = std::min(scale.low, metric.loss);
    scale.high = std::max(scale.high, metric.loss);
  }
  std::string svg = absl::StrFormat(
      "<svg viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"Loss by step\" id=\"loss\">", kWidth,
      kHeight);
  for (int i = 0; i <= 4; ++i) {
    const double loss = scale.low + (scale.high - scale.low) * i / 4;
    absl::StrAppendFormat(&svg,
                          "<line class=\"axis\" x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\"/>"
                          "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>",
                          kLeft, kWidth - kRight, scale.Y(loss), scale.Y(loss), kLeft - 6,
                          scale.Y(loss) + 4, loss);
    const double step = scale.first + (scale.last - scale.first) * i / 4;
    absl::StrAppendFormat(&svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%.0f</text>",
                          scale.X(step), kHeight - kBottom + 18, step);
  }
  return absl::StrCat(svg, Line(shown, scale, "each"), Line(Smoothed(shown), scale, "mean"),
                      "</svg><p>The loss of each step, and its moving mean.</p>");
}

}  // namespace

std::string TrainingPage(const std::string& title, const std::vector<Metric>& metrics,
                         const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string page = PageHead(title, kStyle);
  absl::StrAppend(&page, "<h1>", NameHtml(title), "</h1>", Plot(metrics), "<table>");
  for (const auto& [name, value] : facts) {
    absl::StrAppend(&page, "<tr><th>", Escaped(name), "</th><td>", Escaped(value), "</td></tr>");
  }
  return absl::StrCat(page, "</table></html>\n");
}

}  // namespace anemone
