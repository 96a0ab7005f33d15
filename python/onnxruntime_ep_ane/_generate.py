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


def _encoded(prompt: str, tokenizer: str | os.PathLike[str]) -> list[int]:
    try:
        from tokenizers import Tokenizer  # type: ignore[import-not-found]
    except ImportError as error:
        raise ImportError("tokenizer: needs the package tokenizers; pip install tokenizers") from error
    ids: list[int] = Tokenizer.from_file(str(tokenizer)).encode(prompt).ids
    return ids


def _prompt_of(tokens: Iterable[int] | str, tokenizer: str | os.PathLike[str] | None) -> list[int]:
    if not isinstance(tokens, str):
        return [operator.index(token) for token in tokens]
    if tokenizer is None:
        raise TypeError("tokens: a text needs tokenizer=, the path of a file of the package tokenizers")
    return _encoded(tokens, tokenizer)


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
    token of each prompt, None after one of `stop`. The prompts share programs and weights, and each has a
    cache of its own, so its tokens are those of generate()."""
    require_target(target)
    starts = [_prompt_of(tokens, tokenizer) for tokens in prompts]
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
            left = dict(enumerate([first, *(first.fork() for _ in starts[1:])][: len(starts)]))
            for i, generator in left.items():
                generator.start(starts[i], temperature, top_k, top_p, repetition_penalty, seed)
        for _ in range(max_new):
            row: list[int | None] = [None] * len(starts)
            with words_of_python():
                for i, generator in left.items():
                    row[i] = generator.next()
            if left:
                yield row
            left = {i: generator for i, generator in left.items() if row[i] not in ends}

    return iterate()
