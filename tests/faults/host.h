// tests/faults/host.h: what the programs that use the library and the plugin have in common.
#ifndef ANEMONE_TESTS_FAULTS_HOST_H_
#define ANEMONE_TESTS_FAULTS_HOST_H_

#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

namespace faults {

// The last `bytes` bytes of a file: the elements of an .npy file. Shorter if it cannot be read.
inline std::string EndOfFile(const char* path, size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  return all.size() < bytes ? std::string() : all.substr(all.size() - bytes);
}

// Calls `work`, which adds to its output and returns an error or "", until it has succeeded twice
// or failed twice. The exit code of the program: 0, 1 if it failed once, 5 if twice, 4 if the
// outputs differ.
inline int RunTwice(const std::function<std::string(std::string&)>& work) {
  int failed = 0;
  std::string known;
  while (true) {
    std::string output, problem;
    try {
      problem = work(output);
    } catch (const std::exception& e) {  // of this program's own code
      problem = e.what();
    }
    if (!problem.empty()) {
      std::fprintf(stderr, "anemone: %s: %s\n", failed == 0 ? "error" : "note", problem.c_str());
      if (++failed == 2) return 5;
    } else if (known.empty()) {
      known.swap(output);
    } else {
      return known == output ? failed : 4;
    }
  }
}

}  // namespace faults

#endif  // ANEMONE_TESTS_FAULTS_HOST_H_
