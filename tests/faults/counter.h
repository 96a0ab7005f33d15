// tests/faults/counter.h: counts the calls of a command that can fail, and says which one is to
// fail.
//
// The driver (tests/faults/faults_test.py) maps a file of 256 bytes into every process that the
// command starts. It sets these variables of the environment:
// - FAULT_FILE: the file; the calls of all processes are counted in it.
// - FAULT_CALLS: which calls count, a comma-separated list of names such as new,write. Calls of
//   malloc() and the like by operator new are `new`, others are `memory`.
// - FAULT_AT: the call that fails, from 1; 0: none, the calls are only counted.
// - FAULT_ACTION: fail (default), every (that call and all later ones), short (half of a read or
//   write), interrupt (EINTR), kill (SIGKILL, after half of a write).
// - FAULT_ERRNO: the error of a failed call, in place of its usual one.
// - FAULT_PLACES: a file; each call with a new call stack adds the line "NUMBER PLACE" to it.
// - FAULT_TRACE: if it is set, the call stack of the call that fails is printed to stderr.
#ifndef ANEMONE_TESTS_FAULTS_COUNTER_H_
#define ANEMONE_TESTS_FAULTS_COUNTER_H_

namespace faults {

enum class Action { kNone, kFail, kShort, kInterrupt, kKill };

// What is to happen to this call. `kind` is its name in FAULT_CALLS, `function` is for people.
Action Next(const char* kind, const char* function);

// FAULT_ERRNO, or `usual`.
int ErrorOr(int usual);

// Ends the process as `kill -9` does.
[[noreturn]] void Kill();

// From the first statement of main() to its last one.
void SetRunning(bool is_running);

}  // namespace faults

#endif  // ANEMONE_TESTS_FAULTS_COUNTER_H_
