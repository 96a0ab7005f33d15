// The private classes of the stand-in. Facts: device.md, Route A.
#import <Foundation/Foundation.h>

#include <map>
#include <string>
#include <vector>

#include "tests/apple/standin/faults.h"
#include "tests/apple/standin/model.h"
#include "tests/apple/standin/surfaces.h"

using anemone::standin::Counts;
using anemone::standin::Error;
using anemone::standin::Happens;
using anemone::standin::LivePort;
using anemone::standin::MayHang;
using anemone::standin::Memory;
using anemone::standin::MissingMessage;
using anemone::standin::Model;

namespace {

std::string TextOf(NSString* text) { return text == nil ? "" : [text UTF8String]; }

NSString* StringOf(const std::string& text) {
  return [NSString stringWithUTF8String:text.c_str()];
}

std::string BytesOf(NSData* data) {
  return {static_cast<const char*>([data bytes]), [data length]};
}

// YES, or NO with the error; without one if its text is empty.
BOOL Answer(const Error& failed, NSError** error) {
  if (!failed) return YES;
  if (!failed->empty() && error != nullptr) {
    NSDictionary* told = [NSDictionary dictionaryWithObject:StringOf(*failed)
                                                     forKey:NSLocalizedDescriptionKey];
    *error = [NSError errorWithDomain:@"com.apple.appleneuralengine" code:1 userInfo:told];
  }
  return NO;
}

BOOL Refuse(const char* text, NSError** error) { return Answer(std::string(text), error); }

BOOL IsQos(unsigned int qos) { return qos == 21 || qos == 33; }  // device.md, Route A

void Raise(const char* why) {
  [NSException raise:NSInvalidArgumentException format:@"%s", why];
}

NSNumber* Number(int64_t value) { return [NSNumber numberWithLongLong:value]; }

NSArray* Listed(const std::vector<LivePort>& ports) {
  NSMutableArray* list = [NSMutableArray array];
  for (const LivePort& p : ports) {
    [list addObject:[NSDictionary
                        dictionaryWithObjectsAndKeys:
                            StringOf(p.symbol), @"Symbol", StringOf(p.type), @"Type",
                            Number(p.batches), @"Batches", Number(p.channels), @"Channels",
                            Number(p.depth), @"Depth", Number(p.height), @"Height",
                            Number(p.width), @"Width", Number(p.batch_stride), @"BatchStride",
                            Number(p.depth_stride), @"DepthStride", Number(p.plane_stride),
                            @"PlaneStride", Number(p.row_stride), @"RowStride", nil]];
  }
  return list;
}

BOOL IsMissing(SEL selector) { return MissingMessage() == sel_getName(selector); }

}  // namespace

// Counts living objects, and can lack a message.
@interface StandinObject : NSObject
@end
@implementation StandinObject
- (id)init {
  ++Counts().objects;
  return [super init];
}
- (void)dealloc {
  --Counts().objects;
  [super dealloc];
}
+ (BOOL)respondsToSelector:(SEL)selector {
  return !IsMissing(selector) && [super respondsToSelector:selector];
}
+ (BOOL)instancesRespondToSelector:(SEL)selector {
  return !IsMissing(selector) && [super instancesRespondToSelector:selector];
}
@end

@interface _ANEInMemoryModelDescriptor : StandinObject {
 @public
  BOOL _isMil;
  NSData* _text;
  NSDictionary* _weights;
}
@end
@implementation _ANEInMemoryModelDescriptor
+ (id)descriptorOf:(NSData*)text isMil:(BOOL)isMil weights:(NSDictionary*)weights {
  if (Happens("exception")) Raise("an injected exception");
  if (![text isKindOfClass:[NSData class]]) Raise("the text is not NSData");
  if (weights == nil) Raise("the weights are nil");
  if (Happens("descriptor")) return nil;
  _ANEInMemoryModelDescriptor* made = [[[self alloc] init] autorelease];
  made->_isMil = isMil;
  made->_text = [text retain];
  made->_weights = [weights retain];
  return made;
}
+ (id)modelWithNetworkDescription:(NSData*)text
                          weights:(NSDictionary*)weights
                     optionsPlist:(id)options {
  return [self descriptorOf:text isMil:NO weights:weights];
}
+ (id)modelWithMILText:(NSData*)text weights:(NSDictionary*)weights optionsPlist:(id)options {
  return [self descriptorOf:text isMil:YES weights:weights];
}
- (void)dealloc {
  [_text release];
  [_weights release];
  [super dealloc];
}
@end

@interface _ANEIOSurfaceObject : StandinObject {
 @public
  StandinSurface* _surface;
}
@end
@implementation _ANEIOSurfaceObject
+ (id)objectWithIOSurface:(void*)surface {
  _ANEIOSurfaceObject* made = [[[self alloc] init] autorelease];
  made->_surface = [(StandinSurface*)surface retain];
  return made;
}
- (void)dealloc {
  [_surface release];
  [super dealloc];
}
@end

@interface _ANERequest : StandinObject {
 @public
  NSArray *_inputs, *_inputIndices, *_outputs, *_outputIndices;
  BOOL _isMapped;
}
@end
@implementation _ANERequest
+ (id)requestWithInputs:(NSArray*)inputs
           inputIndices:(NSArray*)inputIndices
                outputs:(NSArray*)outputs
          outputIndices:(NSArray*)outputIndices
         procedureIndex:(NSNumber*)procedure {
  if ([procedure intValue] != 0) return nil;
  _ANERequest* made = [[[self alloc] init] autorelease];
  made->_inputs = [inputs copy];
  made->_inputIndices = [inputIndices copy];
  made->_outputs = [outputs copy];
  made->_outputIndices = [outputIndices copy];
  return made;
}
+ (id)requestWithInputs:(NSArray*)inputs
           inputIndices:(NSArray*)inputIndices
                outputs:(NSArray*)outputs
          outputIndices:(NSArray*)outputIndices
          weightsBuffer:(id)buffer
              perfStats:(id)stats
         procedureIndex:(NSNumber*)procedure {
  return [self requestWithInputs:inputs
                    inputIndices:inputIndices
                         outputs:outputs
                   outputIndices:outputIndices
                  procedureIndex:procedure];
}
- (void)dealloc {
  [_inputs release];
  [_inputIndices release];
  [_outputs release];
  [_outputIndices release];
  [super dealloc];
}
@end

namespace {

// The memory of each live port. Sizes of 0 stand for surfaces that are missing.
std::vector<Memory> MemoryOf(NSArray* surfaces, NSArray* indices) {
  std::vector<Memory> memory([surfaces count]);
  for (NSUInteger i = 0; i < [surfaces count]; ++i) {
    const size_t index = [[indices objectAtIndex:i] unsignedLongLongValue];
    if (index >= memory.size()) continue;
    StandinSurface* surface = ((_ANEIOSurfaceObject*)[surfaces objectAtIndex:i])->_surface;
    if ([surface isLocked]) continue;  // the engine cannot use it while the process does
    memory[index] = {static_cast<std::byte*>([surface data]), [surface bytes]};
  }
  return memory;
}

}  // namespace

@interface _ANEInMemoryModel : StandinObject {
  Model* _model;
}
@end
@implementation _ANEInMemoryModel
+ (id)inMemoryModelWithDescriptor:(_ANEInMemoryModelDescriptor*)descriptor {
  std::map<std::string, std::string> weights;
  NSEnumerator* names = [descriptor->_weights keyEnumerator];
  for (NSString* name = [names nextObject]; name != nil; name = [names nextObject]) {
    NSDictionary* entry = [descriptor->_weights objectForKey:name];
    if ([[entry objectForKey:@"offset"] intValue] != 0) return nil;
    weights[TextOf(name)] = BytesOf([entry objectForKey:@"data"]);
  }
  _ANEInMemoryModel* made = [[[self alloc] init] autorelease];
  made->_model = new Model(descriptor->_isMil, BytesOf(descriptor->_text), std::move(weights));
  return made;
}
- (void)dealloc {
  delete _model;
  [super dealloc];
}
- (NSString*)hexStringIdentifier {
  return StringOf(_model->identifier());
}
- (NSString*)localModelPath {
  if (Happens("unwritable")) return @"/dev/null/model";
  return Happens("folder") ? nil : StringOf(_model->folder());
}
- (BOOL)compileWithQoS:(unsigned int)qos options:(NSDictionary*)options error:(NSError**)error {
  MayHang();
  if (!IsQos(qos) || options == nil) return Refuse("an unknown QoS, or no options", error);
  if (Happens("compile-silent")) return Answer(std::string(), error);
  if (Happens("compile")) return Refuse("_ANECompiler : ANECCompile() FAILED", error);
  return Answer(_model->Compile(), error);
}
- (BOOL)loadWithQoS:(unsigned int)qos options:(NSDictionary*)options error:(NSError**)error {
  if (!IsQos(qos) || options == nil) return Refuse("an unknown QoS, or no options", error);
  if (Happens("load")) return Refuse("Program load failure", error);
  return Answer(_model->Load(), error);
}
- (NSDictionary*)modelAttributes {
  if (!_model->is_loaded() || Happens("attributes")) return [NSDictionary dictionary];
  NSDictionary* status = [NSDictionary
      dictionaryWithObjectsAndKeys:Listed(_model->inputs()), @"LiveInputList",
                                   Listed(_model->outputs()), @"LiveOutputList", nil];
  return [NSDictionary dictionaryWithObject:[NSArray arrayWithObject:status]
                                     forKey:@"NetworkStatusList"];
}
- (BOOL)mapIOSurfacesWithRequest:(_ANERequest*)request
                  cacheInference:(BOOL)cache
                           error:(NSError**)error {
  if (Happens("map")) return Refuse("mapping failed", error);
  request->_isMapped = YES;
  ++Counts().mapped;
  return YES;
}
- (void)unmapIOSurfacesWithRequest:(_ANERequest*)request {
  request->_isMapped = NO;
  --Counts().mapped;
}
- (BOOL)evaluateWithQoS:(unsigned int)qos
                options:(NSDictionary*)options
                request:(_ANERequest*)request
                  error:(NSError**)error {
  if (Happens("0x1d")) {
    return Refuse("ANEProgramProcessRequestDirect() Failed with status=0x1d", error);
  }
  if (Happens("evaluate")) return Refuse("Program Inference error", error);
  MayHang();
  if (!IsQos(qos) || options == nil) return Refuse("an unknown QoS, or no options", error);
  if (!request->_isMapped) return Refuse("the surfaces are not mapped", error);
  return Answer(_model->Evaluate(MemoryOf(request->_inputs, request->_inputIndices),
                                 MemoryOf(request->_outputs, request->_outputIndices)),
                error);
}
- (BOOL)unloadWithQoS:(unsigned int)qos error:(NSError**)error {
  _model->Unload();
  if (Happens("unload")) return Refuse("unload failed", error);
  return YES;
}
@end
