// tests/apple/foundation/Foundation/Foundation.h: declarations of the part of Apple's Foundation
// that engine/apple uses, so that clang checks its sources for macOS on a machine without Apple's
// headers (macos_test.py). Names and types as in Apple's documentation.
#ifndef ANEMONE_TESTS_APPLE_FOUNDATION_H_
#define ANEMONE_TESTS_APPLE_FOUNDATION_H_

#ifdef __cplusplus
typedef bool BOOL;  // on arm64
#else
typedef _Bool BOOL;
#endif
typedef unsigned long NSUInteger;
typedef struct objc_class* Class;
typedef struct objc_object* id;
typedef struct objc_selector* SEL;
typedef void (*IMP)(void);
#define YES ((BOOL)1)
#define NO ((BOOL)0)
#define nil ((id)0)
#define Nil ((Class)0)

@class NSString;

__attribute__((objc_root_class))
@interface NSObject
+ (id)alloc;
- (id)init;
- (id)retain;
- (void)release;
- (IMP)methodForSelector:(SEL)selector;
- (BOOL)isKindOfClass:(Class)kind;
+ (Class)class;
+ (BOOL)respondsToSelector:(SEL)selector;
+ (BOOL)instancesRespondToSelector:(SEL)selector;
@end

@interface NSString : NSObject
+ (id)stringWithUTF8String:(const char*)text;
- (const char*)UTF8String;
@end
@interface NSNumber : NSObject
+ (NSNumber*)numberWithUnsignedLongLong:(unsigned long long)value;
- (long long)longLongValue;
@end
@interface NSData : NSObject
+ (id)dataWithBytes:(const void*)bytes length:(NSUInteger)length;
@end
@interface NSDictionary : NSObject
+ (id)dictionary;
+ (id)dictionaryWithObjectsAndKeys:(id)first, ... __attribute__((sentinel(0, 1)));
- (id)objectForKey:(id)key;
@end
@interface NSMutableDictionary : NSDictionary
- (void)setObject:(id)object forKey:(id)key;
@end
@interface NSArray : NSObject
- (NSUInteger)count;
- (id)objectAtIndex:(NSUInteger)index;
@end
@interface NSMutableArray : NSArray
+ (id)array;
- (void)addObject:(id)object;
@end
@interface NSError : NSObject
- (NSString*)localizedDescription;
@end
@interface NSException : NSObject
- (NSString*)name;
- (NSString*)reason;
@end
@interface NSAutoreleasePool : NSObject
- (void)drain;
@end

#endif  // ANEMONE_TESTS_APPLE_FOUNDATION_H_
