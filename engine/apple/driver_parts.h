// engine/apple/driver_parts.h: the parts of driver.mm. For Objective-C++ sources.
#ifndef ANEMONE_ENGINE_APPLE_DRIVER_PARTS_H_
#define ANEMONE_ENGINE_APPLE_DRIVER_PARTS_H_

#include <memory>

#include "engine/apple/driver.h"
#include "engine/apple/objective_c.h"

namespace anemone::apple {

// The private classes.
struct Classes {
  Class descriptor = Nil, model = Nil, surface = Nil, request = Nil;
  bool request_has_stats = false;  // only the form with weightsBuffer and perfStats exists
};

// IOSurface's functions, and the keys of its properties.
struct SurfaceFunctions {
  void* (*create)(void* properties) = nullptr;
  int (*lock)(void* surface, uint32_t options, uint32_t* seed) = nullptr;
  int (*unlock)(void* surface, uint32_t options, uint32_t* seed) = nullptr;
  void* (*address)(void* surface) = nullptr;
  size_t (*size)(void* surface) = nullptr;
  void (*release)(const void* object) = nullptr;
  id width = nil, height = nil, element = nil, row = nil, bytes = nil, format = nil;
};

Error MakeSurface(const SurfaceFunctions& functions, size_t bytes,
                  std::unique_ptr<DriverSurface>& surface);
// The IOSurface of a surface that MakeSurface() made.
void* HandleOf(const DriverSurface& surface);

Error MakeModel(const Classes& classes, const ModelSource& source,
                std::unique_ptr<DriverModel>& model);

}  // namespace anemone::apple

#endif  // ANEMONE_ENGINE_APPLE_DRIVER_PARTS_H_
