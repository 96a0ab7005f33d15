// tests/apple/foundation/Availability.h: stands for Apple's header of this name, which Abseil
// includes (see Foundation/Foundation.h).
