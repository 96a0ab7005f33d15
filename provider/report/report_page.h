// provider/report/report_page.h: the page of `anemone report`: one self-contained HTML file.
//
//   const std::string html = ReportPage(plans);
//
// The page is page/page.html with the scripts and styles of page/ and the data of ReportData() in
// it (cmake/embed_page.py). Texts of the model are data: they are JSON in which `<` and `//` are
// escaped, and the scripts put them into the page as text.
#ifndef ANEMONE_PROVIDER_REPORT_REPORT_PAGE_H_
#define ANEMONE_PROVIDER_REPORT_REPORT_PAGE_H_

#include <string>

#include "provider/buckets/sized_plans.h"

namespace anemone {

std::string ReportPage(const SizedPlans& plans);

// The JSON that the page shows. Lists that are as long as `nodes.id` have an item for each node; a
// text that many nodes have is a number, its place in `texts`. page/plan.js reads it.
Json ReportData(const SizedPlans& plans);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_REPORT_REPORT_PAGE_H_
