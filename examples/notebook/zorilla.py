"""Functions of a notebook as Zorilla jobs. It needs nothing but Python and zorilla in the PATH.

    import zorilla

    job = zorilla.map(simulate, [0.1, 0.2, 0.3])   # a task for each; returns at once
    job.result()                                   # waits: the list of what simulate returned
    zorilla.submit(simulate, 0.4, options=["--mem", "2G"]).result()

A function is sent as its source. It must import what it needs, and use no other names of the
notebook than its arguments; these and what it returns must be such as pickle takes.

The arguments lie in a temporary directory until wait, result or cancel have seen the end of the
job: nodes read what is large there when they need it. The job of a notebook that was closed
before ends as any other, and leaves that directory behind.
"""
import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import textwrap
import traceback


class Failed(Exception):
    """A function failed, or its job did: it says why."""


class Job:
    """A function that runs elsewhere, once for each item."""

    def __init__(self, function, calls, single, options):
        self.single, self.count = single, len(calls)
        source = textwrap.dedent(inspect.getsource(function))
        # Not a TemporaryDirectory: that would end with this object, which nobody need keep.
        self._dir = tempfile.mkdtemp(prefix="zorilla-call-")
        try:
            with open(self._dir + "/call.pickle", "wb") as f:
                pickle.dump((source, function.__name__, calls), f)
            self.id = _zorilla(
                "submit", "-J", function.__name__, "-a", f"1-{len(calls)}", *options,
                "-i", self._dir + "/call.pickle", "-i", os.path.abspath(__file__), "-o", "result-*",
                "--", "python3", os.path.basename(__file__),
            )
        except BaseException:
            self._forget()
            raise

    def _forget(self):
        """No node needs the arguments any more."""
        shutil.rmtree(self._dir, ignore_errors=True)

    def state(self):
        """PENDING, RUNNING, COMPLETED, FAILED or the like."""
        return json.loads(_zorilla("status", "--json", self.id))["state"]

    def cancel(self):
        _zorilla("cancel", self.id)
        self._forget()

    def logs(self):
        """What the function has printed."""
        return _zorilla("logs", self.id)

    def wait(self):
        """Returns when all calls have ended, however they did."""
        done = subprocess.run(["zorilla", "wait", "--json", self.id], capture_output=True, text=True)
        if not done.stdout:  # the exit code is that of the job, or says that its node is gone
            raise Failed(done.stderr.strip())
        self._forget()
        return self

    def result(self):
        """Waits, and returns what the function returned; of map a list, in the order of the items."""
        self.wait()
        with tempfile.TemporaryDirectory() as dir:
            _zorilla("get", "--into", dir, self.id)
            results = [self._result(dir, task) for task in range(1, self.count + 1)]
        return results[0] if self.single else results

    def _result(self, dir, task):
        try:
            with open(f"{dir}/result-{task}", "rb") as f:
                ok, value = pickle.load(f)
        except FileNotFoundError:
            raise Failed(f"call {task} of job {self.id} made no result: zorilla logs {self.id}:{task}") from None
        if not ok:
            raise Failed(f"call {task} of job {self.id}:\n{value}")
        return value


def submit(function, *args, options=(), **kwargs):
    """Runs function(*args, **kwargs) as a job. Options are those of zorilla submit."""
    return Job(function, [(args, kwargs)], True, options)


def map(function, items, options=()):
    """Runs function(item) for each of the items, as tasks of one job."""
    return Job(function, [((item,), {}) for item in items], False, options)


def _zorilla(*args):
    done = subprocess.run(["zorilla", *args], capture_output=True, text=True)
    if done.returncode:
        raise Failed(done.stderr.strip())
    return done.stdout.strip()


def _work():
    """What a task does."""
    task = int(os.environ["ZORILLA_TASK_ID"])
    with open("call.pickle", "rb") as f:
        source, name, calls = pickle.load(f)
    names = {"__name__": "notebook"}
    args, kwargs = calls[task - 1]
    try:
        exec(source, names)
        ok, result = True, pickle.dumps((True, names[name](*args, **kwargs)))
    except Exception:  # also of pickle
        ok, result = False, pickle.dumps((False, traceback.format_exc()))
    with open(f"result-{task}", "wb") as f:
        f.write(result)
    sys.exit(not ok)


if __name__ == "__main__":
    _work()
