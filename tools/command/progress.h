// tools/command/progress.h: prints the current step to stderr if it takes longer than a second.
//
//   Progress progress(options.quiet);
//   progress.Step("compiling net.onnx");     // after 1 s: "anemone: compiling net.onnx ... 1 s"
//
// On a terminal the line is erased before anything else is shown: stdout is buffered there
// (main.cc), and only Step(), EraseShown() and the end of the Progress let its text through.
#ifndef ANEMONE_TOOLS_COMMAND_PROGRESS_H_
#define ANEMONE_TOOLS_COMMAND_PROGRESS_H_

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace anemone {

class Progress {
 public:
  // `steady`: also prints if several shorter steps have taken two seconds, and again every two
  // seconds.
  explicit Progress(bool quiet, bool steady = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Step(std::string what);

  // Erases the line of the Progress that is shown, if there is one, until its next step. Call it
  // before printing to stderr.
  static void EraseShown();

 private:
  void Watch();
  void Begin(std::string step);

  const bool on_terminal_, steady_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string step_;
  int number_ = 0;      // of the step
  bool drawn_ = false;  // there is a line on the terminal
  bool stop_ = false;
  std::thread watcher_;  // not started when quiet
};

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_PROGRESS_H_
