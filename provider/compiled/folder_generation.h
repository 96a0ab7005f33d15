// provider/compiled/folder_generation.h: the folder that has a name now. Another process may put
// another in its place while it is read.
//
//   const FolderGeneration now("net.ane");
//   // Read the folder.
//   if (now.IsReplaced()) return absl::AbortedError("what was read may be of two folders");
#ifndef ANEMONE_PROVIDER_COMPILED_FOLDER_GENERATION_H_
#define ANEMONE_PROVIDER_COMPILED_FOLDER_GENERATION_H_

#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/file_identity.h"

namespace anemone {

class FolderGeneration {
 public:
  explicit FolderGeneration(const std::string& path);
  ~FolderGeneration();
  FolderGeneration(const FolderGeneration&) = delete;
  FolderGeneration& operator=(const FolderGeneration&) = delete;

  bool IsReplaced() const;

  // Calls `replace`, which puts another folder in the place of this one, unless another process
  // did so, or does so for seconds: kAborted. Of two processes only one is here at a time.
  absl::Status Replace(absl::FunctionRef<absl::Status()> replace) const;

 private:
  const std::string path_;
  const int file_;  // -1: there is none
  const std::optional<FileIdentity> first_;
};

// What `work` returns for the folder as it is at its call. An error may be of two folders: if
// another has taken the place meanwhile, `work` is called again, up to 20 times in all.
template <class Work>
auto OfOneGeneration(const std::string& folder, const Work& work) {
  constexpr int kTries = 20;
  for (int i = 1;; ++i) {
    const FolderGeneration now(folder);
    auto made = work(now);
    if (made.ok() || i == kTries || !now.IsReplaced()) return made;
  }
}

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_COMPILED_FOLDER_GENERATION_H_
