// A framework of another version: it has one of the private classes.
#import <Foundation/Foundation.h>

@interface _ANEInMemoryModelDescriptor : NSObject
@end
@implementation _ANEInMemoryModelDescriptor
+ (id)modelWithNetworkDescription:(NSData*)text
                          weights:(NSDictionary*)weights
                     optionsPlist:(id)options {
  return nil;
}
+ (id)modelWithMILText:(NSData*)text weights:(NSDictionary*)weights optionsPlist:(id)options {
  return nil;
}
@end
