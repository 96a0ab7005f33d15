// tools/command/commands.h: the functions of the commands, and helpers for their output. A command
// returns its exit code.
#ifndef ANEMONE_TOOLS_COMMAND_COMMANDS_H_
#define ANEMONE_TOOLS_COMMAND_COMMANDS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/command/options.h"

namespace anemone {

int CheckCommand(const Options& options);
int RunCommand(const Options& options);
int ConfirmCommand(const Options& options);
int TargetsCommand(const Options& options);
int UnitsCommand(const Options& options);
int ConvertCommand(const Options& options);
int CompileCommand(const Options& options);
int BenchCommand(const Options& options);
int DoctorCommand(const Options& options);
int CompletionCommand(const Options& options);
int DocsCommand(const Options& options);
int DiffCommand(const Options& options);
int ZooCommand(const Options& options);
int ReportCommand(const Options& options);
int TrainCommand(const Options& options);
int GenerateCommand(const Options& options);
int PatchCommand(const Options& options);
int HelpCommand(const Options& options);

// `compile` without a form of the weights: writes a folder that loads without planning.
int CompileFolder(const Options& options);

// Prints one line to stderr: "anemone: error: WHERE: WHAT; REMEDY". Returns kExitUsage for a
// UsageError(), else kExitRefused.
int Fail(const absl::Status& status);
// The same for wrong usage. Returns kExitUsage.
int FailUsage(absl::string_view message);

// An error about a model, which it names: "net.onnx: WHAT", unless it does so already.
absl::Status OfModel(const absl::Status& status, const std::string& path);
// The same for an error because of the memory limit; others stay as they are.
absl::Status OfLimitedModel(const absl::Status& status, const std::string& path);

// Prints one line to stderr that is not an error: "anemone: TEXT".
void Note(absl::string_view text);

// Prints one document to stdout on one line. Bytes that are not UTF-8 are replaced.
void PrintJson(const Json& json);
void PrintJsonText(const std::string& document);

// Prints text to stdout in lines that fit the terminal; following lines are indented by `indent`.
void PrintWrapped(absl::string_view text, int indent);

// The text of a JSON string, printable; "" for null.
std::string Cell(const Json& value);

// Whether PrintJsonText() was called.
bool DocumentPrinted();

// The last step of every command: returns `code`, or kExitRefused if stdout cannot be written. With
// `json`, an error is also printed as {"schema": 1, "error": ...} unless there was a document.
int FinishOutput(int code, bool json);

// True if stdout is a terminal with colours and NO_COLOR is not set.
bool StdoutHasColour();
// True if the terminal only prints: TERM=dumb.
bool IsDumbTerminal();

}  // namespace anemone

#endif  // ANEMONE_TOOLS_COMMAND_COMMANDS_H_
