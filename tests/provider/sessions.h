// tests/provider/sessions.h: models as texts with random weights, their sessions, and their bits.
#ifndef ANEMONE_TESTS_PROVIDER_SESSIONS_H_
#define ANEMONE_TESTS_PROVIDER_SESSIONS_H_

#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "anemone/session.h"
#include "tests/onnx_text.h"

namespace anemone {

// The model's bytes; initializers that the text only declares are between `low` and `high`.
inline std::string FilledBytes(const std::string& text, float low, float high, unsigned seed) {
  onnx::ModelProto model = ModelOfText(text);
  std::mt19937 random(seed);
  FillDeclared(*model.mutable_graph(), low, high, random);
  return model.SerializeAsString();
}

inline Session MustLoad(const std::string& model, const Settings& settings) {
  auto session = Session::LoadBytes(model, settings);
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

inline void ExpectSameBits(const Tensor& want, const Tensor& got) {
  ASSERT_EQ(want.type(), got.type());
  ASSERT_EQ(want.dims(), got.dims());
  EXPECT_EQ(0, std::memcmp(want.bytes().data(), got.bytes().data(), want.bytes().size()));
}

}  // namespace anemone

#endif  // ANEMONE_TESTS_PROVIDER_SESSIONS_H_
