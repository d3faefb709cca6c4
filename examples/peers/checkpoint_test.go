package peers_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"zorilla/examples/peers"
	"zorilla/examples/peers/crew"
)

func TestCheckpoint(t *testing.T) {
	for _, c := range []struct {
		wait   bool
		status int
		answer string
		asked  string
		saved  string
	}{
		{false, http.StatusAccepted, `{"number":7}`, "POST /v1/checkpoint?dir=state&wait=0", "{7 0 0 []}"},
		{true, http.StatusOK, `{"number":8,"bytes":4096,"files":2,"keepers":["a","b"]}`, "POST /v1/checkpoint?dir=state&wait=1", "{8 4096 2 [a b]}"},
	} {
		socket, asked := crew.Socket(t, c.status, c.answer)
		p := place(t, socket)
		saved, err := p.Checkpoint("state", c.wait)
		if got := <-asked; err != nil || fmt.Sprint(saved) != c.saved || got != c.asked {
			t.Errorf("asked %q, want %q; got %v, want %s; %v", got, c.asked, saved, c.saved, err)
		}
	}
}

func TestCheckpointRefused(t *testing.T) {
	socket, _ := crew.Socket(t, http.StatusNotFound, "404 page not found")
	p := place(t, socket)
	if _, err := p.Checkpoint("state", false); !errors.Is(err, peers.ErrNoCheckpoints) {
		t.Errorf("a node of an older version: %v", err)
	}
	p = place(t, "")
	if _, err := p.Checkpoint("state", false); !errors.Is(err, peers.ErrNoCheckpoints) {
		t.Errorf("nobody can be asked: %v", err)
	}
	socket, _ = crew.Socket(t, http.StatusConflict, "state: it has a socket")
	p = place(t, socket)
	if _, err := p.Checkpoint("state", true); fmt.Sprint(err) != "state: it has a socket" {
		t.Errorf("got %v", err)
	}
}

func TestRestart(t *testing.T) {
	env := map[string]string{"ZORILLA_JOB_ID": "j", "ZORILLA_RANK": "1", "ZORILLA_ATTEMPT": "2", "ZORILLA_MAX": "4", "ZORILLA_SLOTS": "1"}
	for text, want := range map[string]int{"": 0, "7": 7, "0": -1, "x": -1} {
		env["ZORILLA_RESTART"] = text
		p, err := peers.Here(func(name string) string { return env[name] })
		if (err != nil) != (want < 0) || want > 0 && p.Restart != want {
			t.Errorf("%q: checkpoint %d, %v", text, p.Restart, err)
		}
	}
}
