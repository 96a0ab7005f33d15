#include "provider/report/report_page.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "provider/report/page_parts.h"

namespace anemone {

std::string ReportPage(const SizedPlans& plans) {
  // In JSON both occur in strings only: markup cannot end the script, and no address is in the
  // page.
  const std::string data =
      absl::StrReplaceAll(JsonText(ReportData(plans)), {{"<", "\\u003c"}, {"//", "\\/\\/"}});
  return absl::StrCat(kReportPageHead, data, kReportPageTail);
}

}  // namespace anemone
