#import "engine/apple/try.h"

#import <Foundation/Foundation.h>

void anemone_try(void (*body)(void* context), void* context,
                 void (*caught)(void* context, const char* name, const char* reason)) {
  @try {
    body(context);
  } @catch (NSException* exception) {
    caught(context, [[exception name] UTF8String], [[exception reason] UTF8String]);
  }
}
