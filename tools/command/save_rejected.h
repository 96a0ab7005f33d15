// tools/command/save_rejected.h: `anemone check --save-rejected`.
#ifndef ANEMONE_TOOLS_COMMAND_SAVE_REJECTED_H_
#define ANEMONE_TOOLS_COMMAND_SAVE_REJECTED_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "anemone/check.h"
#include "tools/command/options.h"

namespace anemone {

class RejectedFolders {
 public:
  explicit RejectedFolders(const Options& options) : options_(options) {}

  // With several models, the folder that holds theirs must not exist, or be empty.
  absl::Status Check() const;
  // Does nothing without the option.
  absl::Status Save(const CheckReport& report, const std::string& model);

 private:
  const Options& options_;
  std::set<std::string> names_;  // of the models' folders
};

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_SAVE_REJECTED_H_
