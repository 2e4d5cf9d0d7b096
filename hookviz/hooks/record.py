"""Recording what the layers of a network take, return, and send back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from torch import nn

from hookviz.errors import HookvizError
from hookviz.hooks.attach import HookHandles
from hookviz.hooks.compiled import run_eagerly
from hookviz.hooks.names import LayerNames, Layers
from hookviz.hooks.recorder import Recorder, Wanted
from hookviz.hooks.recording import Recording
from hookviz.hooks.snapshot import Keep
from hookviz.hooks.stopping import ForwardStopped
from hookviz.hooks.warm_memory import keep_memory_warm


def record(  # noqa: PLR0913  # each is one thing a reader may want kept, and all have defaults
    module: nn.Module,
    layers: Layers = "*",
    *,
    inputs: bool = False,
    gradients: bool = False,
    stop: bool = False,
    keep: Keep | None = None,
    keep_runs: bool = False,
) -> AbstractContextManager[Recording]:
    """Record what layers compute while the network runs inside a ``with`` block.

    >>> with record(model, ["conv1", "layer1.*"]) as rec:
    ...     model(image)
    >>> rec["conv1"].output  # a tensor, as it was when conv1 returned
    >>> rec["layer1.0.relu"][1].output  # the second call of a layer that runs twice

    Every tensor is copied when its module returns, so that nothing later can write into it. The network computes
    exactly what it would without the recording, and carries no trace of it afterwards, whatever happened in the block.
    Only calls made by the thread that opened the block are recorded. Recomputation during a backward pass (checkpoints)
    is not recorded again. One exception: torch runs ``nn.TransformerEncoderLayer`` fused in eval mode and step by step
    where hooks sit on it, which differs by at most 1e-5.

    Args:
        module: the network. A compiled one runs eagerly inside the block, and its layers go by their eager names.
        layers: names as in ``named_modules()`` (the root is ``""``), globs (``*`` crosses dots), module types, modules,
            or a list of them.
        inputs: keep ``.input`` and ``.kwargs`` too, as they were when the module was called.
        gradients: keep ``.grad_output`` and ``.grad_input`` of a backward pass run inside the block. A re-entrant
            checkpoint has none for the layers inside it (``.gradient_note`` says so).
        stop: end the forward once no chosen layer can run again. The forward is left by an exception that the ``with``
            statement swallows: what follows the model's call inside the block does not run, and execution goes on after
            the block.
        keep: applied to each tensor when it is recorded, in place of a copy; for instance ``summarize``, so that large
            tensors need not be held.
        keep_runs: keep every run in ``.runs``, not the last one only.

    Returns:
        A context manager that gives a ``Recording``. It fills while the block runs and stays readable afterwards.

    Raises:
        UnknownLayerError: a name, glob or type that matches nothing; before anything runs.
        GradientError: gradients asked for where no forward could give any; when the forward starts.
        KeepError: ``keep`` failed.
        HookvizError: ``stop`` together with ``gradients``, or a module torch allows no hooks on.
    """
    if stop and gradients:
        raise HookvizError(
            "stop=True ends the forward early, so there is no backward to take gradients from; choose one."
        )
    names = LayerNames(module)
    chosen = names.resolve(layers)
    keep_memory_warm()
    return _recorded(names, chosen, Wanted(inputs, gradients, stop), keep, keep_runs=keep_runs)


@contextmanager
def _recorded(
    names: LayerNames, chosen: list[str], wanted: Wanted, keep: Keep | None, *, keep_runs: bool
) -> Iterator[Recording]:
    recording = Recording(chosen, names.aliases, type(names.root).__name__, keep_runs=keep_runs)
    with run_eagerly(), HookHandles() as handles:
        recorder = Recorder(names, chosen, wanted, keep, recording, handles)
        recorder.install()
        try:
            yield recording
        except ForwardStopped as stopped:
            if stopped is not recorder.stopped:
                raise
            recorder.stopped = stopped.__traceback__ = None  # a traceback would hold the frames, and they the tensors
        except BaseException as error:
            recorder.note_failure(error)
            raise
        finally:
            recorder.close()
