// MIL programs as lists: the text, and what Core ML packages have in common with it.
#include <algorithm>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/mapped_file.h"
#include "base/real_file.h"
#include "base/status_macros.h"
#include "engine/formats/mil_blob_files.h"
#include "engine/formats/mil_program.h"
#include "partitioner/plan_json.h"
#include "provider/programs/list_parts.h"

namespace anemone {

void MilLister::Begin(std::string scope) {
  scope_ = std::move(scope);
  values_.clear();
}

ListedOperation& MilLister::Append(const std::string& name, std::string type, bool is_operation) {
  ListedOperation& item = list_.items.emplace_back();
  item.name = absl::StrCat(scope_, name);
  if (const int given = names_[item.name]++; given > 0) absl::StrAppend(&item.name, "#", given + 1);
  item.type = std::move(type);
  item.is_operation = is_operation;
  return item;
}

void MilLister::AddInput(const std::string& what, const std::string& name, std::string type) {
  Append(name, what, false).facts.emplace_back("output", std::move(type));
  values_[name] = {static_cast<int>(list_.items.size()) - 1};
}

absl::Status MilLister::AddRead(const std::string& argument, const std::string& value,
                                ListedOperation& to) {
  const auto found = values_.find(value);
  if (found == values_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(to.type, " '", to.name, "' reads '", value, "', which is not defined"));
  }
  if (found->second.item < 0) {
    to.facts.emplace_back(argument, found->second.constant);
  } else {
    to.reads.push_back({argument, found->second.item, found->second.output});
  }
  return absl::OkStatus();
}

absl::Status MilLister::AddOutput(const std::string& what, const std::string& name) {
  return AddRead("from", name, Append(name, what, false));
}

absl::Status MilLister::Add(MilItem item) {
  if (item.op == "const" && item.outputs.size() == 1) {
    const auto value = std::find_if(item.attributes.begin(), item.attributes.end(),
                                    [](const auto& attribute) { return attribute.first == "val"; });
    if (value != item.attributes.end()) {
      values_[item.outputs[0].first] = {-1, 0, value->second};
      return absl::OkStatus();
    }
  }
  const int index = static_cast<int>(list_.items.size());
  ListedOperation& made =
      Append(item.outputs.empty() ? item.op : item.outputs[0].first, item.op, true);
  for (const MilItem::Argument& argument : item.arguments) {
    for (size_t i = 0; i < argument.values.size(); ++i) {
      const std::string name =
          argument.values.size() == 1 ? argument.name : absl::StrCat(argument.name, "[", i, "]");
      ANEMONE_RETURN_IF_ERROR(AddRead(name, argument.values[i], made));
    }
  }
  for (auto& [name, value] : item.attributes) {
    if (name != "name") made.facts.emplace_back(name, std::move(value));  // it is only shown
  }
  for (size_t i = 0; i < item.outputs.size(); ++i) {
    auto& [name, type] = item.outputs[i];
    made.facts.emplace_back(item.outputs.size() == 1 ? "output" : absl::StrCat("output ", i + 1),
                            std::move(type));
    values_[name] = {index, static_cast<int>(i)};
  }
  return absl::OkStatus();
}

namespace {

std::string TextOf(const MilType& type) {
  return type.shape ? absl::StrCat(type.dtype, " [", absl::StrJoin(*type.shape, ", "), "]")
                    : type.dtype;
}

absl::StatusOr<std::string> TextOf(const MilValue& value, MilBlobFiles& files) {
  std::string content;
  if (value.blob) {
    ANEMONE_ASSIGN_OR_RETURN(const MilChunk chunk, files.Read(*value.blob));
    content = HashText(chunk.bytes);
  } else {
    content = JsonText(value.data);
    if (value.data.is_array() && value.data.size() > kShownElements) {
      content = HashText(absl::string_view(content));
    }
  }
  return absl::StrCat(TextOf(value.type), " ", content);
}

absl::StatusOr<MilItem> ItemOf(const MilStatement& statement, MilBlobFiles& files) {
  MilItem item{.op = statement.op};
  for (const MilOutput& output : statement.outputs) {
    item.outputs.emplace_back(output.name, TextOf(output.type));
  }
  for (const MilArgument& argument : statement.arguments) {
    item.arguments.push_back({argument.name, argument.values});
  }
  for (const auto& [name, value] : statement.attributes) {
    ANEMONE_ASSIGN_OR_RETURN(std::string text, TextOf(value, files));
    item.attributes.emplace_back(name, std::move(text));
  }
  return item;
}

}  // namespace

absl::Status ListMil(const std::string& path, ProgramList& list) {
  namespace fs = std::filesystem;
  const bool is_folder = fs::is_directory(path);
  ANEMONE_ASSIGN_OR_RETURN(const auto text,
                           is_folder ? MapFileBelow(path, "model.mil") : MappedFile::Open(path));
  if (text->bytes().size() > kLongestProgram) {
    return absl::InvalidArgumentError("want a program of at most 256 MiB");
  }
  ANEMONE_ASSIGN_OR_RETURN(const MilProgram program, ReadMil(text->text()));
  MilBlobFiles files(is_folder ? path : fs::path(path).parent_path().string());
  list.items.push_back(
      {"program",
       "program",
       {{"version", program.version}, {"function", program.function}, {"opset", program.opset}},
       {},
       false});
  MilLister lister(list);
  lister.Begin("");
  for (const MilOutput& input : program.inputs) {
    lister.AddInput("input", input.name, TextOf(input.type));
  }
  for (const MilStatement& statement : program.statements) {
    ANEMONE_ASSIGN_OR_RETURN(MilItem item, ItemOf(statement, files));
    ANEMONE_RETURN_IF_ERROR(lister.Add(std::move(item)));
  }
  for (const std::string& output : program.outputs) {
    ANEMONE_RETURN_IF_ERROR(lister.AddOutput("output", output));
  }
  return absl::OkStatus();
}

}  // namespace anemone
