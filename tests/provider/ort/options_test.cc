#include "provider/ort/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace anemone {
namespace {

using ::testing::HasSubstr;

std::string Told(const std::map<std::string, std::string>& given) {
  return std::string(ReadPluginOptions(given).status().message());
}

// Of the plugin's own options; the settings are in docs/options.md, which is generated.
TEST(PluginOptions, ThePageHasTheTable) {
  std::string table = "| option | values | default | meaning |\n|---|---|---|---|\n";
  for (const PluginOption& option : PluginOptionTable()) {
    if (FindSetting(option.name) != nullptr) continue;
    const std::string fallback =
        option.fallback.empty() ? "none" : absl::StrCat("`", option.fallback, "`");
    absl::StrAppend(&table, "| `", option.name, "` | ", option.values, " | ", fallback, " | ",
                    option.meaning, " |\n");
  }
  std::ifstream file(ANEMONE_PLUGIN_PAGE);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(page, HasSubstr(table)) << "put this table into docs/plugin.md";
}

TEST(PluginOptions, DefaultsAreThoseOfTheTable) {
  const auto options = ReadPluginOptions({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->planning.target->option_name(), "h13");
  EXPECT_TRUE(options->planning.rewrites);
  EXPECT_EQ(options->min_segment_nodes, 1);
}

TEST(PluginOptions, SettingsHaveTheDefaultsOfTheirRows) {
  Settings settings;
  for (const Setting& setting : AllSettings()) {
    if (*setting.fallback == '\0') continue;
    ASSERT_TRUE(setting.store(settings, setting.fallback).ok()) << setting.name;
    EXPECT_EQ(settings, Settings()) << setting.name;
  }
}

TEST(PluginOptions, WhatChangesAProgramIsInItsKey) {
  // These change how a program is run, not the program.
  const std::set<std::string> not_in_key = {"device",   "limits",  "memory_limit",
                                            "numerics", "threads", "time_limit"};
  const std::map<std::string, std::string> others = {
      {"target", "h16"}, {"route", "mil"}, {"policy", "cpu"}, {"linear_layers", "convolutions"}};
  for (const Setting& setting : AllSettings()) {
    if ((setting.entries & kPlugin) == 0 || not_in_key.contains(setting.name)) continue;
    ASSERT_NE(setting.key, nullptr) << setting.name;
    std::string other = setting.fallback == absl::string_view("true") ? "false" : "true";
    if (setting.value != nullptr) {  // not a switch
      ASSERT_TRUE(others.contains(setting.name)) << "give another value of " << setting.name;
      other = others.at(setting.name);
    }
    Settings changed;
    ASSERT_TRUE(setting.store(changed, other).ok());
    EXPECT_NE(setting.key(changed), setting.key(Settings())) << setting.name;
    Settings read;  // a compiled model keeps the key
    ASSERT_TRUE(setting.store(read, setting.key(changed)).ok()) << setting.name;
    EXPECT_EQ(setting.key(read), setting.key(changed)) << setting.name;
  }
}

TEST(PluginOptions, AnUnknownOptionListsAll) {
  const std::string told = Told({{"tarjet", "h13"}});
  for (const PluginOption& option : PluginOptionTable()) EXPECT_THAT(told, HasSubstr(option.name));
}

TEST(PluginOptions, AnUnknownValueListsTheValues) {
  struct {
    const char* name;
    const char* value;
    const char* told;
  } const cases[] = {
      {"target", "h133", "h13"},
      {"device", "gpu", "want auto, software or apple"},
      {"numerics", "quick", "want fast or exact"},
      {"policy", "most", "want max-engine, latency, fewest-segments, cpu, refuse:"},
      {"min_segment_nodes", "0", "want an integer from 1 to"},
      {"rewrites", "maybe", "want true or false"},
      {"threads", "-1", "want an integer from 0 to 1024"},
      {"threads", "two", "want an integer from 0 to 1024"},
      {"threads", "", "want an integer from 0 to 1024"},
      {"memory_limit", "much", "want a number of bytes, as 512M or 2G"},
      {"memory_limit", "9999999999G", "want a number of bytes"},
      {"memory_limit", "-1", "want a number of bytes"},
      {"time_limit", "soon", "want seconds from 0"},
      {"time_limit", "-1", "want seconds from 0"},
      {"time_limit", "nan", "want seconds from 0"},
      {"limits", "nodes=0", "nodes: want 1 to"},
      {"limits", "knots=1", "there is no limit 'knots'"},
      {"limits", "", "there is no limit ''"},
  };
  for (const auto& c : cases) {
    const std::string told = Told({{c.name, c.value}});
    const bool later = absl::string_view(c.value) == "apple";
    EXPECT_EQ(ReadPluginOptions({{c.name, c.value}}).status().code(),
              later ? absl::StatusCode::kUnimplemented : absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(told, HasSubstr(c.told)) << c.name;
    EXPECT_THAT(told, HasSubstr(absl::StrCat("'", c.name, "'")));
  }
}

}  // namespace
}  // namespace anemone
