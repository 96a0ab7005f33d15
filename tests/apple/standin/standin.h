// tests/apple/standin/standin.h: a library that takes the place of AppleNeuralEngine.framework in
// tests. Its Objective-C classes have the private names and messages of apple_facts.json; its
// IOSurfaces are memory of the process. Models are read by the readers of engine/formats, judged by
// the validators and run by the software engine in exact mode. In use, as shell text:
//
//   ANEMONE_ANE_DRIVER=libanemone_apple_driver.so ANEMONE_ANE_FRAMEWORK=libanemone_standin.so
//   anemone run net.onnx --device apple
//
// It keeps the rules of device.md: text as NSData, a dictionary of weights, files in the model's
// folder, compile before load, surfaces of one size and of at least 48 KiB, ports in alphabetical
// order on the MIL route, a limited number of compiles. ANEMONE_STANDIN_CHIP names its chip
// ("Apple M1" by default), ANEMONE_STANDIN_LOG a file to which each compile adds the name of its
// route.
//
// A fault is "NAME", or "NAME#N" for the N-th time only. It is set by the function or by
// ANEMONE_STANDIN_FAULT:
//   descriptor folder unwritable compile compile-silent load attributes other-port other-size
//   other-type overlap map evaluate 0x1d hang unload surface small-surface lock exception stale
//   what fails wide                                       no fault: larger strides message:SELECTOR
//   the message is missing
#ifndef ANEMONE_TESTS_APPLE_STANDIN_STANDIN_H_
#define ANEMONE_TESTS_APPLE_STANDIN_STANDIN_H_

#define ANEMONE_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

struct StandinCounts {
  int objects;   // living objects of the private classes
  int surfaces;  // living IOSurfaces
  int loaded, mapped;
  int compiles;  // since the process began
};

ANEMONE_STANDIN_EXPORT void anemone_standin_fault(const char* fault);
ANEMONE_STANDIN_EXPORT void anemone_standin_count(StandinCounts* counts);
// Lets calls that hang return, and later ones not hang.
ANEMONE_STANDIN_EXPORT void anemone_standin_release();

#endif  // ANEMONE_TESTS_APPLE_STANDIN_STANDIN_H_
