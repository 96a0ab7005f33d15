// engine/apple/try.h: catches Objective-C exceptions. A function of plain Objective-C, because
// GCC's Objective-C++ cannot catch what Objective-C throws.
#ifndef ANEMONE_ENGINE_APPLE_TRY_H_
#define ANEMONE_ENGINE_APPLE_TRY_H_

#ifdef __cplusplus
extern "C" {
#endif

// Calls body(context). If it throws, calls caught(context, name, reason); the texts may be null.
void anemone_try(void (*body)(void* context), void* context,
                 void (*caught)(void* context, const char* name, const char* reason));

#ifdef __cplusplus
}
#endif

#endif  // ANEMONE_ENGINE_APPLE_TRY_H_
