from __future__ import annotations

import contextlib
import copy
import gc
import io
import pickle
import threading
import weakref
from collections import OrderedDict
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision import models

from hookviz.errors import AmbiguousCallError, HookvizError, KeepError, NotRecordedError, UnknownLayerError
from hookviz.hooks import record
from hookviz.statistics import summarize
from tests.nets import (
    AliasNet,
    Boxes,
    FifthFailsNet,
    FunctionalNet,
    InplaceReLUNet,
    KeywordNet,
    Pair,
    PlainBag,
    ResidualInplaceNet,
    Returning,
    ReusedReLUNet,
    clones_at_hook_time,
    fingerprint,
    hook_count,
    same,
)


def picture(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7))


def test_inplace_activation_does_not_overwrite_the_convolution() -> None:
    """C01: the next in-place ReLU writes into the memory a naive hook stored."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    with record(net, "0") as rec:
        net(x)
    conv = net[0]
    assert isinstance(conv, nn.Conv2d)
    assert torch.equal(rec["0"].output, F.conv2d(x, conv.weight, conv.bias))
    assert rec["0"].output.min() < 0


def test_functional_inplace_relu_does_not_overwrite_either() -> None:
    """C01: the same through F.relu_, which no module hook sees."""
    net, x = FunctionalNet(), picture(1, 3, 8, 8)
    with record(net, "conv") as rec:
        net(x)
    assert torch.equal(rec["conv"].output, F.conv2d(x, net.conv.weight, net.conv.bias))


def test_inplace_layer_does_not_overwrite_its_own_input() -> None:
    """C01: an input is kept as it was when the module was called."""
    net, x = nn.Sequential(nn.ReLU(inplace=True)), picture(2, 5)
    before = x.clone()
    with record(net, inputs=True) as rec:
        net(x)
    assert torch.equal(rec["0"].input[0], before)
    assert torch.equal(rec["0"].output, before.clamp(min=0))


def test_every_call_of_a_reused_module_is_kept_in_order() -> None:
    """C02: one ReLU used twice, with different widths."""
    net, x = ReusedReLUNet(), picture(1, 4)
    with record(net) as rec:
        net(x)
    first = F.relu(net.first(x))
    assert [call.output.shape for call in rec["relu"]] == [(1, 6), (1, 3)]
    assert torch.equal(rec["relu"][0].output, first)
    assert torch.equal(rec["relu"][1].output, F.relu(net.second(first)))
    assert list(rec) == ["first", "relu", "second", ""]


def test_resnet_relu_is_called_twice_in_a_block() -> None:
    """C02: relu of bn1's output, then of the residual sum."""
    net, x = models.resnet18().eval(), picture(1, 3, 64, 64)
    with torch.no_grad(), record(net, "layer1.0.*") as rec:
        net(x)
    assert len(rec["layer1.0.relu"]) == 2
    assert torch.equal(rec["layer1.0.relu"][0].output, F.relu(rec["layer1.0.bn1"].output))
    assert torch.equal(rec["layer1.0.relu"][1].output, rec["layer1.0.relu"][1].output.clamp(min=0))


def test_asking_a_reused_layer_for_its_one_output_says_which_calls_there_are() -> None:
    """C02: statistics must not silently pool the calls."""
    net = ReusedReLUNet()
    with record(net, "relu") as rec:
        net(picture(1, 4))
    with pytest.raises(AmbiguousCallError, match=r"'relu' was called 2 times .* rec\['relu'\]\[0\]"):
        _ = rec["relu"].output
    with pytest.raises(IndexError, match="there is no call 2"):
        _ = rec["relu"][2]


def test_one_module_under_two_names_is_recorded_once_and_found_by_both() -> None:
    """C02: named_modules() lists the first name only."""
    net, x = AliasNet(), picture(1, 3)
    with record(net, "tied") as rec:
        net(x)
    assert list(rec) == ["encoder.0"]
    assert len(rec["tied"]) == len(rec["encoder.0"]) == 2
    assert torch.equal(rec["tied"][1].output, net.tied(net.tied(x)))
    assert "tied" in rec


OUTPUTS: dict[str, tuple[Any, list[tuple[str, tuple[int, ...]]]]] = {
    "namedtuple": (lambda x: Pair(x, None), [("mean", (2, 3))]),
    "one_tuple": (lambda x: (x,), [("0", (2, 3))]),
    "list": (lambda x: [x, x * 2], [("0", (2, 3)), ("1", (2, 3))]),
    "ordered_dict": (lambda x: OrderedDict(out=x, low={"deep": x[:1]}), [("out", (2, 3)), ("low.deep", (1, 3))]),
    "frozen_dataclass": (lambda x: Boxes(x[0], "cat"), [("scores", (3,))]),
    "plain_object": (lambda x: PlainBag(x, [(1, 2)]), [("tensors", (2, 3))]),
    "return_type": (lambda x: torch.max(x, dim=1), [("0", (2,)), ("1", (2,))]),
    "none": (lambda x: None, []),
    "words": (lambda x: "words", []),
    "size": (lambda x: x.shape, []),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_the_structure_a_module_returned_is_kept(kind: str) -> None:
    """C09: outputs that are not one tensor keep their type; what flows on is the very same object."""
    make, expected = OUTPUTS[kind]
    made: list[Any] = []
    net = Returning(lambda x: made.append(make(x)) or made[-1])  # type: ignore[func-returns-value]
    x = picture(2, 3)
    with record(net) as rec:
        returned = net(x)
    call = rec[""]
    assert returned is made[0]
    assert type(call.output) is type(returned)
    assert [(info.path, info.shape) for info in call.output_info] == expected
    x.fill_(9)
    fresh = make(picture(2, 3))
    if isinstance(fresh, (tuple, dict, str, list, type(None))):
        assert same(call.output, fresh)


def test_objects_of_other_libraries_are_copied_not_changed() -> None:
    """C09: the tensors in a plain object are kept as they were, and the object that flows on is left alone."""
    bag = PlainBag(torch.ones(2), [(1, 2)])
    net = Returning(lambda _: bag)
    with record(net) as rec:
        net(torch.zeros(1))
    bag.tensors.zero_()
    assert rec[""].output.tensors.tolist() == [1, 1]
    assert rec[""].output is not bag
    assert rec[""].output.sizes == [(1, 2)]


def test_a_structure_that_contains_itself_is_kept() -> None:
    loop: list[Any] = [torch.ones(1)]
    loop.append(loop)
    net = Returning(lambda _: loop)
    with record(net) as rec:
        net(torch.zeros(1))
    kept = rec[""].output
    assert kept[1] is kept
    assert kept[0] is not loop[0]


@pytest.mark.parametrize("layer", [nn.LSTM(3, 4), nn.MultiheadAttention(4, 2)])
def test_recurrent_and_attention_outputs_keep_every_leaf(layer: nn.Module) -> None:
    """C09: (Tensor, (h, c)) and (Tensor, None)."""
    arguments = (picture(5, 1, 3),) if isinstance(layer, nn.LSTM) else (picture(5, 1, 4),) * 3
    options = {} if isinstance(layer, nn.LSTM) else {"need_weights": False}
    with torch.no_grad(), record(layer) as rec:
        expected = layer(*arguments, **options)
    assert same(rec[""].output, expected)
    paths = [info.path for info in rec[""].output_info]
    assert paths == (["0", "1.0", "1.1"] if isinstance(layer, nn.LSTM) else ["0"])


def test_detection_model_lists_every_leaf_of_every_child() -> None:
    """C09: ImageList, OrderedDict, dict and list outputs of ssdlite, each equal to a clone made at hook time."""
    net = models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None).eval()
    image = picture(3, 64, 64).sigmoid()
    with torch.no_grad():
        _, expected = clones_at_hook_time(net, [image.clone()])
        with record(net) as rec:
            net([image])
    assert [info.path for info in rec["transform"].output_info] == ["0.tensors"]
    assert list(rec["backbone"].output) == list(expected["backbone"][0])
    compared = [name for name in expected if isinstance(expected[name][0], (Tensor, dict))]
    assert len(compared) > 100
    assert all(same(rec[name][0].output, expected[name][0]) for name in compared)


def test_hooks_are_gone_after_a_failed_forward_and_the_error_is_torchs_own() -> None:
    """C21: after one failed run nothing stays to pollute the next."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.MaxPool2d(4))
    with pytest.raises(RuntimeError, match="Output size is too small"), record(net):
        net(picture(1, 3, 4, 4))
    assert hook_count(net) == 0
    with record(net) as rec:
        net(picture(1, 3, 12, 12))
    assert [len(calls) for calls in rec.values()] == [1, 1, 1]


class StreamlitLikeRerun(BaseException):
    pass


@pytest.mark.parametrize("error", [StreamlitLikeRerun, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_hooks_are_gone_after_an_exception_that_is_not_an_error(error: type[BaseException]) -> None:
    """C23: Streamlit stops a script with a control exception, a person with Ctrl-C."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)

    def interrupt(_: Tensor) -> None:
        raise error

    with pytest.raises(error), record(net, keep=interrupt):
        net(x)
    assert hook_count(net) == 0


def test_hooks_are_gone_when_registration_itself_fails() -> None:
    net = nn.Sequential(nn.Linear(2, 2), torch.jit.script(nn.Linear(2, 2)))
    with pytest.raises(HookvizError, match="not its scripted form"), record(net):
        pass
    assert hook_count(nn.Sequential(net[0])) == 0


def test_other_peoples_hooks_survive_and_still_fire() -> None:
    net, x, fired = InplaceReLUNet(), picture(1, 3, 8, 8), []
    net[0].register_forward_hook(lambda *_: fired.append(1))
    net[0].register_forward_pre_hook(lambda *_: None)
    with record(net, inputs=True):
        net(x)
    net(x)
    assert hook_count(net) == 2
    assert fired == [1, 1]


def test_a_forward_without_gradients_keeps_no_graph() -> None:
    """C24, C37: what is kept never holds a graph, whatever the grad mode."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8).requires_grad_()
    with record(net, inputs=True) as rec:
        net(x)
    kept = [call.output for calls in rec.values() for call in calls]
    kept += [tensor for calls in rec.values() for call in calls for tensor in call.input]
    assert len(kept) == 6
    assert not any(tensor.requires_grad for tensor in kept)
    assert all(tensor.grad_fn is None for tensor in kept)


def test_memory_of_outputs_goes_with_the_last_name_without_the_garbage_collector() -> None:
    """C24: what a plain recording kept is there for the next one to use again."""
    net, x = ResidualInplaceNet(), picture(1, 3, 8, 8)
    gc.collect()
    gc.disable()
    try:
        with record(net) as rec:
            net(x)
        watched = [weakref.ref(rec["conv"].output), weakref.ref(rec), weakref.ref(net)]
        del rec, net
        assert [one() for one in watched] == [None] * 3
    finally:
        gc.enable()


def test_memory_goes_with_the_last_name_without_the_garbage_collector() -> None:
    """C24: no reference cycle holds activations, gradients or the model."""
    net, x = ResidualInplaceNet(), picture(1, 3, 8, 8).requires_grad_()
    gc.collect()
    gc.disable()
    try:
        with record(net, gradients=True, inputs=True) as rec:
            net(x).sum().backward()
        watched = [
            weakref.ref(rec["conv"].output),
            weakref.ref(rec["conv"].grad_output),
            weakref.ref(rec),
            weakref.ref(net),
        ]
        del rec, net
        assert [one() for one in watched] == [None] * 4
    finally:
        gc.enable()


def test_a_recording_speaks_of_its_last_run() -> None:
    """C43: A, B, then A again on one recording gives A, and one call per layer."""
    net = InplaceReLUNet()
    a, b = picture(1, 3, 8, 8), -picture(1, 3, 8, 8)
    with record(net) as rec:
        net(a)
        first = rec["0"].output
        net(b)
        assert not torch.equal(rec["0"].output, first)
        net(a)
    assert torch.equal(rec["0"].output, first)
    assert [len(calls) for calls in rec.values()] == [1, 1, 1]
    assert len(rec.runs) == 1


def test_several_layers_over_mini_batches_keep_every_row_in_order() -> None:
    """C62: 3 layers, batches of 4, 4, 4, 4, 2."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True)).eval()
    images = picture(18, 3, 6, 6)
    with torch.no_grad():
        with record(net, ["0", "1", "2"], keep_runs=True) as rec:
            for batch in images.split([4, 4, 4, 4, 2]):
                net(batch)
        _, whole = clones_at_hook_time(net, images)
    for name in ("0", "1", "2"):
        rows = torch.cat([run[name].output for run in rec.runs])
        assert rows.shape == (18, 4, 4, 4)
        torch.testing.assert_close(rows, whole[name][0])


def test_parts_called_by_themselves_are_runs() -> None:
    """A run is one call of the network, or one outermost call of a part of it."""
    net, x = models.vgg11().eval(), picture(1, 3, 32, 32)
    with torch.no_grad(), record(net, ["features.0", "features.3", "classifier.0"], keep_runs=True) as rec:
        features = net.features(x)
        net.features[0](x)
    assert [list(run) for run in rec.runs] == [["features.0", "features.3"], ["features.0"]]
    assert features.shape == (1, 512, 1, 1)
    assert rec.not_called == ("features.3", "classifier.0")


class PartedNet(nn.Module):
    """Two parts; the first begins by giving on its input, and fails on vectors of three after one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Identity(), nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)), nn.Identity())
        self.head = nn.Sequential(nn.Linear(4, 2))

    def forward(self, x: Tensor) -> Any:
        return self.head(self.body(x))


PARTS = ["body.0", "body.1.0", "body.1.1", "body.1", "body.2", "body"]


@pytest.mark.parametrize("options", [{}, {"inputs": True}, {"keep": torch.clone}], ids=["outputs", "inputs", "keep"])
def test_parts_of_a_wholly_recorded_network_are_runs_too(options: dict[str, Any]) -> None:
    """Whatever is called by itself: a part, a part of that, one layer, the whole; each run is exact."""
    net, x = PartedNet(), picture(1, 4)
    called = [net.get_submodule(one) for one in ("body", "body.1", "body.1.0", "", "body")]
    with torch.no_grad():
        expected = [clones_at_hook_time(one, x) for one in called]
        with record(net, keep_runs=True, **options) as rec:
            outputs = [one(x) for one in called]
            x.zero_()
            for output in outputs:
                output.mul_(2)
    whole = [*PARTS, "head.0", "head", ""]
    assert [list(run) for run in rec.runs] == [PARTS, PARTS[1:4], ["body.1.0"], whole, PARTS]
    prefixes = ["body", "body.1", "body.1.0", "", "body"]
    for run, prefix, (_, values) in zip(rec.runs, prefixes, expected, strict=True):
        for name, calls in values.items():
            assert same([call.output for call in run[".".join(filter(None, (prefix, name)))]], calls)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_part_that_is_broken_off_leaves_the_next_runs_clean(error: type[BaseException]) -> None:
    """C65: torch tells its hooks of no KeyboardInterrupt."""
    net, x = PartedNet(), picture(1, 4)

    def broken(_: Tensor) -> Tensor:
        raise error("here")

    with torch.no_grad(), record(net) as rec:
        net.body[2].forward = broken
        with pytest.raises(error):
            net.body(x)
        assert list(rec) == ["body.0", "body.1.0", "body.1.1", "body.1"]
        if error is ValueError:
            assert rec.failed is not None
            assert rec.failed.layer == "body.2"
        del net.body[2].forward
        net(x)
        assert rec.failed is None
        assert list(rec) == [*PARTS, "head.0", "head", ""]
        net.body(x)
        assert list(rec) == PARTS
    assert hook_count(net) == 0


@pytest.mark.parametrize("attempt", range(20))
def test_a_recording_that_several_threads_read_at_once_is_read_whole(attempt: int) -> None:
    """C15: calls are put in order when they are first asked for."""
    net, x = ReusedReLUNet(), picture(1, 4)
    with torch.no_grad(), record(net) as rec:
        net(x)
    found: list[dict[str, int]] = []
    together = threading.Barrier(4)

    def read() -> None:
        together.wait()
        found.append({name: len(calls) for name, calls in rec.items()})

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"first": 1, "relu": 2, "second": 1, "": 1}] * 4


def test_copy_made_while_recording_does_not_write_into_the_record() -> None:
    """C51: the copy's hook writes into the original's store."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    with record(net) as rec:
        net(x)
        before = rec["0"].output.clone()
        twin = copy.deepcopy(net)
        for parameter in twin.parameters():
            parameter.data.zero_()
        twin(x)
        assert torch.equal(rec["0"].output, before)
        assert len(rec.runs) == 1


def test_saving_while_recording_is_refused_in_a_sentence_and_works_afterwards() -> None:
    """C52: the file must not hold activations."""
    net, x = InplaceReLUNet(), picture(1, 3, 200, 200)
    with record(net) as rec:
        net(x)
        with pytest.raises(HookvizError, match="hookviz is recording this model"):
            torch.save(net, io.BytesIO())
        torch.save(net.state_dict(), io.BytesIO())
    file = io.BytesIO()
    torch.save(net, file)
    assert file.tell() < 10_000
    assert rec["0"].output.numel() > 100_000


def test_a_recording_itself_can_be_pickled() -> None:
    net, x = ReusedReLUNet(), picture(1, 4).requires_grad_()
    with record(net, gradients=True, inputs=True) as rec:
        net(x).sum().backward()
    again = pickle.loads(pickle.dumps(rec))
    assert same(again["relu"][1].grad_output, rec["relu"][1].grad_output)
    assert same(again["first"].input, rec["first"].input)


def test_keyword_arguments_are_inputs_too() -> None:
    """C57: lin(input=x) has no positional arguments."""
    net, x = KeywordNet(), picture(1, 3)
    with record(net, "lin", inputs=True) as rec:
        net(x)
    assert rec["lin"].input == ()
    assert list(rec["lin"].kwargs) == ["input"]
    assert torch.equal(rec["lin"].kwargs["input"], x)
    assert [(info.path, info.shape) for info in rec["lin"].input_info] == [("input", (1, 3))]


@pytest.mark.parametrize("junk", [0, False, (), torch.zeros(1), "x", {"a": 1}])
def test_what_a_keep_function_returns_never_reaches_the_network(junk: Any) -> None:
    """C58: a hook's return value replaces the output."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    expected = net(x)
    with record(net, keep=lambda _: junk, inputs=True) as rec:
        out = net(x)
    assert torch.equal(out, expected)
    assert same(rec["0"].output, junk)


@pytest.mark.parametrize("grad_mode", [torch.no_grad, torch.enable_grad])
def test_transformer_layer_computes_the_same_while_recorded(grad_mode: Any) -> None:
    """C59: hooks switch torch's fused encoder layer off; outputs stay within 1e-5 and gradients are unaffected."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = picture(2, 5, 8)
    with grad_mode():
        expected = layer(x)
        with record(layer) as rec:
            out = layer(x)
    assert (out - expected).abs().max() <= 1e-5
    assert torch.equal(rec[""].output, out)
    assert "linear1" in rec or "linear1" in rec.not_called


def test_values_recorded_in_inference_mode_can_train_a_head() -> None:
    """C60: inference tensors cannot be saved for backward."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    with torch.inference_mode(), record(net, inputs=True) as rec:
        net(x)
    head = nn.Conv2d(4, 2, 1)
    head(rec["0"].output).sum().backward()
    assert head.weight.grad is not None
    torch.testing.assert_close(head.weight.grad[0, :, 0, 0], rec["0"].output.sum((0, 2, 3)))
    assert not rec["0"].input[0].is_inference()


def test_auxiliary_heads_keep_their_names_and_are_reported_as_not_called_in_eval() -> None:
    """C63: train returns fields logits, aux_logits2, aux_logits1; eval a tensor."""
    net = models.googlenet(weights=None, init_weights=False, aux_logits=True)
    x = picture(2, 3, 96, 96)
    with record(net, ["", "aux1", "aux2"]) as rec:
        net.train()(x)
    assert rec[""].output._fields == ("logits", "aux_logits2", "aux_logits1")
    assert [info.path for info in rec[""].output_info] == ["logits", "aux_logits2", "aux_logits1"]
    with torch.no_grad(), record(net, ["", "aux1", "aux2"]) as rec:
        net.eval()(x)
    assert rec.not_called == ("aux1", "aux2")
    with pytest.raises(UnknownLayerError, match="was not called"):
        _ = rec["aux1"]


def test_what_was_kept_stands_beside_what_there_was() -> None:
    """C64: shape and dtype of the raw tensor beside those of its spatial mean."""
    net, x = InplaceReLUNet(), picture(2, 3, 8, 8)
    with record(net, keep=lambda t: t.mean((2, 3)).double()) as rec:
        net(x)
    call = rec["0"]
    assert call.output.shape == (2, 4)
    assert call.output.dtype == torch.float64
    assert (call.output_info[0].shape, call.output_info[0].dtype) == ((2, 4, 6, 6), "float32")


def test_a_kept_view_does_not_change_when_the_network_overwrites_it() -> None:
    """C64 with C01: keep may return part of the live tensor."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    with record(net, "0", keep=lambda t: t[:, :1]) as rec:
        net(x)
    conv = net[0]
    assert isinstance(conv, nn.Conv2d)
    assert torch.equal(rec["0"].output, F.conv2d(x, conv.weight, conv.bias)[:, :1])


def test_keep_may_summarize() -> None:
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    with record(net, "0", keep=summarize) as rec:
        net(x)
    assert rec["0"].output.count == 4 * 36


def test_a_failing_keep_function_is_reported_with_the_layers_name() -> None:
    """C64: and leaves no hook."""
    net = InplaceReLUNet()
    with (
        pytest.raises(KeepError, match="keep function failed on layer '0': ZeroDivisionError"),
        record(net, keep=lambda _: 1 / 0),
    ):
        net(picture(1, 3, 8, 8))
    assert hook_count(net) == 0


def test_a_keep_function_that_writes_is_refused() -> None:
    """C58: looking must not change what the network computes."""
    net = InplaceReLUNet()
    with pytest.raises(KeepError, match="wrote into the tensor of layer '0'"), record(net, keep=lambda t: t.zero_()):
        net(picture(1, 3, 8, 8))
    assert hook_count(net) == 0


def test_a_forward_that_fails_midway_shows_what_ran_and_names_the_layer() -> None:
    """C65: four layers shown, the fifth named with its input and torch's error."""
    net, x = FifthFailsNet(), picture(1, 4)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes"), record(net) as rec:
        net(x)
    assert list(rec) == ["0", "1", "2", "3"]
    assert rec.failed is not None
    assert (rec.failed.layer, rec.failed.class_name) == ("4", "Linear")
    assert rec.failed.input_info[0].shape == (1, 6)
    assert str(rec.failed).startswith(
        "layer '4' (Linear) failed on an input of shape (1, 6): RuntimeError: mat1 and mat2"
    )
    assert torch.equal(rec["2"].output, net[2](F.relu(net[0](x))))


def test_the_failing_layer_is_named_also_when_the_caller_catches_the_error() -> None:
    """C65: and when only another layer was chosen."""
    net = FifthFailsNet()
    with record(net, "0") as rec:
        with pytest.raises(RuntimeError):
            net(picture(1, 4))
        assert rec.failed is not None
    assert rec.failed.layer == "4"


def test_a_run_after_a_failure_is_clean() -> None:
    net = nn.Sequential(nn.Linear(4, 5), nn.ReLU())
    with record(net) as rec:
        with pytest.raises(RuntimeError):
            net(picture(1, 3))
        net(picture(1, 4))
    assert rec.failed is None
    assert [len(calls) for calls in rec.values()] == [1, 1, 1]


def test_batchnorm_on_one_value_names_the_layer() -> None:
    """C82: torch's own error, with the layer."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    with pytest.raises(ValueError, match="more than 1 value per channel"), record(net) as rec:
        net(picture(1, 3, 3, 3))
    assert rec.failed is not None
    assert rec.failed.layer == "1"


def test_recording_in_train_mode_adds_no_change_of_its_own() -> None:
    """C20: the user's run updates the statistics once, as it would without hookviz."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5))
    twin, x = copy.deepcopy(net), picture(2, 3, 8, 8)
    torch.manual_seed(0)
    expected = twin(x)
    torch.manual_seed(0)
    with record(net) as rec:
        out = net(x)
    assert torch.equal(out, expected)
    assert torch.equal(rec["2"].output, expected)
    assert same(fingerprint(net), fingerprint(twin))


def test_structured_arguments_stay_as_they_are() -> None:
    """C83: a list stays one argument, a dict another."""

    class Net(nn.Module):
        def forward(self, feats: list[Tensor], batch: dict[str, Tensor], *, scale: float) -> Tensor:
            return feats[0] + batch["x"] * scale

    net = Net()
    with record(net, inputs=True) as rec:
        net([torch.ones(1)], {"x": torch.ones(1)}, scale=2.0)
    assert same(rec[""].input, ([torch.ones(1)], {"x": torch.ones(1)}))
    assert rec[""].kwargs == {"scale": 2.0}


def test_unknown_names_globs_and_types_are_refused_before_anything_runs() -> None:
    net = models.resnet18()
    with pytest.raises(UnknownLayerError, match="no layer 'layer5' in ResNet; did you mean 'layer4'"):
        record(net, "layer5")
    with pytest.raises(UnknownLayerError, match=r"matches 'layer9\.\*'"):
        record(net, ["conv1", "layer9.*"])
    with pytest.raises(UnknownLayerError, match="LSTM"):
        record(net, nn.LSTM)
    with pytest.raises(KeyError):
        record(net, "nothing like it")
    assert hook_count(net) == 0


def test_layers_are_chosen_by_name_glob_type_module_or_a_list() -> None:
    net = models.resnet18().eval()
    x = picture(1, 3, 32, 32)
    choices: list[tuple[Any, int]] = [
        ("conv1", 1),
        ("layer1.*", 12),
        ("*.conv1", 8),
        (nn.Conv2d, 20),
        ([nn.Linear, "layer?.0.bn1"], 5),
        (net.layer4, 1),
        ("", 1),
        ([], 0),
    ]
    for choice, count in choices:
        with torch.no_grad(), record(net, choice) as rec:
            net(x)
        assert len(rec) == count, choice


def test_values_not_asked_for_say_how_to_get_them() -> None:
    net = InplaceReLUNet()
    with record(net) as rec:
        net(picture(1, 3, 8, 8))
    with pytest.raises(NotRecordedError, match="inputs=True"):
        _ = rec["0"].input
    with pytest.raises(NotRecordedError, match="gradients=True"):
        _ = rec["0"].grad_output
    with pytest.raises(UnknownLayerError, match="no layer 'convv'"):
        _ = rec["convv"]


def test_a_layer_that_was_not_chosen_is_told_from_one_that_does_not_exist() -> None:
    net = InplaceReLUNet()
    with record(net, "0") as rec:
        net(picture(1, 3, 8, 8))
    with pytest.raises(UnknownLayerError, match="was not recorded"):
        _ = rec["1"]
    assert rec.get("1") is None
    assert rec.get("nowhere") is None


def test_nothing_is_recorded_after_the_block() -> None:
    net = InplaceReLUNet()
    with record(net) as rec:
        net(picture(1, 3, 8, 8))
    before = rec["0"].output
    net(-picture(1, 3, 8, 8))
    assert rec["0"].output is before
    assert len(rec["0"]) == 1


def test_recordings_may_be_nested() -> None:
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    with record(net) as outer:
        with record(net, "0") as inner:
            net(x)
        net(-x)
    assert torch.equal(inner["0"].output, net[0](x))
    assert torch.equal(outer["0"].output, net[0](-x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_values_keep_their_dtype(dtype: torch.dtype) -> None:
    """C29, C30: what is kept has the network's own dtype."""
    net = nn.Linear(3, 2).to(dtype)
    x = picture(1, 3).to(dtype)
    with torch.no_grad(), record(net) as rec:
        expected = net(x)
    assert rec[""].output.dtype == dtype
    assert torch.equal(rec[""].output, expected)
    assert rec[""].output_info[0].dtype == str(dtype).removeprefix("torch.")


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.to_sparse(),
        lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
        lambda x: x > 0,
        lambda x: x.argmax(1),
        lambda x: torch.complex(x, x).conj(),
        lambda x: x[:, :0],
        lambda x: x.expand(4, 2, 3),
        lambda x: x.to("meta"),
    ],
)
def test_tensors_of_every_kind_are_kept(make: Any) -> None:
    """C30, C31, C34: quantized, sparse, boolean, integer, conjugate, empty, expanded, meta."""
    net, x = Returning(make), picture(2, 3)
    with torch.no_grad(), record(net) as rec:
        expected = net(x)
    kept = rec[""].output
    assert (kept.dtype, kept.shape, kept.layout) == (expected.dtype, expected.shape, expected.layout)
    if kept.device.type != "meta":
        assert torch.equal(_dense(kept), _dense(expected))


def _dense(tensor: Tensor) -> Tensor:
    return (
        tensor.dequantize() if tensor.is_quantized else tensor.to_dense() if tensor.is_sparse else tensor.resolve_conj()
    )


def test_recording_a_compiled_network_shows_the_eager_values_under_the_eager_names() -> None:
    """C25, C53: hooks set after the first compiled call would capture nothing, silently."""
    torch._dynamo.reset()
    net, x = InplaceReLUNet().eval(), picture(1, 3, 8, 8)
    compiled: Any = torch.compile(net, backend="eager")
    with torch.no_grad():
        compiled(x)
        _, expected = clones_at_hook_time(net, x)
        with record(compiled, "0") as rec:
            compiled(x)
        assert torch.equal(rec["0"].output, expected["0"][0])
        with record(net, "0") as rec:  # the eager one named, the compiled one run
            compiled(x)
        assert torch.equal(rec["0"].output, expected["0"][0])
    assert list(rec) == ["0"]
    assert hook_count(net) == 0


def test_a_network_compiled_in_place_or_in_part_is_recorded_too() -> None:
    """C25, C53: module.compile(), and a compiled child."""
    torch._dynamo.reset()
    x = picture(1, 3, 8, 8)
    in_place = InplaceReLUNet()
    in_place.compile(backend="eager")
    child: Any = torch.compile(InplaceReLUNet(), backend="eager")
    in_part = nn.Sequential(child, nn.Flatten())
    with torch.no_grad():
        in_place(x), in_part(x)
        with record(in_place) as rec:
            in_place(x)
        assert list(rec) == ["0", "1", ""]
        with record(in_part, ["0.0", "0"]) as rec:
            in_part(x)
    assert list(rec) == ["0.0", "0"]
    assert rec["0.0"].output.min() < 0


def test_compiled_code_is_used_again_after_the_last_recording() -> None:
    torch._dynamo.reset()
    calls: list[int] = []

    def backend(graph: Any, _: Any) -> Any:
        calls.append(1)
        return graph.forward

    net, x = nn.Linear(2, 2), picture(1, 2)
    compiled: Any = torch.compile(net, backend=backend)
    with record(compiled), record(compiled):
        compiled(x)
    assert calls == []
    compiled(x)
    assert calls == [1]


def test_data_parallel_layers_go_by_their_own_names() -> None:
    """C53: DataParallel lists module.0, also on a CPU."""
    net = InplaceReLUNet()
    wrapped, x = nn.DataParallel(net), picture(1, 3, 8, 8)
    keys = list(wrapped.state_dict())
    with record(wrapped, "0") as rec:
        wrapped(x)
    assert torch.equal(rec["0"].output, net[0](x))
    assert list(wrapped.state_dict()) == keys


def test_a_torchscript_module_is_refused_in_a_sentence() -> None:
    """C54: it would refuse or silently ignore hooks."""
    scripted = torch.jit.script(InplaceReLUNet())
    with pytest.raises(HookvizError, match=r"pass the nn\.Module it was made from"):
        record(scripted)


def test_tracing_while_recording_records_nothing_of_it_and_bakes_nothing_in() -> None:
    """C54: torch.jit.trace of a hooked module calls the hook three times."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    with record(net) as rec:
        traced = torch.jit.trace(net, x, check_trace=False)
        assert len(rec.runs) == 0
        net(x)
    assert [len(calls) for calls in rec.values()] == [1, 1, 1]
    assert torch.equal(traced(x), net(x))


def test_threads_on_one_model_never_see_each_other() -> None:
    """C03: 16 threads, each with its own image and its own recording of the same object."""
    net = models.resnet18().eval()
    images = [torch.full((1, 3, 32, 32), float(number)) for number in range(16)]
    with torch.no_grad():
        expected = [clones_at_hook_time(net, image)[1] for image in images]
    wrong: list[str] = []
    together = threading.Barrier(16)

    def visit(number: int) -> None:
        torch.set_num_threads(1)
        together.wait()
        for _ in range(3):
            with torch.no_grad(), record(net) as rec:
                net(images[number])
            for name, outputs in expected[number].items():
                if not same([call.output for call in rec[name]], outputs):
                    wrong.append(f"{number} {name}")

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert hook_count(net) == 0


def test_a_recording_does_not_see_another_threads_run() -> None:
    """C03: a thread that runs the model without recording anything."""
    net, x = InplaceReLUNet(), picture(1, 3, 8, 8)
    with record(net) as rec:
        other = threading.Thread(target=lambda: net(-x))
        other.start()
        other.join()
        assert len(rec.runs) == 0
        net(x)
    assert torch.equal(rec["0"].output, net[0](x))


def test_a_network_in_train_mode_is_left_as_it_was_found_when_its_forward_fails() -> None:
    """O5: flags, buffers, parameters, attributes and hooks."""
    net = models.resnet18().train()
    before = fingerprint(net)
    with record(net, inputs=True), pytest.raises(RuntimeError):
        net(picture(1, 2, 32, 32))
    assert same(fingerprint(net), before)


def test_a_stopped_recording_frees_its_memory_too() -> None:
    """C24: the exception that ends the forward must not hold its frames."""
    net, x = models.vgg11().eval(), picture(1, 3, 32, 32)
    gc.collect()
    gc.disable()
    try:
        with torch.no_grad(), record(net, "features.0", stop=True) as rec:
            net(x)
        watched = weakref.ref(rec["features.0"].output)
        del rec
        assert watched() is None
    finally:
        gc.enable()


def test_an_output_that_leads_to_half_the_program_is_not_followed_forever() -> None:
    class Chain:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

    end: Any = torch.ones(1)
    for _ in range(5000):
        end = Chain(end)
    net = Returning(lambda _: [end, torch.ones(1)])
    with record(net) as rec:
        net(torch.zeros(1))
    assert [info.path for info in rec[""].output_info] == ["1"]


def test_layers_chosen_by_nothing_sensible_are_refused_in_a_sentence() -> None:
    nothing: Any = None
    with pytest.raises(UnknownLayerError, match="name, glob, module or type, not by None"):
        record(nn.Linear(2, 2), nothing)
    with pytest.raises(UnknownLayerError, match="not by 3"):
        record(nn.Linear(2, 2), [3])  # type: ignore[list-item]  # the mistake under test


class Interrupted(nn.Module):
    """The first run is ended by Ctrl-C inside a block of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Identity())
        self.press = True

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.block(x)
        if self.press:
            self.press = False
            raise KeyboardInterrupt
        return y


def test_a_run_after_one_that_ctrl_c_ended_is_a_run_of_its_own() -> None:
    net = Interrupted()
    with record(net, keep_runs=True) as rec:
        with contextlib.suppress(KeyboardInterrupt):
            net(torch.zeros(1))
        net(torch.ones(1))
    assert [run["block.0"].output.tolist() for run in rec.runs] == [[0.0], [1.0]]
    assert rec[""].output.tolist() == [1.0]


class Recovering(nn.Module):
    """Runs a block that raises, and another one while that error is being handled."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = nn.Sequential(nn.Linear(99, 1))
        self.nothing = nn.Sequential(Returning(lambda _: None))
        self.spare = nn.Sequential(nn.Identity())

    def forward(self, x: Tensor) -> Any:
        try:
            return self.broken(x)
        except RuntimeError:
            self.nothing(x)
            return self.spare(x)


def test_layers_that_run_while_an_error_is_handled_are_recorded_and_those_that_raised_are_not() -> None:
    net = Recovering()
    with record(net) as rec:
        net(torch.ones(1, 2))
    assert list(rec) == ["nothing.0", "nothing", "spare.0", "spare", ""]
    assert rec["nothing"].output is None
    assert rec.not_called == ("broken", "broken.0")
    assert rec.failed is None


class Recursive(nn.Module):
    """Calls itself once."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Identity()

    def forward(self, x: Tensor, again: bool = True) -> Tensor:
        y: Tensor = self.same(x)
        return self(y + 1, False) if again else y


def test_a_network_that_calls_itself_is_one_run() -> None:
    net = Recursive()
    with record(net, keep_runs=True) as rec:
        net(torch.zeros(1))
        net(torch.zeros(1))
    assert len(rec.runs) == 2
    for run in rec.runs:
        assert [call.output.tolist() for call in run["same"]] == [[0.0], [1.0]]
        assert [call.output.tolist() for call in run[""]] == [[1.0], [1.0]]
