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
    require_target(target)
    if isinstance(tokens, str):
        if tokenizer is None:
            raise TypeError("tokens: a text needs tokenizer=, the path of a file of the package tokenizers")
        prompt = _encoded(tokens, tokenizer)
    else:
        prompt = [operator.index(token) for token in tokens]
    ends = {operator.index(token) for token in stop}
    path, data = path_or_bytes(model)
    with words_of_python():
        settings = settings_of(_anemone.SESSION, target, keywords)

    def iterate() -> Iterator[int]:
        with words_of_python():
            if path is None:
                generator = _anemone.load_generator_bytes(data, settings)
            else:
                generator = _anemone.load_generator(path, settings)
            generator.start(prompt, temperature, top_k, top_p, repetition_penalty, seed)
        for _ in range(max_new):
            with words_of_python():
                token = generator.next()
            yield token
            if token in ends:
                return

    return iterate()
