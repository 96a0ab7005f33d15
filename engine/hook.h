// engine/hook.h: a Hook holds a function of a unit kind's parameters, and can be called through a
// `void*` by code that does not know their type.
//
//   Verdict Validate(const SoftmaxParams& p, Bottoms in);
//   Hook<const SoftmaxParams, Verdict(Bottoms)> hook = Validate;
//   const Hook<const void, Verdict(Bottoms)>& any = hook;
//   if (any) any(params, in);   // `params` points to the SoftmaxParams
//
// A null hook converts to false. A Hook<const P, ...> reads the parameters, a Hook<P, ...> sets
// them.
#ifndef ANEMONE_ENGINE_HOOK_H_
#define ANEMONE_ENGINE_HOOK_H_

#include <cstddef>
#include <type_traits>
#include <utility>

namespace anemone {

template <class P, class Signature>
class Hook;

// A hook with its parameter type erased.
template <class Void, class R, class... Args>
requires std::is_void_v<Void>
class Hook<Void, R(Args...)> {
 public:
  constexpr Hook(std::nullptr_t = nullptr) {}  // NOLINT(google-explicit-constructor)
  explicit operator bool() const { return function_ != nullptr; }
  R operator()(Void* params, Args... args) const {
    return call_(function_, params, std::forward<Args>(args)...);
  }
  // Calls the hook, or returns `otherwise` if it is null.
  template <class Otherwise>
  R Or(Otherwise otherwise, Void* params, Args... args) const {
    if (function_ == nullptr) return otherwise;
    return call_(function_, params, std::forward<Args>(args)...);
  }

 protected:
  using Function = void (*)();
  Function function_ = nullptr;
  R (*call_)(Function, Void*, Args...) = nullptr;
};

template <class P, class R, class... Args>
requires(!std::is_void_v<P>) class Hook<P, R(Args...)>
    : public Hook<std::conditional_t<std::is_const_v<P>, const void, void>, R(Args...)> {
  using Void = std::conditional_t<std::is_const_v<P>, const void, void>;
  using Base = Hook<Void, R(Args...)>;
  using Typed = R (*)(P&, Args...);

 public:
  constexpr Hook(std::nullptr_t = nullptr) {}  // NOLINT(google-explicit-constructor)
  // A function, or a lambda that captures nothing.
  template <class F>
  // NOLINTNEXTLINE(google-explicit-constructor)
  requires std::is_convertible_v<F, Typed> Hook(F function) {
    const Typed typed = function;
    if (typed == nullptr) return;
    this->function_ = reinterpret_cast<typename Base::Function>(typed);
    this->call_ = [](typename Base::Function f, Void* params, Args... args) -> R {
      return reinterpret_cast<Typed>(f)(*static_cast<P*>(params), std::forward<Args>(args)...);
    };
  }
};

}  // namespace anemone

#endif  // ANEMONE_ENGINE_HOOK_H_
