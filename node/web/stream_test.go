package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// listener is a browser that takes an event stream; stuck makes it take nothing more.
type listener struct {
	mu     sync.Mutex // guards the fields below
	head   http.Header
	code   int
	text   strings.Builder
	broken bool
}

func (l *listener) Header() http.Header { return l.head }
func (l *listener) Flush()              {}

func (l *listener) WriteHeader(code int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.code = code
}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken {
		return 0, errors.New("connection reset")
	}
	return l.text.Write(p)
}

func (l *listener) got() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *listener) count(what string) int { return strings.Count(l.got(), what) }

// subscribe opens a stream inside a bubble. gone is closed when the handler has returned.
func subscribe(h *Handler, ctx context.Context, path string) (l *listener, gone chan struct{}) {
	l, gone = &listener{head: make(http.Header)}, make(chan struct{})
	r := httptest.NewRequest("GET", path, nil).WithContext(ctx)
	go func() {
		defer close(gone)
		h.guarded.ServeHTTP(l, r)
	}()
	return l, gone
}

func TestOverviewStreamGathersChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(network(3))
		ctx, cancel := context.WithCancel(t.Context())
		l, gone := subscribe(newPage(t, f), ctx, "/events")
		synctest.Wait()
		if n := l.count("event: view\n"); n != 1 || l.head.Get("Content-Type") != "text/event-stream; charset=utf-8" {
			t.Fatalf("%d views at once (%s), want 1", n, l.head.Get("Content-Type"))
		}
		for i := range 1000 { // for one second
			f.put(sample(fmt.Sprintf("j%04d@zaaaa", i), jobs.Running, f.nodes, 1, time.Minute, "x"))
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := l.count("event: view\n"); n < 4 || n > 7 {
			t.Errorf("%d views in a second of 1000 changes, want about 5", n)
		}
		time.Sleep(time.Second)
		if !strings.Contains(l.got()[strings.LastIndex(l.got(), "event: view"):], "j0999@zaaaa") {
			t.Error("the last change was never told")
		}
		views := l.count("event: view\n")
		f.change(func() {}) // nothing that the page shows
		time.Sleep(time.Second)
		if l.count("event: view\n") != views || l.count(": alive") == 0 {
			t.Error("a change that changes nothing was sent")
		}
		cancel()
		<-gone
	})
}

func TestStreamEndsWithItsBrowser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := scene()
		h := newPage(t, f)
		for _, path := range []string{"/events", "/jobs/" + runningJob + "/events", "/jobs/" + runningJob + "/output"} {
			ctx, cancel := context.WithCancel(t.Context())
			_, gone := subscribe(h, ctx, path)
			synctest.Wait()
			cancel()
			<-gone
			l, gone := subscribe(h, t.Context(), path)
			synctest.Wait()
			l.mu.Lock()
			l.broken = true
			l.mu.Unlock()
			<-gone // the next sign of life finds out
		}
		if len(h.streams.open) != 0 {
			t.Errorf("%d places are still taken", len(h.streams.open))
		}
	})
}

func TestStreamSurvivesAServiceThatCannotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := scene()
		ctx, cancel := context.WithCancel(t.Context())
		h := newPage(t, f)
		over, gone1 := subscribe(h, ctx, "/events")
		job, gone2 := subscribe(h, ctx, "/jobs/"+runningJob+"/events")
		time.Sleep(time.Second)
		f.change(func() { f.broken = errors.New("disk on fire") })
		time.Sleep(time.Minute)
		if strings.Contains(over.got()+job.got(), "fire") {
			t.Error("the stream tells what went wrong inside")
		}
		before := over.count("event: view\n")
		f.change(func() { f.broken = nil; f.self.Busy = 1 })
		f.put(sample(runningJob, jobs.Collecting, f.nodes, 6, time.Minute, "./nqueens", "14"))
		time.Sleep(10 * time.Second)
		if over.count("event: view\n") <= before || !strings.Contains(job.got(), "COLLECTING") {
			t.Error("the streams did not go on")
		}
		cancel()
		<-gone1
		<-gone2
	})
}

func TestJobStreamEndsWithTheJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := scene()
		l, gone := subscribe(newPage(t, f), t.Context(), "/jobs/"+waitingJob[:4]+"/events")
		synctest.Wait()
		// What only Explain knows is told too, without a change of the job.
		f.mu.Lock()
		f.jobs[waitingJob].why.Summary = "thirty-one of forty"
		f.mu.Unlock()
		time.Sleep(2 * liveLook)
		if l.count("thirty-one of forty") == 0 {
			t.Error("a new explanation was not told")
		}
		f.put(sample(waitingJob, jobs.Completed, f.nodes, 40, time.Minute, "mpirun"))
		<-gone
		if !strings.HasSuffix(l.got(), "event: end\ndata: \"final\"\n\n") || l.count("COMPLETED") == 0 {
			t.Errorf("the stream ends with %q", l.got()[max(0, len(l.got())-200):])
		}
	})
}

func TestUnknownJobEndsItsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, what := range []string{"events", "output"} {
			l, gone := subscribe(newPage(t, scene()), t.Context(), "/jobs/none/"+what)
			<-gone
			if !strings.HasSuffix(l.got(), "event: end\ndata: \"gone\"\n\n") {
				t.Errorf("%s: %q", what, l.got())
			}
		}
	})
}

func TestOutputStreamTellsAllInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(network(3))
		st := sample("a2b3c@zaaaa", jobs.Running, f.nodes, 3, time.Minute, "x")
		f.put(st)
		h := newPage(t, f)
		all, gone1 := subscribe(h, t.Context(), "/jobs/a2b3c/output")
		one, gone2 := subscribe(h, t.Context(), "/jobs/a2b3c/output?rank=1")
		for i := range 300 {
			f.print(st.ID, i%3, work.Stdout, fmt.Sprintf("line %d\n", i))
			time.Sleep(10 * time.Millisecond)
		}
		f.put(sample("a2b3c@zaaaa", jobs.Completed, f.nodes, 3, time.Minute, "x"))
		<-gone1
		<-gone2
		var want [3]string
		for i := range 300 {
			want[i%3] += fmt.Sprintf("line %d\n", i)
		}
		if got := texts(t, all.got()); got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Error("the stream of all ranks is not what they wrote")
		}
		if got := texts(t, one.got()); len(got) != 1 || got[1] != want[1] {
			t.Error("the stream of rank 1 is not what it wrote")
		}
		if n := all.count("event: output\n"); n > 20 {
			t.Errorf("%d events in 3 seconds, want at most 5 a second", n)
		}
		if !strings.HasSuffix(all.got(), "event: end\ndata: \"complete\"\n\n") {
			t.Error("no end")
		}
	})
}

// texts joins what an output stream says of each rank.
func texts(t *testing.T, stream string) map[int]string {
	t.Helper()
	got := make(map[int]string)
	for event := range strings.SplitSeq(stream, "\n\n") {
		data, ok := strings.CutPrefix(event, "event: output\ndata: ")
		if !ok {
			continue
		}
		var b batch
		if err := json.Unmarshal([]byte(data), &b); err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Pieces {
			got[p.Rank] += p.Text
		}
	}
	return got
}

func TestFloodOfOutputLeavesTheTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(network(3))
		st := sample("a2b3c@zaaaa", jobs.Running, f.nodes, 1, time.Minute, "x")
		f.put(st)
		for i := range 100 {
			f.print(st.ID, 0, work.Stdout, strings.Repeat(fmt.Sprintf("%07d\n", i), 1<<12))
		}
		f.print(st.ID, 0, work.Stdout, "the end\n")
		st.State = jobs.Completed
		f.put(st)
		l, gone := subscribe(newPage(t, f), t.Context(), "/jobs/a2b3c/output")
		<-gone
		if n := len(l.got()); n > 3*maxTail {
			t.Errorf("%d bytes were sent of 3 MB at once, want about %d", n, maxTail)
		}
		if !strings.HasSuffix(texts(t, l.got())[0], "the end\n") {
			t.Error("the end is missing")
		}
	})
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newPage(t, scene())
		ctx, cancel := context.WithCancel(t.Context())
		var open []chan struct{}
		for range maxStreams {
			_, gone := subscribe(h, ctx, "/events")
			open = append(open, gone)
		}
		synctest.Wait()
		l, gone := subscribe(h, ctx, "/events")
		<-gone
		if l.code != http.StatusServiceUnavailable {
			t.Errorf("stream %d: %d, want 503", maxStreams+1, l.code)
		}
		cancel()
		for _, gone := range open {
			<-gone
		}
		if len(h.streams.open) != 0 {
			t.Errorf("%d places are still taken", len(h.streams.open))
		}
	})
}
