// tools/zoo/site.h: the pages of a zoo: a sortable table, a page for each model, and a page for
// each reason that keeps nodes off the engine. They need no server and request nothing.
#ifndef ANEMONE_TOOLS_ZOO_SITE_H_
#define ANEMONE_TOOLS_ZOO_SITE_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "engine/formats/json.h"

namespace anemone {

// Writes `folder`/index.html, models/ID/index.html and reasons/RULE.html for these results, by
// path.
absl::Status WriteSite(const std::string& folder, const std::map<std::string, Json>& results);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_ZOO_SITE_H_
