// provider/temporaries.h: temporary files and folders next to the ones that they will replace.
//
// Their names are random, and end in ".anemone-", 16 digits and ".tmp". As long as its writer
// lives, each is locked. One that is not locked may be removed: its writer is dead.
#ifndef ANEMONE_PROVIDER_TEMPORARIES_H_
#define ANEMONE_PROVIDER_TEMPORARIES_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace anemone {

class Temporary {
 public:
  enum class Kind { kFile, kFolder };
  // Creates one next to `path`, and removes those in the same folder that a dead writer left more
  // than an hour ago. The error is the system's, without a place.
  static absl::StatusOr<std::unique_ptr<Temporary>> Make(const std::string& path, Kind kind);
  // Removes it, unless it has been renamed.
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string& path() const { return path_; }
  int file() const { return file_; }  // open for writing if it is a file

  // `flush`: the new content is on the disk when this returns. Without it, the system may crash
  // soon after and leave a file with other content. Sets errno and returns false if it fails.
  bool RenameTo(const std::string& path, bool flush = true);
  // Of a folder: takes the name of the folder `path`, which gets this one's and is removed with it,
  // in one step. Sets errno and returns false if it fails.
  bool ExchangeWith(const std::string& path);

 private:
  Temporary(std::string path, int file) : path_(std::move(path)), file_(file) {}
  void Leave();  // from now on it is not removed

  std::string path_;  // empty when left
  int file_;
};

// Whether a file or folder has a name as Temporary gives them.
bool IsTemporaryName(absl::string_view name);

// From now on, the signals that can end a process (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, those
// of timers, of limits and of users) remove all temporary files and folders of this process before
// they end it; not SIGKILL, nor those of a fault, such as SIGSEGV. For programs only: a library
// must not change what signals do.
void RemoveTemporariesOnSignals();

// Removes all temporary files and folders of this process, which is about to end. Allocates nothing
// by operator new, so that a std::new_handler may call it.
void RemoveTemporaries();

// Removes `path` if it is a regular file that a dead writer left.
void RemoveIfLeft(const std::string& path);

}  // namespace anemone

#endif  // ANEMONE_PROVIDER_TEMPORARIES_H_
