// engine/apple/facts.h: the rows of engine/tables/apple_facts.json: each class, message, symbol and
// key of Apple's frameworks that engine/apple uses, by name. `apple_fact::kAttributes.name` is a
// selector. Plain C++, because Objective-C++ sources include it too.
#ifndef ANEMONE_ENGINE_APPLE_FACTS_H_
#define ANEMONE_ENGINE_APPLE_FACTS_H_

#include <cstdint>
#include <vector>

namespace anemone {

enum class AppleKind : uint8_t {
  kClassMessage,   // an Objective-C message that the class `owner` takes
  kObjectMessage,  // a message that objects of the class `owner` take
  kOtherForm,      // a class message that may stand in for the row before it
  kFunction,       // an exported C function
  kConstant,       // an exported constant
  kKey,            // a name in a dictionary, of a file or of a system value
  kNumber,
  kPath,  // of a framework's library
};

struct AppleFact {
  const char* id;
  AppleKind kind;
  const char* owner;  // null unless the kind is a message
  const char* name;
  int64_t value;  // of a number
  const char* source;
};

// All rows, in the table's order. apple_fact_table.h has them by name.
std::vector<const AppleFact*> AllAppleFacts();

}  // namespace anemone

#endif  // ANEMONE_ENGINE_APPLE_FACTS_H_
