// A model of the framework: descriptor, compile, load, requests. The order of the calls and the
// arguments are those of device.md, Route A.
#include <string>

#include "apple_fact_table.h"  // generated
#include "engine/apple/driver_parts.h"
#include "engine/apple/objective_c.h"

namespace anemone::apple {
namespace {

unsigned int Qos() { return static_cast<unsigned int>(apple_fact::kQos.value); }

NSDictionary* NoOptions() { return [NSDictionary dictionary]; }

// A copy, because the framework may keep it longer than the file is mapped.
NSData* DataOf(const void* bytes, size_t size) { return [NSData dataWithBytes:bytes length:size]; }

id KeyOf(const AppleFact& key) { return StringOf(key.name); }

// Never nil: the framework crashes without the dictionary.
NSDictionary* WeightsOf(const ModelSource& source) {
  NSMutableDictionary* weights = [NSMutableDictionary dictionary];
  for (const WeightFile& file : source.weights) {
    NSDictionary* entry = [NSDictionary
        dictionaryWithObjectsAndKeys:NumberOf(0), KeyOf(apple_fact::kWeightOffset),
                                     DataOf(file.data, file.bytes),
                                     KeyOf(apple_fact::kWeightData), nil];
    [weights setObject:entry forKey:StringOf(file.name)];
  }
  return weights;
}

// The value at a key if it has the class, else nil.
id ValueAt(id dictionary, const AppleFact& key, Class wanted) {
  if (![dictionary isKindOfClass:[NSDictionary class]]) return nil;
  const id value = [dictionary objectForKey:KeyOf(key)];
  return [value isKindOfClass:wanted] ? value : nil;
}

Error ReadNumber(id entry, const AppleFact& key, int64_t& to) {
  NSNumber* number = ValueAt(entry, key, [NSNumber class]);
  if (number == nil) return std::string("an entry of a live list has no number ") + key.name;
  to = [number longLongValue];
  return std::nullopt;
}

Error ReadPort(id entry, LivePort& port) {
  port.symbol = TextOf((NSString*)ValueAt(entry, apple_fact::kSymbol, [NSString class]));
  port.type = TextOf((NSString*)ValueAt(entry, apple_fact::kType, [NSString class]));
  const std::pair<const AppleFact*, int64_t*> numbers[] = {
      {&apple_fact::kBatches, &port.batches},
      {&apple_fact::kChannels, &port.channels},
      {&apple_fact::kDepth, &port.depth},
      {&apple_fact::kHeight, &port.height},
      {&apple_fact::kWidth, &port.width},
      {&apple_fact::kBatchStride, &port.batch_stride},
      {&apple_fact::kDepthStride, &port.depth_stride},
      {&apple_fact::kPlaneStride, &port.plane_stride},
      {&apple_fact::kRowStride, &port.row_stride}};
  for (const auto& [key, to] : numbers) {
    if (Error error = ReadNumber(entry, *key, *to)) return error;
  }
  return std::nullopt;
}

Error ReadPorts(id status, const AppleFact& key, std::vector<LivePort>& ports) {
  NSArray* list = ValueAt(status, key, [NSArray class]);
  if (list == nil) return std::string("the model's attributes have no ") + key.name;
  for (NSUInteger i = 0; i < [list count]; ++i) {
    if (Error error = ReadPort([list objectAtIndex:i], ports.emplace_back())) return error;
  }
  return std::nullopt;
}

class FrameworkModel final : public DriverModel {
 public:
  FrameworkModel(const Classes& classes, id model) : classes_(classes), model_(model) {}
  ~FrameworkModel() override {
    const Pool pool;
    request_ = Kept();
    model_ = Kept();
  }

  std::string Folder() override {
    std::string path;
    Guard([&]() -> Error {
      path = TextOf(Send<NSString*>(model_.get(), apple_fact::kModelPath));
      return std::nullopt;
    });
    return path;
  }

  Error Compile() override {
    return Call([&](NSError** error) {
      return Send<BOOL>(model_.get(), apple_fact::kCompile, Qos(), NoOptions(), error);
    });
  }
  Error Load() override {
    return Call([&](NSError** error) {
      return Send<BOOL>(model_.get(), apple_fact::kLoad, Qos(), NoOptions(), error);
    });
  }

  Error ListPorts(std::vector<LivePort>& inputs, std::vector<LivePort>& outputs) override {
    return Guard([&]() -> Error {
      const id attributes = Send<id>(model_.get(), apple_fact::kAttributes);
      NSArray* list = ValueAt(attributes, apple_fact::kNetworkStatusList, [NSArray class]);
      if ([list count] == 0) {
        return std::string("the model's attributes have no ") + apple_fact::kNetworkStatusList.name;
      }
      const id status = [list objectAtIndex:0];
      if (Error error = ReadPorts(status, apple_fact::kLiveInputs, inputs)) return error;
      return ReadPorts(status, apple_fact::kLiveOutputs, outputs);
    });
  }

  Error Map(const DriverSurfaces& inputs, const DriverSurfaces& outputs) override {
    if (Error error = Guard([&] { return MakeRequest(inputs, outputs); })) return error;
    return Call([&](NSError** error) {
      return Send<BOOL>(model_.get(), apple_fact::kMap, request_.get(), BOOL{YES}, error);
    });
  }

  Error Evaluate() override {
    return Call([&](NSError** error) {
      return Send<BOOL>(model_.get(), apple_fact::kEvaluate, Qos(), NoOptions(), request_.get(),
                        error);
    });
  }

  Error Unmap() override {
    return Guard([&]() -> Error {
      Send<void>(model_.get(), apple_fact::kUnmap, request_.get());
      request_ = Kept();
      return std::nullopt;
    });
  }

  Error Unload() override {
    return Call([&](NSError** error) {
      return Send<BOOL>(model_.get(), apple_fact::kUnload, Qos(), error);
    });
  }

 private:
  template <class Body>
  static Error Call(Body body) {
    return Guard([&]() -> Error {
      NSError* error = nil;
      if (body(&error)) return std::nullopt;
      return TextOf(error);
    });
  }

  // The surfaces as objects of the framework, and their indices.
  void Wrap(const DriverSurfaces& surfaces, NSMutableArray* wrapped, NSMutableArray* indices) {
    for (size_t i = 0; i < surfaces.size(); ++i) {
      [wrapped addObject:Send<id>(classes_.surface, apple_fact::kWrapSurface,
                                  HandleOf(*surfaces[i]))];
      [indices addObject:NumberOf(i)];
    }
  }

  Error MakeRequest(const DriverSurfaces& inputs, const DriverSurfaces& outputs) {
    NSMutableArray *in = [NSMutableArray array], *out = [NSMutableArray array];
    NSMutableArray *in_indices = [NSMutableArray array], *out_indices = [NSMutableArray array];
    Wrap(inputs, in, in_indices);
    Wrap(outputs, out, out_indices);
    const id request =
        classes_.request_has_stats
            ? Send<id>(classes_.request, apple_fact::kMakeRequestWithStats, in, in_indices, out,
                       out_indices, id{nil}, id{nil}, NumberOf(0))
            : Send<id>(classes_.request, apple_fact::kMakeRequest, in, in_indices, out,
                       out_indices, NumberOf(0));
    if (request == nil) return "no request was made";
    request_ = Kept(request);
    return std::nullopt;
  }

  const Classes classes_;
  Kept model_, request_;
};

}  // namespace

Error MakeModel(const Classes& classes, const ModelSource& source,
                std::unique_ptr<DriverModel>& model) {
  return Guard([&]() -> Error {
    NSData* text = DataOf(source.text, source.text_bytes);
    const AppleFact& message =
        source.is_mil ? apple_fact::kDescriptorMil : apple_fact::kDescriptorNetplist;
    const id descriptor =
        Send<id>(classes.descriptor, message, text, WeightsOf(source), id{nil});
    if (descriptor == nil) return "no descriptor was made";
    const id made = Send<id>(classes.model, apple_fact::kMakeModel, descriptor);
    if (made == nil) return "no model was made";
    model = std::make_unique<FrameworkModel>(classes, made);
    return std::nullopt;
  });
}

}  // namespace anemone::apple
