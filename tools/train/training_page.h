// tools/train/training_page.h: report.html of a training: one file with the plot of the loss.
#ifndef ANEMONE_TOOLS_TRAIN_TRAINING_PAGE_H_
#define ANEMONE_TOOLS_TRAIN_TRAINING_PAGE_H_

#include <string>
#include <utility>
#include <vector>

#include "tools/train/metrics.h"

namespace anemone {

// `facts`: rows of the table below the plot, as name and value.
std::string TrainingPage(const std::string& title, const std::vector<Metric>& metrics,
                         const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace anemone

#endif  // ANEMONE_TOOLS_TRAIN_TRAINING_PAGE_H_
