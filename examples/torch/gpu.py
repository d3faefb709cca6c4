"""Checks what a program of PyTorch needs of a machine with a GPU, and measures it.

    zorilla run --gpus 1 -i gpu.py -- python3 gpu.py
    python3 gpu.py                                    the same without Zorilla, to compare
    zorilla run -i gpu.py -- python3 gpu.py --none    a job without GPUs sees none

Each check prints a line; the exit code is 1 if one of them fails. It takes about a minute.
"""
import argparse
import ctypes
import os
import sys
import time


def cuda_begins():
    """cuInit opens the driver's files and names a thread of its process; what it returns is what others call error 304."""
    code = ctypes.CDLL("libcuda.so.1").cuInit(0)
    assert code == 0, f"cuInit: {code}"
    return "cuInit: 0"


def sees_its_own():
    import torch

    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    want = len(given.split(",")) if given else None
    assert torch.cuda.is_available(), "torch sees no GPU"
    assert want in (None, torch.cuda.device_count()), f"torch sees {torch.cuda.device_count()} GPUs, {given} are its own"
    return f"{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}, torch {torch.__version__}"


def multiplies(size=8192, seconds=5.0):
    import torch

    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    best = 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        torch.cuda.synchronize()
        began = time.monotonic()
        for _ in range(20):
            a @ b
        torch.cuda.synchronize()
        best = max(best, 20 * 2 * size**3 / (time.monotonic() - began))
    return f"{best / 1e12:.0f} TFLOP/s (bf16, {size} x {size})"


def copies(size=1 << 30):
    import torch

    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    best = 0.0
    for _ in range(5):
        torch.cuda.synchronize()
        began = time.monotonic()
        device.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        best = max(best, size / (time.monotonic() - began))
    return f"{best / 2**30:.1f} GiB/s from pinned memory"


class Squares:
    """A data set, of which workers of the DataLoader make the items."""

    def __len__(self):
        return 2048

    def __getitem__(self, i):
        import torch

        return torch.full((64,), i % 16 / 16), torch.tensor([(i % 16 / 16) ** 2])


def trains(steps=200):
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    loader = torch.utils.data.DataLoader(Squares(), batch_size=64, shuffle=True, num_workers=2, pin_memory=True, persistent_workers=True)
    began, step, first = time.monotonic(), 0, None
    while step < steps:
        for x, y in loader:
            loss = torch.nn.functional.mse_loss(net(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            first = first or loss.item()
            step += 1
    assert loss.item() < first / 4, f"loss {first:.4f}, then {loss.item():.4f}"
    return f"{step} steps with two workers of the DataLoader in {time.monotonic() - began:.1f} s, loss {first:.4f} to {loss.item():.5f}"


def shares_by_descriptor():
    import torch
    import torch.multiprocessing as mp

    mp.set_sharing_strategy("file_descriptor")
    context = mp.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=send, args=(queue,))
    child.start()
    got = queue.get(timeout=120)
    total = got.sum().item()
    queue.put(None)
    child.join()
    assert total == 4096 and child.exitcode == 0, f"sum {total}, exit code {child.exitcode}"
    return "a tensor of another process"


def send(queue):
    import torch

    queue.put(torch.ones(4096))
    time.sleep(1)
    queue.get(timeout=60)


def reduces():
    import torch
    import torch.distributed as dist

    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "20000")):
        os.environ.setdefault(name, value)
    dist.init_process_group("nccl")
    x = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(x)
    assert x[0].item() == dist.get_world_size(), x[0].item()
    text = f"NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}, {dist.get_world_size()} ranks"
    dist.destroy_process_group()
    return text


def compiles():
    import torch

    f = torch.compile(lambda x: torch.nn.functional.gelu(x) * 2)
    x = torch.randn(4096, device="cuda")
    assert torch.allclose(f(x), torch.nn.functional.gelu(x) * 2, atol=1e-5)
    return "torch.compile"


def jax_computes():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    try:
        import jax
    except ImportError:
        return "no JAX here"
    assert jax.devices()[0].platform == "gpu", jax.devices()
    x = jax.numpy.ones((1024, 1024))
    assert float((x @ x)[0, 0]) == 1024
    return f"JAX {jax.__version__} on {jax.devices()[0]}"


def sees_none():
    import torch

    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0, "torch sees a GPU that the job was not given"
    files = [f for f in os.listdir("/dev") if f.startswith("nvidia")]
    assert not files, f"device files: {files}"
    return "no GPU is seen"


CHECKS = [cuda_begins, sees_its_own, multiplies, copies, trains, shares_by_descriptor, reduces, compiles, jax_computes]


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--none", action="store_true", help="check that no GPU is seen")
    failed = 0
    for check in [sees_none] if options.parse_args().none else CHECKS:
        try:
            print(f"ok    {check()}", flush=True)
        except Exception as e:
            failed += 1
            print(f"FAIL  {check.__name__}: {type(e).__name__}: {e}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
