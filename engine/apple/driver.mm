// Opens Apple's frameworks at run time, and looks up everything that the table names.
#include "engine/apple/driver.h"

#include <dlfcn.h>

#include <cstring>

#include "apple_fact_table.h"  // generated
#include "engine/apple/driver_parts.h"
#include "engine/apple/objective_c.h"

namespace anemone::apple {
namespace {

Error Missing(const char* what, const AppleFact& fact) {
  const std::string owner = fact.owner == nullptr ? "" : std::string(fact.owner) + " ";
  return std::string(what) + " " + owner + fact.name + " is missing";
}

bool Takes(const AppleFact& message) {
  const Class owner = objc_getClass(message.owner);
  const SEL selector = sel_registerName(message.name);
  return message.kind == AppleKind::kObjectMessage ? [owner instancesRespondToSelector:selector]
                                                   : [owner respondsToSelector:selector];
}

// The first class or message that the framework lacks. A message of the kind other-form may be
// missing, and stands in for the one before it.
Error CheckMessages() {
  const std::vector<const AppleFact*> facts = AllAppleFacts();
  for (size_t i = 0; i < facts.size(); ++i) {
    const AppleFact& fact = *facts[i];
    if (fact.kind != AppleKind::kClassMessage && fact.kind != AppleKind::kObjectMessage) continue;
    if (objc_getClass(fact.owner) == Nil) {
      return std::string("the class ") + fact.owner + " is missing";
    }
    const AppleFact* other = i + 1 < facts.size() ? facts[i + 1] : nullptr;
    const bool has_other =
        other != nullptr && other->kind == AppleKind::kOtherForm && Takes(*other);
    if (!Takes(fact) && !has_other) return Missing("the message", fact);
  }
  return std::nullopt;
}

// The exported symbols, of the framework or of the libraries that it uses.
class Symbols {
 public:
  Error Open(const char* framework) {
    framework_ = dlopen(framework, RTLD_NOW | RTLD_LOCAL);
    if (framework_ == nullptr) {
      const char* why = dlerror();
      return std::string("the framework cannot be loaded: ") + (why == nullptr ? framework : why);
    }
    surfaces_ = dlopen(apple_fact::kSurfaceLibrary.name, RTLD_NOW | RTLD_LOCAL);  // null elsewhere
    return std::nullopt;
  }

  // Sets `to` to the symbol; after an error, does nothing.
  template <class T>
  void Find(const AppleFact& symbol, T& to) {
    void* found = dlsym(framework_, symbol.name);
    if (found == nullptr && surfaces_ != nullptr) found = dlsym(surfaces_, symbol.name);
    if (found == nullptr && !error_) error_ = Missing("the symbol", symbol);
    if (found == nullptr) return;
    if (symbol.kind == AppleKind::kConstant) {
      std::memcpy(&to, found, sizeof(to));
    } else {
      std::memcpy(&to, &found, sizeof(to));
    }
  }
  const Error& error() const { return error_; }

 private:
  // Never closed: a library with Objective-C classes cannot be unloaded.
  void* framework_ = nullptr;
  void* surfaces_ = nullptr;
  Error error_;
};

using SystemValue = int (*)(const char* name, void* value, size_t* size, void* set, size_t set_size);

class FrameworkDriver final : public Driver {
 public:
  Error Open(const char* framework) {
    Symbols symbols;
    if (Error error = symbols.Open(framework)) return error;
    if (Error error = CheckMessages()) return error;
    classes_.descriptor = objc_getClass(apple_fact::kDescriptorNetplist.owner);
    classes_.model = objc_getClass(apple_fact::kMakeModel.owner);
    classes_.surface = objc_getClass(apple_fact::kWrapSurface.owner);
    classes_.request = objc_getClass(apple_fact::kMakeRequest.owner);
    classes_.request_has_stats = !Takes(apple_fact::kMakeRequest);
    symbols.Find(apple_fact::kSurfaceCreate, surfaces_.create);
    symbols.Find(apple_fact::kSurfaceLock, surfaces_.lock);
    symbols.Find(apple_fact::kSurfaceUnlock, surfaces_.unlock);
    symbols.Find(apple_fact::kSurfaceAddress, surfaces_.address);
    symbols.Find(apple_fact::kSurfaceSize, surfaces_.size);
    symbols.Find(apple_fact::kRelease, surfaces_.release);
    symbols.Find(apple_fact::kSurfaceWidth, surfaces_.width);
    symbols.Find(apple_fact::kSurfaceHeight, surfaces_.height);
    symbols.Find(apple_fact::kSurfaceElement, surfaces_.element);
    symbols.Find(apple_fact::kSurfaceRow, surfaces_.row);
    symbols.Find(apple_fact::kSurfaceBytes, surfaces_.bytes);
    symbols.Find(apple_fact::kSurfaceFormat, surfaces_.format);
    symbols.Find(apple_fact::kSystemValue, system_value_);
    return symbols.error();
  }

  std::string Chip() override {
    char text[128] = "";
    size_t size = sizeof(text) - 1;
    return system_value_(apple_fact::kChip.name, text, &size, nullptr, 0) == 0 ? text : "";
  }
  Error MakeModel(const ModelSource& source, std::unique_ptr<DriverModel>& model) override {
    return apple::MakeModel(classes_, source, model);
  }
  Error MakeSurface(size_t bytes, std::unique_ptr<DriverSurface>& surface) override {
    return apple::MakeSurface(surfaces_, bytes, surface);
  }

 private:
  Classes classes_;
  SurfaceFunctions surfaces_;
  SystemValue system_value_ = nullptr;
};

}  // namespace
}  // namespace anemone::apple

void anemone_open_apple_driver(const char* framework,
                               std::unique_ptr<anemone::apple::Driver>& driver,
                               anemone::apple::Error& error) {
  using anemone::apple::FrameworkDriver;
  auto made = std::make_unique<FrameworkDriver>();
  FrameworkDriver& opened = *made;
  error = anemone::apple::Guard([&] { return opened.Open(framework); });
  if (!error) driver = std::move(made);
}
