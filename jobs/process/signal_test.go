package process

import (
	"testing"
	"time"

	"zorilla/jobs/work"
)

// A signal reaches those who handle it, and ends nobody else of the worker.
func TestSignalReachesWhoHandlesIt(t *testing.T) {
	w := start(t, Config{Grace: 100 * time.Millisecond}, script(t, `sleep 60 & other=$!
trap 'kill -0 $other && echo told; exit 4' USR1
echo ready
while :; do sleep 0.01; done`))
	awaitOutput(t, w, int64(len("ready\n")))
	w.Signal(10)
	if e := await(t, w); e.Code != 4 || e.Cause != work.Exited || output(t, w, work.Stdout) != "ready\ntold\n" {
		t.Errorf("%+v, %q, %q", e, output(t, w, work.Stdout), output(t, w, work.Stderr))
	}
	w.Signal(10) // nobody is there any more
}

func TestSignalEndsNobody(t *testing.T) {
	root := newRoot(t)
	w := start(t, Config{Grace: 100 * time.Millisecond}, Spec{Root: root, Args: []string{"/bin/sh", "-c", `echo ready; ` + gateText + `echo went on`}, UID: -1})
	awaitOutput(t, w, int64(len("ready\n")))
	w.Signal(10)
	w.Signal(0)
	w.Signal(1 << 20)
	openGate(t, root)
	if e := await(t, w); e.Code != 0 || output(t, w, work.Stdout) != "ready\nwent on\n" {
		t.Errorf("%+v, %q", e, output(t, w, work.Stdout))
	}
}
