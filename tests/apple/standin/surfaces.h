// tests/apple/standin/surfaces.h: an IOSurface of the stand-in. For Objective-C++ sources.
#ifndef ANEMONE_TESTS_APPLE_STANDIN_SURFACES_H_
#define ANEMONE_TESTS_APPLE_STANDIN_SURFACES_H_

#import <Foundation/Foundation.h>

@interface StandinSurface : NSObject {
  void* _data;
  size_t _bytes;
  int _locks;
}
- (id)initWithBytes:(size_t)bytes;
- (void*)data;
- (size_t)bytes;
// Locks (1) or unlocks (-1).
- (BOOL)lock:(int)by;
- (BOOL)isLocked;
@end

#endif  // ANEMONE_TESTS_APPLE_STANDIN_SURFACES_H_
