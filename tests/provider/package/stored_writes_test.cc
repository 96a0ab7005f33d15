// Packages of sessions whose rows of a state (provider/package/stored_writes.h) lie are refused
// with an error that says what is wrong.
#include "provider/package/stored_writes.h"

#include <gmock/gmock.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"
#include "provider/compiled/compile.h"
#include "provider/package/session_package.h"
#include "tests/provider/package/packages.h"
#include "tests/provider/sessions.h"
#include "tests/round_trip.h"
#include "tests/status_matchers.h"

namespace anemone {
namespace {

using testing::HasSubstr;

constexpr char kSection[] = "session.model";
// Two states with the same shape, into which rows are written at the same position.
constexpr char kTwoStates[] =
    "(float[1,2,4] x, int64[1,1] at, float[8,2,4] p, float[8,2,4] r) => "
    "(float[8,2,4] y, float[8,2,4] q, float[8,2,4] s) "
    "{ q = ScatterND(p, at, x) s = ScatterND(r, at, x) y = Add(q, s) }";

Package WithTwoStates() {
  const TemporaryFolder temporary(testing::TempDir());
  const std::string file = temporary.path() + "/net.onnx", folder = temporary.path() + "/net.ane";
  std::ofstream(file, std::ios::binary) << FilledBytes(kTwoStates, -1, 1, 1);
  EXPECT_THAT(CompileModel(file, {.state = {{"p", "q"}, {"r", "s"}}}, folder).status(), IsOk());
  auto package = OpenPackage(folder + "/program.anemone");
  EXPECT_THAT(package, IsOk());
  return *std::move(package);
}

using Change = std::function<void(onnx::GraphProto&)>;

// The package, in whose model `change` changed the graph.
absl::Status Forged(Package package, const Change& change) {
  const std::optional<Tensor> section = TakeExtension(package, kSection);
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(std::string(BytesText(section.value()))));
  change(*model.mutable_graph());
  const std::string bytes = model.SerializeAsString();
  const auto size = static_cast<int64_t>(bytes.size());
  package.extensions.push_back({kSection, Tensor::Of<char>(DataType::kUInt8, {size}, bytes)});
  return FromPackage(package).status();
}

// The segment that writes the rows of the first state.
onnx::NodeProto& RowsOf(onnx::GraphProto& graph) {
  for (onnx::NodeProto& node : *graph.mutable_node()) {
    if (node.op_type() == "rows") return node;
  }
  ADD_FAILURE() << "no segment writes rows";
  return *graph.add_node();
}

onnx::GraphProto& WritesOf(onnx::GraphProto& graph) {
  return *RowsOf(graph).mutable_attribute(0)->mutable_g();
}

// Changes the first node that writes rows.
Change Write(const std::function<void(onnx::NodeProto&)>& change) {
  return [change](onnx::GraphProto& graph) { change(*WritesOf(graph).mutable_node(0)); };
}

onnx::AttributeProto& OrderOf(onnx::NodeProto& node) {
  for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
    if (attribute.name() == "order") return attribute;
  }
  ADD_FAILURE() << "a node has no order of axes";
  return *node.add_attribute();
}

Change Order(const std::vector<int64_t>& axes) {
  return Write([axes](onnx::NodeProto& node) {
    onnx::AttributeProto& order = OrderOf(node);
    order.clear_ints();
    for (const int64_t axis : axes) order.add_ints(axis);
  });
}

Change AddedAttribute(const std::string& name, onnx::AttributeProto::AttributeType type) {
  return Write([name, type](onnx::NodeProto& node) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
  });
}

Change Output(const std::string& name) {
  return Write([name](onnx::NodeProto& node) { node.set_output(0, name); });
}

Change Input(int i, const std::string& name) {
  return Write([i, name](onnx::NodeProto& node) { node.set_input(i, name); });
}

// The size of the first axis of a value or port of the graph.
Change Size(const std::string& value, int64_t size) {
  return [value, size](onnx::GraphProto& graph) {
    for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()}) {
      for (onnx::ValueInfoProto& info : *list) {
        if (info.name() != value) continue;
        auto& shape = *info.mutable_type()->mutable_tensor_type()->mutable_shape();
        shape.mutable_dim(0)->set_dim_value(size);
      }
    }
  };
}

struct Lie {
  const char* name;
  Change change;
  const char* error;
};

std::vector<Lie> Lies() {
  constexpr int64_t kHuge = int64_t{1} << 62;
  constexpr char kShape[] = "a type or shape does not fit", kOrder[] = "the order of axes is wrong";
  constexpr char kOperands[] = "operands are missing", kOther[] = "a node is not of its segment";
  constexpr char kAttribute[] = "an attribute is unknown", kTwice[] = "a state is not only written";
  constexpr char kCount[] = "there are more or fewer nodes than outputs";
  return {
      {"no node", [](onnx::GraphProto& graph) { WritesOf(graph).clear_node(); },
       "no node writes them"},
      {"no graph", [](onnx::GraphProto& graph) { RowsOf(graph).clear_attribute(); },
       "rows of a state are missing"},
      {"another operator", Write([](onnx::NodeProto& node) { node.set_op_type("Relu"); }),
       "an operator is unknown"},
      {"no operator", Write([](onnx::NodeProto& node) { node.clear_op_type(); }),
       "an operator is unknown"},
      {"no inputs", Write([](onnx::NodeProto& node) { node.clear_input(); }), kOperands},
      {"an input too many", Write([](onnx::NodeProto& node) { node.add_input("x"); }), kOperands},
      {"many inputs", Write([](onnx::NodeProto& node) {
         for (int i = 0; i < 100000; ++i) node.add_input("x");
       }),
       kOperands},
      {"an unknown input", Input(1, "nothing"), kOperands},
      {"an empty input", Input(0, ""), kOperands},
      {"no output", Write([](onnx::NodeProto& node) { node.clear_output(); }), kOperands},
      {"an unknown output", Output("nothing"), kOperands},
      {"an unknown attribute", AddedAttribute("other", onnx::AttributeProto::INT), kAttribute},
      {"an axis that is a list", AddedAttribute("axis", onnx::AttributeProto::INTS), kAttribute},
      {"a mode that is a number", AddedAttribute("mode", onnx::AttributeProto::INT), kAttribute},
      {"a graph in a graph", AddedAttribute("writes", onnx::AttributeProto::GRAPH), kAttribute},
      {"no order", Write([](onnx::NodeProto& node) { OrderOf(node).set_name("axis"); }),
       kAttribute},
      {"no attributes", Write([](onnx::NodeProto& node) { node.clear_attribute(); }),
       "the order of axes is missing"},
      {"an empty order", Order({}), kOrder},
      {"a short order", Order({0, 1}), kOrder},
      {"a long order", Order({0, 1, 2, 3}), kOrder},
      {"an axis that the state does not have", Order({0, 1, 3}), kOrder},
      {"a negative axis", Order({0, 1, -1}), kOrder},
      {"an axis twice", Order({0, 1, 1}), kOrder},
      {"a huge axis", Order({0, 1, kHuge}), kOrder},
      {"a huge order", Order(std::vector<int64_t>(100000)), kOrder},
      {"positions that are floats", Input(2, "x"), kShape},
      {"rows that are integers", Input(1, "at"), kShape},
      {"a state of another shape", Input(0, "x"), kShape},
      {"a smaller state", Size("p", 4), kShape},
      {"a huge state", Size("p", kHuge), ""},
      {"another node's state", Input(0, "r"), kTwice},
      {"another node's output", Output("s"), "two nodes have one output"},
      {"another segment's value", Input(0, "y"), kOther},
      {"another segment's output", Output("y"), kOther},
      {"a node instead of another",
       [](onnx::GraphProto& graph) { *WritesOf(graph).mutable_node(1) = WritesOf(graph).node(0); },
       kTwice},
      {"a node too few",
       [](onnx::GraphProto& graph) { WritesOf(graph).mutable_node()->RemoveLast(); }, kCount},
      {"many nodes",
       [](onnx::GraphProto& graph) {
         const onnx::NodeProto node = WritesOf(graph).node(0);
         for (int i = 0; i < 100000; ++i) *WritesOf(graph).add_node() = node;
       },
       kCount},
      {"a segment twice",
       [](onnx::GraphProto& graph) {
         const onnx::NodeProto node = RowsOf(graph);
         *graph.add_node() = node;
       },
       kTwice},
      {"a state that is no input",
       [](onnx::GraphProto& graph) {
         for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
           if (input.name() != "p") continue;
           *graph.add_value_info() = input;
           input.set_name("other");
         }
       },
       kTwice},
      {"a state that nothing reads",
       [](onnx::GraphProto& graph) {
         for (onnx::NodeProto& node : *graph.mutable_node()) {
           if (node.op_type() == "engine") node.Clear();
         }
       },
       ""},
  };
}

TEST(StoredWrites, ThatLieAreRefused) {
  const Package package = WithTwoStates();
  ASSERT_THAT(Forged(package, [](onnx::GraphProto&) {}), IsOk());
  for (const Lie& lie : Lies()) {
    SCOPED_TRACE(lie.name);
    EXPECT_THAT(Forged(package, lie.change),
                StatusIs(kDamaged, testing::AllOf(HasSubstr(lie.error), HasSubstr("package: "))));
  }
}

}  // namespace
}  // namespace anemone
