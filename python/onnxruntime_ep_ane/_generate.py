"""Language models: tokens one after the other."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from . import _anemone
from ._keywords import DEFAULT_TARGET
from ._models import Model, path_or_bytes, require_target, settings_of
from ._words import words_of_python

if TYPE_CHECKING:
    import os

    from typing_extensions import Unpack

    from ._keywords import SessionKeywords


def _number(name: str, value: int, bits: int = 63) -> int:
    """`value`, which the library takes as a number of so many bits."""
    number = operator.index(value)
    if not 0 <= number < 2**bits:
        raise ValueError(f"{name}: want a number from 0 to 2^{bits} - 1, got {number}")
    return number


def _encoded(prompt: str, tokenizer: str | os.PathLike[str]) -> list[int]:
    try:
        from tokenizers import Tokenizer  # type: ignore[import-not-found]
    except ImportError as error:
        raise ImportError("tokenizer: needs the package tokenizers; pip install tokenizers") from error
    ids: list[int] = Tokenizer.from_file(str(tokenizer)).encode(prompt).ids
    return ids


def _prompt_of(tokens: Iterable[int] | str, tokenizer: str | os.PathLike[str] | None) -> list[int]:
    if not isinstance(tokens, str):
        return [_number("tokens", token) for token in tokens]
    if tokenizer is None:
        raise TypeError("tokens: a text needs tokenizer=, the path of a file of the package tokenizers")
    return _encoded(tokens, tokenizer)


def _batches(
    first: _anemone.Generator,
    starts: list[list[int]],
    sampling: tuple[float, int, float, float, int],
) -> Iterator[tuple[_anemone.Generator, list[int]]]:
    """Generators that ran the prompts, and the prompts of each: those of one length together, where the model
    takes a batch and its caches stay in place then."""
    by_length: dict[int, list[int]] = {}
    for i, start in enumerate(starts):
        by_length.setdefault(len(start), []).append(i)
    for members in by_length.values():
        together = len(members) > 1 and first.takes_batches()
        if together:
            generator = first.fork()
            generator.start_batch([starts[i] for i in members], *sampling)
            if not generator.growth_refusal():
                yield generator, members
                continue
        for i in members:
            generator = first.fork()
            generator.start(starts[i], *sampling)
            yield generator, [i]


def generate(
    model: Model,
    tokens: Iterable[int] | str,
    target: str = DEFAULT_TARGET,
    *,
    max_new: int = 32,
    temperature: float = 0,
    top_k: int = 0,
    top_p: float = 1,
    repetition_penalty: float = 1,
    seed: int = 0,
    stop: Iterable[int] = (),
    tokenizer: str | os.PathLike[str] | None = None,
    **keywords: Unpack[SessionKeywords],
) -> Iterator[int]:
    """Iterates the tokens that a decoder with a cache adds to `tokens`, at most `max_new`, up to one of
    `stop`. Temperature 0 always takes the likeliest. `tokens` may be text if `tokenizer` is the path of
    a file of the package `tokenizers`. The model is loaded, and the prompt is run, when the first token
    is asked for."""
    rows = generate_batch(model, [tokens], target, max_new=max_new, temperature=temperature, top_k=top_k, top_p=top_p,
                          repetition_penalty=repetition_penalty, seed=seed, stop=stop, tokenizer=tokenizer, **keywords)
    return (token for token, in rows if token is not None)


def generate_batch(
    model: Model,
    prompts: Iterable[Iterable[int] | str],
    target: str = DEFAULT_TARGET,
    *,
    max_new: int = 32,
    temperature: float = 0,
    top_k: int = 0,
    top_p: float = 1,
    repetition_penalty: float = 1,
    seed: int = 0,
    stop: Iterable[int] = (),
    tokenizer: str | os.PathLike[str] | None = None,
    **keywords: Unpack[SessionKeywords],
) -> Iterator[list[int | None]]:
    """As generate() for each of `prompts`, which may have different lengths: iterates lists with the next
    token of each prompt, None after one of `stop`. The prompts share programs and weights. Those of one length
    run as one batch if the model's batch is free; their tokens are those of generate() up to rounding."""
    require_target(target)
    _number("max_new", max_new)
    sampling = (temperature, _number("top_k", top_k), top_p, repetition_penalty, _number("seed", seed, 64))
    given = list(prompts)
    if tokenizer is not None and given and not any(isinstance(tokens, str) for tokens in given):
        raise TypeError("tokenizer: the prompt is numbers of tokens, which need none; give a text, or leave it out")
    starts = [_prompt_of(tokens, tokenizer) for tokens in given]
    ends = {operator.index(token) for token in stop}
    path, data = path_or_bytes(model)
    with words_of_python():
        settings = settings_of(_anemone.SESSION, target, keywords)

    def iterate() -> Iterator[list[int | None]]:
        with words_of_python():
            if path is None:
                first = _anemone.load_generator_bytes(data, settings)
            else:
                first = _anemone.load_generator(path, settings)
            groups = list(_batches(first, starts, sampling))
        left = set(range(len(starts)))
        for _ in range(max_new):
            row: list[int | None] = [None] * len(starts)
            with words_of_python():
                for generator, members in groups:
                    if left.intersection(members):
                        for i, token in zip(members, generator.next_batch()):
                            row[i] = token if i in left else None
            if left:
                yield row
            left = {i for i in left if row[i] not in ends}

    return iterate()
