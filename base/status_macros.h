// base/status_macros.h: macros that return early if an absl::Status is an error. Abseil in Debian
// 12 has no such macros.
//
//   ANEMONE_RETURN_IF_ERROR(Check(node));
//   ANEMONE_ASSIGN_OR_RETURN(Graph graph, Import(path));
#ifndef ANEMONE_BASE_STATUS_MACROS_H_
#define ANEMONE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define ANEMONE_RETURN_IF_ERROR(expr)                                                         \
  do {                                                                                        \
    if (absl::Status anemone_status_ = (expr); !anemone_status_.ok()) return anemone_status_; \
  } while (false)

#define ANEMONE_STATUS_JOIN_INNER_(a, b) a##b
#define ANEMONE_STATUS_JOIN_(a, b) ANEMONE_STATUS_JOIN_INNER_(a, b)

#define ANEMONE_ASSIGN_OR_RETURN(lhs, expr) \
  ANEMONE_ASSIGN_OR_RETURN_(ANEMONE_STATUS_JOIN_(anemone_statusor_, __LINE__), lhs, expr)

#define ANEMONE_ASSIGN_OR_RETURN_(result, lhs, expr)   \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = std::move(result).value()

#endif  // ANEMONE_BASE_STATUS_MACROS_H_
