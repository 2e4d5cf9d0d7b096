"""What became of a trial, in a few words and a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from hookviz.hook_lab import Trial


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether anything changed, a title for it, and why."""

    changed: bool
    title: str
    reason: str


def verdict(trial: Trial) -> Verdict:
    """What the hook did to the prediction, or to the gradients that reach the network's input."""
    if trial.experiment.is_backward:
        changed = not _equal(trial.before.input_gradient, trial.after.input_gradient)
    else:
        changed = not _equal(trial.before.logits, trial.after.logits)
    title = "changed" if changed else "unchanged, bit for bit"
    if trial.before.logits is None and not trial.experiment.is_backward:
        return Verdict(False, "no classes", _reason(trial, changed=False))
    return Verdict(changed, title, _reason(trial, changed=changed))


def _equal(before: Tensor | None, after: Tensor | None) -> bool:
    if before is None or after is None:
        return before is after
    return torch.equal(before, after)


def _reason(trial: Trial, *, changed: bool) -> str:
    said = _what_happened(trial, changed=changed)
    if trial.experiment.is_backward:
        said += " A backward hook fires after the forward, so the prediction is the same."
    if trial.emulated:
        said += (
            " On this layer torch’s own hook raises, since an operation writes in place into what the layer takes or "
            "returns; hookviz set it on tensors instead."
        )
    return said


def _what_happened(trial: Trial, *, changed: bool) -> str:
    if not trial.seen:
        return "The hook never fired: this layer does not run here."
    action, replaces = trial.experiment.action, _WORDS[trial.experiment.kind]
    if action == "look":
        return "The hook returned None, so the network went on as without it."
    if action == "not_returned":
        return (
            f"The hook made a new tensor and returned None, so the network went on with {replaces} it had. "
            "A change counts only where it is returned."
        )
    if action == "in_place":
        owners = f", the memory of what {_listed(trial.overwritten)} returned" if trial.overwritten else ""
        owners = owners.replace("what the network's input returned", "the network’s input")
        return f"The hook returned None, and yet wrote zeros into {replaces}{owners}. {_EFFECT[changed]}"
    if trial.seen[0].returned.startswith("nothing"):
        return "The function returned None."
    return f"What the hook returned took the place of {replaces}."


_WORDS = {
    "forward": "the output",
    "forward_pre": "the arguments",
    "backward": "the gradient of the input",
    "backward_pre": "the gradient of the output",
}
_EFFECT = {
    True: "Everybody who holds that tensor sees the zeros, and the values are gone.",
    False: "Nothing behind it depended on these values.",
}


def _listed(names: tuple[str, ...]) -> str:
    """The innermost names; a container returns what its last part returned."""
    inner = [one for one in names if not any(other.startswith(f"{one}.") for other in names)]
    return " and ".join(inner[:3]) + (f" and {len(inner) - 3} more" if len(inner) > 3 else "")
