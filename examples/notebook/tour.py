# %% [markdown]
# Cells of a notebook, for Jupyter (with jupytext) or VS Code, or to be run as a whole.

# %%
import zorilla


# %%
def primes_below(n):
    """Counts them; print shows where it runs."""
    import socket

    print("on", socket.gethostname())
    sieve = bytearray([1]) * n
    for i in range(2, int(n**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(sieve[i * i :: i]))
    return sum(sieve[2:])


# %% A task for each item
job = zorilla.map(primes_below, [10**k for k in range(2, 7)])
print(job.result())

# %% One call, of a job with options
job = zorilla.submit(primes_below, n=1000, options=["--mem", "200M", "-t", "1m"])
print(job.result(), job.state(), job.logs())


# %% Large arguments stay where they are until the nodes have read them
def length(text):
    return len(text)


job = zorilla.submit(length, "x" * 3_000_000)
print(job.result())


# %% What fails says so here
def broken(x):
    return 1 / x


try:
    zorilla.map(broken, [1, 0]).result()
except zorilla.Failed as e:
    print(e)


# %% So does what cannot be brought here
def made_here():
    return lambda: 1


try:
    zorilla.submit(made_here).result()
except zorilla.Failed as e:
    print(e)
