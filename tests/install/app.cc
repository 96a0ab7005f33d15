// A program of somebody's: find_package(anemone), and nothing of our sources.
#include <anemone/check.h>
#include <anemone/session.h>
#include <anemone/version.h>

#include <iostream>

int main(int, char** argv) {
  const auto report = anemone::Check(argv[1], {.target = "m1"});
  const auto session = anemone::Session::Load(argv[1], {.target = "m1"});
  if (!report.ok() || !session.ok()) {
    std::cerr << report.status() << session.status();
    return 1;
  }
  const float values[] = {-1, 2, -3, 4};
  const auto outputs = session->Run({{"x", anemone::Tensor::Floats({1, 4}, values)}});
  if (!outputs.ok()) return 1;
  for (const float y : outputs->at("y").data<float>()) std::cout << y << " ";
  std::cout << anemone::kVersion << "\n" << report->Text();
  return 0;
}
