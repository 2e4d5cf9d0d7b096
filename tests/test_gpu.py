"""C81: the accelerator shows what the CPU shows."""

from __future__ import annotations

import pytest
import torch

from hookviz import channel_maps, list_layers, load_model, load_sample, record, summarize

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU, and this machine has none")


def test_maps_on_the_gpu_agree_with_those_of_the_cpu() -> None:
    image = load_sample("grace_hopper")
    on_gpu, on_cpu = load_model("efficientnet_lite0", device="cuda"), load_model("efficientnet_lite0", device="cpu")
    maps = {}
    for model in (on_gpu, on_cpu):
        with torch.no_grad(), record(model.module, "conv_stem") as rec:
            model.module(model.prepare(image))
        maps[model.device.type] = channel_maps(rec["conv_stem"].output).maps
        assert rec["conv_stem"].output.device.type == model.device.type
    torch.testing.assert_close(torch.from_numpy(maps["cuda"]), torch.from_numpy(maps["cpu"]), rtol=1e-3, atol=1e-3)
    assert [one.index for one in on_gpu.predict(image)] == [one.index for one in on_cpu.predict(image)]


def test_gradients_that_fire_on_autograds_own_thread_belong_to_the_recording() -> None:
    model = load_model("simple_cnn", device="cuda")
    batch = model.prepare(load_sample("digit_3"))
    with record(model.module, "conv1", gradients=True) as rec:
        model.module(batch)[0, 3].backward()
    assert rec["conv1"].grad_output.device.type == "cuda"
    assert rec["conv1"].grad_output.abs().max() > 0


def test_fifty_runs_leave_the_gpus_memory_flat() -> None:
    model = load_model("efficientnet_lite0", device="cuda")
    batch = model.prepare(load_sample("grace_hopper"))
    allocated = []
    for _ in range(50):
        with torch.no_grad(), record(model.module) as rec:
            model.module(batch)
        summarize(rec["conv_stem"].output)
        list_layers(model.module, batch)
        allocated.append(torch.cuda.memory_allocated())
    assert max(allocated[10:]) <= allocated[9] + 2**20
