// tools/zoo/site.h: the pages of a zoo: what keeps models off each target, a table of the models,
// and a page for each model and each reason. They need no server and request nothing.
#ifndef ANEMONE_TOOLS_ZOO_SITE_H_
#define ANEMONE_TOOLS_ZOO_SITE_H_

#include <string>

#include "absl/status/status.h"
#include "tools/zoo/summary.h"

namespace anemone {

// Writes `folder`/index.html, models/ID/index.html and reasons/RULE.html for these results.
absl::Status WriteSite(const std::string& folder, const ZooLines& lines);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_SITE_H_
