"""Training: a step of forward operations, made from a model and a loss."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _anemone
from ._keywords import DEFAULT_TARGET
from ._models import Model, path_or_bytes, require_target, settings_of
from ._report import in_python, terminal_width
from ._session import Port, _array_from_cpp, _check_names, _to_cpp
from ._words import words_of_python

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._keywords import SessionKeywords

_MASTERS = ("pair", "fp16")
_UPDATES = ("engine", "cpu")


def _one_of(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise ValueError(f"{name}: want {' or '.join(known)}, got {value!r}")
    return value


class Trainer:
    """Trains a model on one target (docs/training.md).

    `loss` is "cross-entropy:LOGITS:LABELS", "mse:OUTPUT:TARGET" or "output:NAME", with outputs of
    the model. `targets` gives the type and sizes of LABELS or TARGET where they are not class
    numbers of all axes but the last: {"labels": ("float32", (8, 10))}. The other keywords are those
    of `anemone train`, and of Session.
    """

    def __init__(
        self,
        model: Model,
        loss: str,
        target: str = DEFAULT_TARGET,
        *,
        optimizer: str = "adam",
        lr: float = 0.001,
        momentum: float = 0.9,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        batch: int = 0,
        accumulate: int = 1,
        clip: float = 0,
        loss_scale: float = 1024,
        train_only: str | Sequence[str] = "",
        master: str = "pair",
        update: str = "engine",
        sanitize: bool = True,
        targets: Mapping[str, tuple[str, Sequence[int]]] | None = None,
        **keywords: Unpack[SessionKeywords],
    ) -> None:
        require_target(target)
        self._warned = self._warned_of_gradients = False
        options = _anemone.TrainingOptions()
        options.loss, options.optimizer = loss, optimizer
        options.learning_rate, options.momentum = lr, momentum
        options.beta1, options.beta2, options.epsilon = beta1, beta2, epsilon
        options.weight_decay, options.batch, options.accumulate = weight_decay, batch, accumulate
        options.clip, options.loss_scale, options.sanitize = clip, loss_scale, sanitize
        if not isinstance(train_only, str) and not train_only:
            raise ValueError("train_only: want patterns of names, got an empty list; leave it out to train all weights")
        options.train_only = train_only if isinstance(train_only, str) else ",".join(train_only)
        options.pair = _one_of("master", master, _MASTERS) == "pair"
        options.update_on_cpu = _one_of("update", update, _UPDATES) == "cpu"
        for name, (dtype, shape) in (targets or {}).items():
            options.add_target(name, np.dtype(dtype).name, list(shape))
        path, data = path_or_bytes(model)
        with words_of_python():
            settings = settings_of(_anemone.SESSION, target, keywords)
            if path is None:
                self._trainer = _anemone.train_bytes(data, options, settings)
            else:
                self._trainer = _anemone.train(path, options, settings)
        self._inputs = {port[0]: Port(*port) for port in self._trainer.inputs}

    @property
    def inputs(self) -> list[Port]:
        """What step() takes: the model's inputs, and the labels or the target."""
        return list(self._inputs.values())

    @property
    def weights(self) -> dict[str, npt.NDArray[Any]]:
        """The trained weights as float32."""
        names = self._trainer.weights
        return {name: _array_from_cpp(name, self._trainer.weight(name)) for name in names}

    @property
    def runs(self) -> int:
        """Completed calls of step(), also before a checkpoint."""
        return self._trainer.runs

    def step(self, inputs: Mapping[str, Any], lr: float | None = None) -> float:
        """One run with a batch; returns its mean loss. The weights are updated in each
        `accumulate`-th run. `lr` is the learning rate from now on. The first loss that is not
        finite, and the first gradient that exceeds fp16, are also a RuntimeWarning."""
        if not isinstance(inputs, Mapping):
            raise TypeError("inputs: want a dict of arrays by the inputs' names")
        _check_names(self._inputs, inputs)
        if lr is not None:
            self._trainer.set_learning_rate(lr)
        values: dict[str, Any] = {name: _to_cpp(self._inputs[name], value) for name, value in inputs.items()}
        with words_of_python():
            loss: float = self._trainer.step(values)
        if not math.isfinite(loss) and not self._warned:
            self._warned = True
            warnings.warn(
                f"step {self.runs}: the loss is {loss}, which is not finite; use a smaller learning rate, "
                "or `clip`, or clamp_activations",
                RuntimeWarning,
                stacklevel=2,
            )
        if (told := self._trainer.gradient_warning) and not self._warned_of_gradients:
            self._warned_of_gradients = True
            warnings.warn(f"step {self.runs}: {told}", RuntimeWarning, stacklevel=2)
        return loss

    def save_checkpoint(
        self, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None
    ) -> None:
        """Writes the state of the training to one file (safetensors), atomically."""
        with words_of_python():
            self._trainer.save_checkpoint(os.fsencode(path), dict(notes or {}))

    def load_checkpoint(self, path: str | os.PathLike[str]) -> dict[str, str]:
        """Goes on from a checkpoint of the same model and options; returns its notes."""
        with words_of_python():
            return self._trainer.load_checkpoint(os.fsencode(path))

    def model(self) -> bytes:
        """The model with its new weights, as bytes of an ONNX file."""
        with words_of_python():
            return self._trainer.model()

    def step_model(self) -> bytes:
        """The step as an ONNX model."""
        return self._trainer.step_model()

    def __repr__(self) -> str:
        width = terminal_width()
        return in_python(self._trainer.plan_text(False, width), width)
