#include "tests/provider/package/packages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "anemone/compressed.h"
#include "importer/importer.h"
#include "kernels/conv/conv.h"
#include "partitioner/plan.h"
#include "provider/package/network_text.h"
#include "provider/package/package_format.h"
#include "tests/onnx_text.h"
#include "tests/round_trip.h"

namespace anemone {
namespace {

constexpr int64_t kOut = 64, kIn = 32, kElements = kOut * kIn;

template <class T>
std::vector<T> Codes(int most) {
  std::mt19937 random(3);
  std::vector<T> codes(kElements);
  for (T& code : codes) code = static_cast<T>(random() % most);
  return codes;
}

std::vector<float> Floats(int64_t count) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = 0.01f * static_cast<float>(i % 37 + 1);
  return values;
}

Compressed::Ptr Blockwise() {
  // Blocks of 16 inputs, so two scales for each output.
  const std::vector<uint8_t> codes = Codes<uint8_t>(256), zeros(kOut, 0x87);
  return *Compressed::Affine(
      Tensor::Of<uint8_t>(DataType::kUInt4, {kElements}, {codes.data(), kElements / 2}),
      Tensor::Floats({kOut * 2}, Floats(kOut * 2)),
      Tensor::Of<uint8_t>(DataType::kUInt4, {kOut * 2}, zeros),
      *ScaleGrid::Of({kOut, kIn}, {kOut, 2}, 1, 16));
}

Compressed::Ptr EveryThird() {
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < kElements; i += 3) positions.push_back(i);
  return Compressed::Sparse(kElements, positions, Floats(static_cast<int64_t>(positions.size())));
}

uint64_t AlignedTo64(uint64_t size) { return (size + 63) / 64 * 64; }

}  // namespace

std::vector<Network> NetworksOf(const std::string& text) {
  std::mt19937 random(1);
  onnx::ModelProto proto = ModelOfText(text);
  FillDeclared(*proto.mutable_graph(), -1, 1, random);
  auto model = ImportBytes(proto.SerializeAsString(), "", {});
  EXPECT_TRUE(model.ok()) << model.status();
  auto plan = MakePlan(*model, {.target = *FindTarget("h16")});
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<Network> networks;
  for (Segment& segment : plan->segments) {
    if (segment.placement == Placement::kEngine) networks.push_back(std::move(segment.network));
  }
  EXPECT_FALSE(networks.empty()) << text;
  return networks;
}

Network ConvBy(const Tensor& kernel) {
  NetworkBuilder c(**FindTarget("h16"), Route::kNetplist);
  const Operand x = c.AddInput("x", MakeDims(1, kIn, 4, 5));
  const Tensor bias = Tensor::Floats({kOut}, Floats(kOut));
  c.AddOutput("y", PointwiseConv(c, x, kOut, kernel, /*in_major=*/false, &bias));
  return c.TakeNetwork();
}

std::vector<std::pair<std::string, Tensor>> KernelForms() {
  const std::vector<int64_t> dims = {kOut, kIn, 1, 1};
  const std::vector<float> floats = Floats(kElements);
  const std::vector<int8_t> int8 = Codes<int8_t>(256);
  const std::vector<uint8_t> uint8 = Codes<uint8_t>(256);
  const float half = 0.5f;
  return {
      {"float32", Tensor::Floats(dims, floats)},
      {"fill", Tensor::Fill(DataType::kFloat, dims,
                            absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&half), 4))},
      {"int8",
       Tensor::Of(dims, *Compressed::Affine(Tensor::Of<int8_t>(DataType::kInt8, {kElements}, int8),
                                            Tensor::Floats({kOut}, Floats(kOut)), {},
                                            *ScaleGrid::Of({kOut, kIn}, {kOut}, 0, 0)))},
      {"uint4", Tensor::Of(dims, Blockwise())},
      {"palette", Tensor::Of(dims, *Compressed::Palette(
                                       Tensor::Of<uint8_t>(DataType::kUInt8, {kElements}, uint8),
                                       Tensor::Floats({256}, Floats(256))))},
      {"sparse", Tensor::Of(dims, EveryThird())},
  };
}

Package PackageOf(const std::vector<Network>& networks) {
  Package package{.target = *FindTarget("h16"), .producer = "tests"};
  for (const Network& network : networks) {
    package.segments.push_back(Packaged(network));
    package.segments.back().name = absl::StrCat("segment ", package.segments.size());
  }
  return package;
}

Package SmallPackage() {
  std::vector<Network> networks = NetworksOf(
      "(float[1,8,9,7] x, float[4,24] z) => (float[1,8,9,7] y, float[4,16] u)"
      " <float[8,8,3,3] w, float[8] b, float[24,16] m, float[16] s, float[16] t> {"
      "  a = Conv<pads = [1,1,1,1]>(x, w, b) d = LayerNormalization<axis = 1>(a, k, l)"
      "  y = Softmax<axis = 1>(d) e = MatMul(z, m) f = LayerNormalization(e, s, t) u = Gelu(f)"
      "  k = Constant<value = float {1.5}>() l = Constant<value = float {0.5}>() }");
  for (const auto& [name, kernel] : KernelForms()) networks.push_back(ConvBy(kernel));
  return PackageOf(networks);
}

PackageParts PackageParts::Of(const std::string& bytes) {
  const format::Header& header = *format::GetSizePrefixedHeader(bytes.data());
  PackageParts parts{.major = header.format_major(),
                     .minor = header.format_minor(),
                     .tables = header.tables()->str(),
                     .producer = header.producer()->str(),
                     .target = header.target()->str(),
                     .route = header.route()->str()};
  const uint64_t body = AlignedTo64(
      4 + flatbuffers::GetPrefixedSize(reinterpret_cast<const uint8_t*>(bytes.data())) + 8);
  for (const format::Section* section : *header.sections()) {
    parts.sections.push_back(
        {section->name()->str(), bytes.substr(body + section->offset(), section->size())});
  }
  return parts;
}

PackageParts::Section& PackageParts::section(const std::string& name) {
  for (Section& section : sections) {
    if (section.name == name) return section;
  }
  ADD_FAILURE() << "no section " << name;
  return sections.front();
}

std::string PackageParts::Sealed() const {
  flatbuffers::FlatBufferBuilder fbb;
  std::vector<flatbuffers::Offset<format::Section>> listed;
  std::string body;
  for (const Section& section : sections) {
    const auto name = fbb.CreateString(section.name);
    listed.push_back(format::CreateSection(fbb, name, body.size(), section.bytes.size(),
                                           format::Checksum({section.bytes})));
    body += section.bytes;
    body.resize(AlignedTo64(body.size()));
  }
  const auto tables_at = fbb.CreateString(tables), producer_at = fbb.CreateString(producer),
             target_at = fbb.CreateString(target), route_at = fbb.CreateString(route);
  const auto sections_at = fbb.CreateVector(listed);
  format::HeaderBuilder builder(fbb);
  builder.add_format_major(major);
  builder.add_format_minor(minor);
  builder.add_tables(tables_at);
  builder.add_producer(producer_at);
  builder.add_target(target_at);
  builder.add_route(route_at);
  builder.add_sections(sections_at);
  if (has_unknown_field) fbb.AddElement<uint64_t>(format::Header::VT_SECTIONS + 2, 77, 0);
  format::FinishSizePrefixedHeaderBuffer(fbb, builder.Finish());
  std::string bytes(reinterpret_cast<const char*>(fbb.GetBufferPointer()), fbb.GetSize());
  const uint64_t checksum = format::Checksum({bytes});
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  bytes.resize(AlignedTo64(bytes.size()));
  return bytes + body;
}

std::string WithNetwork(const std::string& bytes, const std::function<std::string(Json)>& change,
                        const std::function<void(std::vector<TemplateUse>&)>& change_units) {
  PackageParts parts = PackageParts::Of(bytes);
  std::string& section = parts.section(format::kSegmentsSection).bytes;
  const format::Segment& segment =
      *flatbuffers::GetRoot<format::Segments>(section.data())->segments()->Get(0);
  const std::string changed = change(*ReadNetworkText(segment.network()->str()));
  flatbuffers::FlatBufferBuilder fbb;
  const auto dims = [&](const auto* table) {
    return fbb.CreateVector(std::vector<int64_t>(table->dims()->begin(), table->dims()->end()));
  };
  const auto ports = [&](const auto* from) {
    std::vector<flatbuffers::Offset<format::Port>> to;
    for (const format::Port* port : *from) {
      const auto name = fbb.CreateString(port->name());
      to.push_back(format::CreatePort(fbb, name, port->type(), dims(port)));
    }
    return fbb.CreateVector(to);
  };
  std::vector<flatbuffers::Offset<format::Tensor>> tensors;
  for (const format::Tensor* t : *segment.tensors()) {
    tensors.push_back(format::CreateTensor(fbb, t->type(), dims(t), t->form(), t->data(),
                                           t->code_type(), t->values(), t->zero_points(),
                                           t->grid()));
  }
  std::vector<TemplateUse> uses;
  for (const format::Unit* unit : *segment.units()) {
    TemplateUse& use = uses.emplace_back();
    use = {unit->name()->str(), unit->like()};
    for (const format::Operand* from : *unit->bottoms()) {
      use.bottoms.push_back(
          {static_cast<Operand::Source>(from->source()), static_cast<int>(from->index())});
    }
  }
  change_units(uses);
  std::vector<flatbuffers::Offset<format::Unit>> units;
  for (const TemplateUse& use : uses) {
    std::vector<format::Operand> bottoms;
    for (const Operand& from : use.bottoms) {
      bottoms.emplace_back(static_cast<format::Source>(from.source), from.index);
    }
    const auto name = fbb.CreateString(use.name);
    units.push_back(format::CreateUnit(fbb, name, static_cast<uint32_t>(use.index),
                                       fbb.CreateVectorOfStructs(bottoms)));
  }
  const auto made = format::CreateSegment(
      fbb, fbb.CreateString(segment.name()), fbb.CreateString(changed), fbb.CreateVector(units),
      fbb.CreateVector(tensors), ports(segment.inputs()), ports(segment.outputs()));
  fbb.Finish(format::CreateSegments(fbb, fbb.CreateVector(&made, 1)), format::kSegmentsIdentifier);
  section.assign(reinterpret_cast<const char*>(fbb.GetBufferPointer()), fbb.GetSize());
  return parts.Sealed();
}

const std::string& SmallBytes() {
  static const std::string& bytes = *new std::string(*WritePackage(SmallPackage()));
  return bytes;
}

void RunSmallSegments(const Package& package, int64_t most_elements) {
  for (const PackagedSegment& segment : package.segments) {
    int64_t elements = 0;
    for (const Tensor* t : TensorsOf(segment.network)) elements += t->is_fill() ? t->elements() : 0;
    for (const Unit& unit : segment.network.units) elements += unit.dims.elements();
    if (elements > most_elements) continue;
    (void)OutputsOf(segment.network, *package.target, package.route, 1);
  }
}

}  // namespace anemone
