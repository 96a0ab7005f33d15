// provider/report/page_parts.h: the page without its data, made by cmake/embed_page.py.
#ifndef ANEMONE_PROVIDER_REPORT_PAGE_PARTS_H_
#define ANEMONE_PROVIDER_REPORT_PAGE_PARTS_H_

#include "absl/strings/string_view.h"

namespace anemone {

extern const absl::string_view kReportPageHead;  // before the data
extern const absl::string_view kReportPageTail;  // after them

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_REPORT_PAGE_PARTS_H_
