"""Data-parallel training with torch.distributed, as torchrun starts it: nothing here knows of Zorilla.

Every rank fits the same small network to data of its own; torch adds up their gradients. At the end all
must have the same parameters.
"""
import os
import socket
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, INPUTS = 200, 64, 32


def main():
    began = time.monotonic()
    dist.init_process_group("gloo")  # env://: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
    met = time.monotonic()
    rank, size = dist.get_rank(), dist.get_world_size()

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(INPUTS, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(1 + rank)
    truth = torch.linspace(-1, 1, INPUTS)
    for _ in range(STEPS):
        x = torch.randn(BATCH, INPUTS, generator=data)
        loss = torch.nn.functional.mse_loss(model(x), (x @ truth).unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    own = torch.cat([p.flatten() for p in net.parameters()]).detach()
    mean = own.clone()
    dist.all_reduce(mean)
    same = torch.allclose(mean / size, own, atol=1e-6)
    print(f"rank {rank} of {size} on {socket.gethostname()} (local {os.environ['LOCAL_RANK']}): met in {met - began:.2f} s,"
          f" {STEPS} steps in {time.monotonic() - met:.2f} s, loss {loss.item():.4f}, parameters equal: {same}", flush=True)
    dist.destroy_process_group()
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
