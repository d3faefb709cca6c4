package workerapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWorkers(t *testing.T) {
	root := t.TempDir()
	d, err := Open(root, Handlers{Resize: func(_ context.Context, workers int, release []int) (any, error) {
		if workers == 9 {
			return nil, errors.New("out of range: 9 workers")
		}
		return map[string]any{"wanted": workers, "release": release}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	path := filepath.Join(root, Dir, Name)
	for _, c := range []struct {
		workers int
		release []int
	}{{0, nil}, {4, nil}, {4, []int{3, 0}}, {0, []int{2}}} {
		var got struct {
			Wanted  int
			Release []int
		}
		if err := Resize(t.Context(), path, c.workers, c.release, &got); err != nil || got.Wanted != c.workers || !slices.Equal(got.Release, c.release) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	if err := Resize(t.Context(), path, 9, nil, nil); fmt.Sprint(err) != "out of range: 9 workers" {
		t.Errorf("refused: %v", err)
	}
}

func TestSenselessNumbersOfWorkers(t *testing.T) {
	c := &counter{turn: make(chan struct{}, 1), resize: func(context.Context, int, []int) (any, error) {
		t.Error("asked")
		return nil, nil
	}}
	for _, request := range []string{"GET ?n=3", "POST ", "POST ?n=0", "POST ?n=-1", "POST ?n=x", "POST ?n=", "POST ?n=3&release=x", "POST ?release=-1", "POST ?" + strings.Repeat("release=1&", maxRelease+1)} {
		method, query, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		if c.serve(w, httptest.NewRequest(method, pathWorkers+query, nil)); w.Code != http.StatusBadRequest {
			t.Errorf("%.40s: %d", request, w.Code)
		}
	}
}

// A worker that asks without end asks its node, but not the job's origin.
func TestNumberOfWorkersIsAskedSoOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, asked := time.Now(), []time.Duration{}
		c := &counter{turn: make(chan struct{}, 1), resize: func(context.Context, int, []int) (any, error) {
			asked = append(asked, time.Since(begun))
			return 1, nil
		}}
		for range 5 {
			go c.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, pathWorkers, nil))
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		c.serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, pathWorkers, nil).WithContext(gone))
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(asked); n < 5 || n > 6 || asked[4] < 4*resizeEvery || asked[n-1] > 5*resizeEvery {
			t.Errorf("asked at %v", asked)
		}
	})
}
