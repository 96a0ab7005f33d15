// tests/apple/foundation/TargetConditionals.h: stands for Apple's header of this name, which Abseil
// includes (see Foundation/Foundation.h).
