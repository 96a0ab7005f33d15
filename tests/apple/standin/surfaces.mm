// IOSurface's functions on memory of the process, and sysctlbyname().
#import <Foundation/Foundation.h>

#include <cstdlib>
#include <cstring>

#include "tests/apple/standin/faults.h"
#include "tests/apple/standin/model.h"
#include "tests/apple/standin/standin.h"
#include "tests/apple/standin/surfaces.h"

using anemone::standin::Counts;
using anemone::standin::Happens;

@implementation StandinSurface
- (id)initWithBytes:(size_t)bytes {
  if ((self = [super init]) == nil) return nil;
  _data = calloc(1, bytes);
  _bytes = bytes;
  ++Counts().surfaces;
  return self;
}
- (void)dealloc {
  --Counts().surfaces;
  free(_data);
  [super dealloc];
}
- (void*)data {
  return _data;
}
- (size_t)bytes {
  return _bytes;
}
- (BOOL)lock:(int)by {
  _locks += by;
  return _locks >= 0;
}
- (BOOL)isLocked {
  return _locks > 0;
}
@end

ANEMONE_STANDIN_EXPORT NSString* const kIOSurfaceWidth;
ANEMONE_STANDIN_EXPORT NSString* const kIOSurfaceHeight;
ANEMONE_STANDIN_EXPORT NSString* const kIOSurfaceBytesPerElement;
ANEMONE_STANDIN_EXPORT NSString* const kIOSurfaceBytesPerRow;
ANEMONE_STANDIN_EXPORT NSString* const kIOSurfaceAllocSize;
ANEMONE_STANDIN_EXPORT NSString* const kIOSurfacePixelFormat;
NSString* const kIOSurfaceWidth = @"IOSurfaceWidth";
NSString* const kIOSurfaceHeight = @"IOSurfaceHeight";
NSString* const kIOSurfaceBytesPerElement = @"IOSurfaceBytesPerElement";
NSString* const kIOSurfaceBytesPerRow = @"IOSurfaceBytesPerRow";
NSString* const kIOSurfaceAllocSize = @"IOSurfaceAllocSize";
NSString* const kIOSurfacePixelFormat = @"IOSurfacePixelFormat";

ANEMONE_STANDIN_EXPORT void* IOSurfaceCreate(void* properties) {
  if (Happens("surface")) return nullptr;
  NSDictionary* given = (NSDictionary*)properties;
  const size_t bytes = [[given objectForKey:kIOSurfaceAllocSize] unsignedLongLongValue];
  // The form of device.md: one row of bytes.
  if (bytes == 0 || [[given objectForKey:kIOSurfaceWidth] unsignedLongLongValue] != bytes ||
      [[given objectForKey:kIOSurfaceHeight] intValue] != 1 ||
      [[given objectForKey:kIOSurfaceBytesPerElement] intValue] != 1 ||
      [[given objectForKey:kIOSurfacePixelFormat] intValue] != 0) {
    return nullptr;
  }
  return (void*)[[StandinSurface alloc] initWithBytes:Happens("small-surface") ? bytes / 2 : bytes];
}

ANEMONE_STANDIN_EXPORT int IOSurfaceLock(void* surface, uint32_t, uint32_t*) {
  return !Happens("lock") && [(StandinSurface*)surface lock:1] ? 0 : 1;
}
ANEMONE_STANDIN_EXPORT int IOSurfaceUnlock(void* surface, uint32_t, uint32_t*) {
  return [(StandinSurface*)surface lock:-1] ? 0 : 1;
}
ANEMONE_STANDIN_EXPORT void* IOSurfaceGetBaseAddress(void* surface) {
  return [(StandinSurface*)surface isLocked] ? [(StandinSurface*)surface data] : nullptr;
}
ANEMONE_STANDIN_EXPORT size_t IOSurfaceGetAllocSize(void* surface) {
  return [(StandinSurface*)surface bytes];
}
ANEMONE_STANDIN_EXPORT void CFRelease(const void* object) { [(id)object release]; }

ANEMONE_STANDIN_EXPORT int sysctlbyname(const char* name, void* value, size_t* size, void*, size_t) {
  const std::string chip = anemone::standin::ChipName();
  if (std::strcmp(name, "machdep.cpu.brand_string") != 0 || *size <= chip.size()) return -1;
  std::memcpy(value, chip.c_str(), chip.size() + 1);
  *size = chip.size() + 1;
  return 0;
}
