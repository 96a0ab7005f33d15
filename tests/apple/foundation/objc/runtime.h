// tests/apple/foundation/objc/runtime.h: the functions of the Objective-C runtime that engine/apple
// uses (see Foundation/Foundation.h beside this folder).
#ifndef ANEMONE_TESTS_APPLE_OBJC_RUNTIME_H_
#define ANEMONE_TESTS_APPLE_OBJC_RUNTIME_H_

#import <Foundation/Foundation.h>

extern "C" {
SEL sel_registerName(const char* name);
id objc_getClass(const char* name);
}

#endif  // ANEMONE_TESTS_APPLE_OBJC_RUNTIME_H_
