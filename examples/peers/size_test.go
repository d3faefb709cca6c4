package peers_test

import (
	"fmt"
	"net/http"
	"testing"

	"zorilla/examples/peers"
	"zorilla/examples/peers/crew"
)

func place(t *testing.T, socket string) peers.Place {
	t.Helper()
	env := map[string]string{"ZORILLA_JOB_ID": "j", "ZORILLA_RANK": "1", "ZORILLA_ATTEMPT": "1", "ZORILLA_MAX": "4", "ZORILLA_SLOTS": "1", "ZORILLA_SOCKET": socket}
	p, err := peers.Here(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestResize(t *testing.T) {
	socket, asked := crew.Socket(t, http.StatusOK, `{"wanted":3,"have":2,"min":1,"max":4}`)
	p := place(t, socket)
	for _, c := range []struct {
		workers int
		release []int
		want    string
	}{{0, nil, "GET /v1/workers"}, {3, nil, "POST /v1/workers?n=3"}, {3, []int{2, 1}, "POST /v1/workers?n=3&release=2&release=1"}, {0, []int{1}, "POST /v1/workers?release=1"}} {
		size, err := p.Resize(c.workers, c.release...)
		if got := <-asked; err != nil || size != (peers.Size{Wanted: 3, Have: 2, Min: 1, Max: 4}) || got != c.want {
			t.Errorf("asked %q, want %q; got %+v, %v", got, c.want, size, err)
		}
	}
}

func TestResizeRefused(t *testing.T) {
	socket, _ := crew.Socket(t, http.StatusConflict, "out of range: 9 workers")
	p := place(t, socket)
	if _, err := p.Resize(9); fmt.Sprint(err) != "out of range: 9 workers" {
		t.Errorf("got %v", err)
	}
	p = place(t, "")
	if _, err := p.Resize(2); err == nil {
		t.Error("nobody can be asked, and has answered")
	}
}
