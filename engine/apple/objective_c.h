// engine/apple/objective_c.h: calls classes that are known only at run time. For Objective-C++
// sources. No ARC and no literals, so that GNUstep compiles them too. In use, as ObjC text:
//
//   Kept model(Send<id>(classes.model, apple_fact::kMakeModel, descriptor));
//   NSError* error = nil;
//   if (!Send<BOOL>(model.get(), apple_fact::kCompile, qos, options, &error)) return TextOf(error);
#ifndef ANEMONE_ENGINE_APPLE_OBJECTIVE_C_H_
#define ANEMONE_ENGINE_APPLE_OBJECTIVE_C_H_

#import <Foundation/Foundation.h>
#include <objc/runtime.h>

#include <string>
#include <utility>

#include "engine/apple/driver.h"
#include "engine/apple/facts.h"
#include "engine/apple/try.h"

namespace anemone::apple {

// Sends the message of a row. Wrong types of arguments are not noticed.
template <class Result, class... Arguments>
Result Send(id object, const AppleFact& message, Arguments... arguments) {
  const SEL selector = sel_registerName(message.name);
  using Method = Result (*)(id, SEL, Arguments...);
  using AnyFunction = void (*)();  // through it, because the declared type of methods differs
  const auto method = reinterpret_cast<AnyFunction>([object methodForSelector:selector]);
  return reinterpret_cast<Method>(method)(object, selector, arguments...);
}

inline std::string TextOf(NSString* text) {
  const char* bytes = text == nil ? nullptr : [text UTF8String];
  return bytes == nullptr ? "" : bytes;
}

// What the framework says of a failure; "" if it says nothing.
inline std::string TextOf(NSError* error) {
  return error == nil ? "" : TextOf([error localizedDescription]);
}

inline NSString* StringOf(const std::string& text) {
  return [NSString stringWithUTF8String:text.c_str()];
}
inline NSNumber* NumberOf(size_t value) { return [NSNumber numberWithUnsignedLongLong:value]; }

// Owns a reference to an object.
class Kept {
 public:
  Kept() = default;
  explicit Kept(id object) : object_([object retain]) {}
  Kept(Kept&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  Kept& operator=(Kept&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Kept() { [object_ release]; }
  id get() const { return object_; }

 private:
  id object_ = nil;
};

// Frees the autoreleased objects of a scope.
class Pool {
 public:
  Pool() : pool_([[NSAutoreleasePool alloc] init]) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { [pool_ drain]; }

 private:
  NSAutoreleasePool* pool_;
};

// Runs `body`, which returns an Error. An Objective-C exception becomes an error too.
template <class Body>
Error Guard(Body body) {
  struct Call {
    Body& body;
    Error error;
  } call{body, {}};
  const Pool pool;
  anemone_try([](void* at) { static_cast<Call*>(at)->error = static_cast<Call*>(at)->body(); },
              &call,
              [](void* at, const char* name, const char* reason) {
                static_cast<Call*>(at)->error = std::string(name == nullptr ? "exception" : name) +
                                                ": " + (reason == nullptr ? "" : reason);
              });
  return std::move(call.error);
}

}  // namespace anemone::apple

#endif  // ANEMONE_ENGINE_APPLE_OBJECTIVE_C_H_
