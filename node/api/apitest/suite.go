package apitest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/transfer"
	"zorilla/vicinity"
)

// Suite checks that what serve makes of a Fake behaves like the Fake itself.
func Suite(t *testing.T, serve func(*testing.T, *Fake) api.Service) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *Fake, api.Service)
	}{
		{"listings", testListings},
		{"empty listings", testEmpty},
		{"measurements", testMeasure},
		{"naming jobs", testNaming},
		{"bad specs", testBadSpec},
		{"await", testAwait},
		{"cancel", testCancel},
		{"remove", testRemove},
		{"output", testOutput},
		{"times of output", testTimes},
		{"output is followed to the end", testFollow},
		{"the reader of output may stop", testReaderStops},
		{"a follow can be given up", testFollowGivenUp},
		{"owner and queue", testOwner},
		{"stdin", testStdin},
		{"stdin of nothing", testStdinRefused},
		{"stdin can be given up", testStdinGivenUp},
		{"sessions", testEnter},
		{"more and fewer workers", testResize},
		{"chunks", testChunks},
		{"files of ranks that run", testSnapshot},
		{"files of the node", testFilesOfTheNode},
		{"cache", testCache},
		{"changes", testChanges},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := New()
			c.run(t, f, serve(t, f))
		})
	}
}

// Example returns a status with every field set.
func Example() jobs.Status {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	exit := work.Exit{Cause: work.Exited, Ended: at.Add(time.Minute)}
	bad := work.Exit{Code: 3, Cause: work.Exited, Detail: "bad", Ended: exit.Ended}
	node := vicinity.ID("zabcdefghijklmnopqrstuvwxyz")
	return jobs.Status{
		ID: "k7f3q@zeb2a", Origin: "zeb2aaaaaaaaaaaaaaaaaaaaaaa",
		Spec: jobs.Spec{
			Name: "queens", Args: []string{"./queens", "14"}, Env: map[string]string{"A": "ü\n"}, Inputs: transfer.HashOf([]byte("in")),
			Outputs: []string{"out-*"}, Stdin: true, Min: 2, Max: 4, Slots: 2, Memory: 1 << 30,
			Walltime: codec.Duration(90 * time.Second), GiveUp: codec.Duration(time.Minute), Priority: -3, Strategy: "spread",
		},
		State: jobs.Failed, Reason: "rank 1 ended with 3", ExitCode: 3,
		Submitted: at, Started: at.Add(time.Second), Ended: at.Add(time.Minute),
		Workers: []jobs.WorkerStatus{
			{
				Rank: 0, Attempt: 1, Node: node, Name: "there", RTT: codec.Duration(2 * time.Millisecond),
				State: jobs.WorkerEnded, Stdout: 7, Stderr: 9, Exit: &exit,
			},
			{Rank: 1, Attempt: 2, Node: node, Name: "there", State: jobs.WorkerEnded, Exit: &bad},
		},
		Rounds: []jobs.Round{{
			Number: 1, Radius: 1, At: at, Wait: codec.Duration(time.Second),
			Wanted: 2, Reached: 3, Offers: 2, Workers: 4, Declines: 1, Messages: 6,
		}},
		Shape:    jobs.Shape{Asked: 3},
		Outputs:  []jobs.RankOutput{{Rank: 0, Attempt: 1, Manifest: transfer.HashOf([]byte("out")), Files: 1, Bytes: 3}},
		Warnings: []string{"rank 1: out-* matched nothing"},
		Staged:   jobs.Staged{Total: 10, Fetched: 6, Cached: 4},
	}
}

func testListings(t *testing.T, f *Fake, s api.Service) {
	ctx := t.Context()
	want := Example()
	f.Add(want)
	f.Members = append(f.Members, api.NodeInfo{
		Member: vicinity.Member{ID: "zabcdefghijklmnopqrstuvwxyz", Name: "there"}, RTT: codec.Duration(1500 * time.Microsecond),
		Neighbour: "near", Position: []float64{1, -2.5}, Cluster: "delft",
		Told: want.Submitted, Busy: 3, State: "paused", Links: []api.Link{{ID: f.Members[0].ID, Kind: "far"}},
	})
	f.Members[0].Traffic = api.Traffic{{Group: "gossip", Name: "packets refused", Value: 1 << 40, Bad: true, Help: "of other networks"}}
	self, err := s.Node(ctx)
	same(t, "Node", self, err, f.Members[0])
	nodes, err := s.Nodes(ctx)
	same(t, "Nodes", nodes, err, f.Members)
	nodes, err = s.Survey(ctx)
	same(t, "Survey", nodes, err, f.Members)
	list, err := s.Jobs(ctx, true)
	same(t, "Jobs", list, err, []jobs.Status{want})
	short, err := s.Summaries(ctx, true)
	same(t, "Summaries", short, err, []jobs.Summary{want.Summary()})
	one, err := s.Job(ctx, "k7f")
	same(t, "Job", one, err, want)
	wantWhy, _ := f.Explain(ctx, "last")
	why, err := s.Explain(ctx, "last")
	same(t, "Explain", why, err, wantWhy)
	drained, err := s.Drain(ctx, api.Drain{Now: true, Exit: true})
	same(t, "Drain", drained, err, jobs.Drained{Draining: true, Workers: 3, Jobs: 2})
	drained, err = s.Drain(ctx, api.Drain{Undo: true})
	same(t, "Drain", drained, err, jobs.Drained{Workers: 3, Jobs: 2})
	if _, err := s.Drain(ctx, api.Drain{Discard: true}); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("discard of workers that go on: %v", err)
	}
	if _, err := s.Drain(ctx, api.Drain{Undo: true, Now: true}); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("undo now: %v", err)
	}
	token, err := s.Invite(ctx)
	same(t, "Invite", token, err, f.Token)
	page, err := s.Web(ctx, false)
	same(t, "Web", page, err, f.Page)
	page, err = s.Web(ctx, true)
	same(t, "Web, only to look", page, err, f.Page+"-read-only")
}

func same[T any](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	} else if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func testMeasure(t *testing.T, f *Fake, s api.Service) {
	for i, name := range []string{"there", "twin", "twin", "Zoë’s box & co?"} {
		id := vicinity.ID("z" + strings.Repeat(string(rune('b'+i)), 26))
		member := vicinity.Member{ID: id, Name: name, Site: "lab"}
		f.Members = append(f.Members, api.NodeInfo{Member: member, RTT: codec.Duration(i+1) * codec.Duration(time.Millisecond)})
	}
	for _, c := range []struct {
		from, to string
		pings    int
		want     error
	}{
		{"self", "there", 5, nil}, {"here", "zeeee", 1, nil}, {"there", "self", 100, nil}, {"zccc", "Zoë’s box & co?", 2, nil},
		{"self", "nobody", 5, api.ErrNotFound}, {"nobody", "self", 5, api.ErrNotFound},
		{"self", "twin", 5, api.ErrAmbiguous}, {"z", "there", 5, api.ErrAmbiguous},
		{"self", "here", 5, api.ErrInvalid}, {"self", "there", 0, api.ErrInvalid},
		{"self", "there", 101, api.ErrInvalid}, {"self", "there", -1, api.ErrInvalid},
	} {
		got, err := s.Measure(t.Context(), c.from, c.to, c.pings)
		if !errors.Is(err, c.want) {
			t.Errorf("%s to %s, %d pings: got %v, want %v", c.from, c.to, c.pings, err, c.want)
		}
		if c.want != nil {
			continue
		}
		want, _ := f.Measure(t.Context(), c.from, c.to, c.pings)
		same(t, c.from+" to "+c.to, got, err, want)
	}
}

func testNaming(t *testing.T, f *Fake, s api.Service) {
	a, b := Example(), Example()
	a.ID, b.ID = "aaaaa@zeb2a", "aaaab@zeb2a"
	f.Add(a)
	f.Add(b)
	for name, want := range map[string]error{"zzz": api.ErrNotFound, "aaaa": api.ErrAmbiguous, "aaaaa": nil, "aaaab@zeb2a": nil, "last": nil} {
		_, err := s.Job(t.Context(), name)
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
		_, direct := f.Job(t.Context(), name)
		if direct != nil && direct.Error() != err.Error() {
			t.Errorf("%s: got %q, want the words %q", name, err, direct)
		}
	}
}

func testBadSpec(t *testing.T, _ *Fake, s api.Service) {
	_, err := s.Submit(t.Context(), jobs.Spec{Args: []string{"a"}, Min: 2, Max: 1, Slots: 1})
	if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), "-n 2..1") {
		t.Errorf("got %v, want ErrInvalid that names the flag", err)
	}
}

func submit(t *testing.T, f *Fake, s api.Service) *Job {
	t.Helper()
	id, err := s.Submit(t.Context(), jobs.Spec{Args: []string{"a"}, Min: 1, Max: 1, Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	j, err := f.Find(string(id))
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func testAwait(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	first, version, err := s.Await(t.Context(), "last", 0)
	if err != nil || first.State != jobs.Pending {
		t.Fatalf("got %v, %v", first.State, err)
	}
	go j.Update(func(s *jobs.Status) { s.State = jobs.Running })
	next, _, err := s.Await(t.Context(), "last", version)
	if err != nil || next.State != jobs.Running {
		t.Errorf("got %v, %v, want RUNNING", next.State, err)
	}
	_, version, _ = s.Await(t.Context(), "last", 0)
	ctx, cancel := context.WithCancel(t.Context())
	go cancel()
	if _, _, err := s.Await(ctx, "last", version); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func testRemove(t *testing.T, f *Fake, s api.Service) {
	submit(t, f, s)
	if err := s.Remove(t.Context(), "last"); !errors.Is(err, api.ErrRefused) {
		t.Errorf("a job that waits: %v", err)
	}
	if err := s.Cancel(t.Context(), "last", false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{nil, api.ErrNotFound} {
		if err := s.Remove(t.Context(), "last"); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func testCancel(t *testing.T, f *Fake, s api.Service) {
	for _, atOnce := range []bool{false, true} {
		j := submit(t, f, s)
		for range 2 {
			if err := s.Cancel(t.Context(), "last", atOnce); err != nil {
				t.Fatal(err)
			}
		}
		<-j.Cancelled()
		if err := s.Cancel(t.Context(), "zzz", atOnce); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	}
}

func piece(rank int, stream work.Stream, offset int64, text string) jobs.Output {
	return jobs.Output{Rank: rank, Attempt: 1, Stream: stream, Offset: offset, Data: []byte(text)}
}

func testOutput(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	big := strings.Repeat("0123456789abcdef", 3<<16) // more than one frame
	j.Emit(piece(0, work.Stdout, 0, "a"))
	j.Emit(piece(1, work.Stderr, 1<<40, "b"))
	j.Emit(piece(0, work.Stdout, 1, big))
	for rank, want := range map[int]string{-1: "ab" + big, 0: "a" + big, 1: "b", 7: ""} {
		var got bytes.Buffer
		err := s.Output(t.Context(), "last", api.OutputQuery{Rank: rank}, func(o jobs.Output) error {
			got.Write(o.Data)
			if o.Rank == 1 && (o.Offset != 1<<40 || o.Stream != work.Stderr || o.Attempt != 1) {
				t.Errorf("rank 1 came as %+v", o)
			}
			return nil
		})
		if err != nil || got.String() != want {
			t.Errorf("rank %d: got %d bytes, %v, want %d", rank, got.Len(), err, len(want))
		}
	}
	if err := s.Output(t.Context(), "zzz", api.OutputQuery{Rank: -1}, nil); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

// testFollow emits each piece only after the one before it has arrived: a
// frame that is not flushed hangs it.
func testFollow(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	j.Emit(piece(0, work.Stdout, 0, "0"))
	n := 0
	err := s.Output(t.Context(), "last", api.OutputQuery{Rank: -1, Follow: true}, func(o jobs.Output) error {
		if n++; n < 10 {
			j.Emit(piece(0, work.Stdout, int64(n), "x"))
		} else {
			j.Update(func(s *jobs.Status) { s.State = jobs.Completed })
		}
		return nil
	})
	if err != nil || n != 10 {
		t.Errorf("got %d pieces, %v, want 10", n, err)
	}
}

func testReaderStops(t *testing.T, f *Fake, s api.Service) {
	submit(t, f, s).Emit(piece(0, work.Stdout, 0, "x"))
	stop := errors.New("enough")
	err := s.Output(t.Context(), "last", api.OutputQuery{Rank: -1, Follow: true}, func(jobs.Output) error { return stop })
	if err != stop {
		t.Errorf("got %v, want the reader's own error", err)
	}
}

func testFollowGivenUp(t *testing.T, f *Fake, s api.Service) {
	submit(t, f, s).Emit(piece(0, work.Stdout, 0, "x"))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Output(ctx, "last", api.OutputQuery{Rank: -1, Follow: true}, func(jobs.Output) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

// testStdin sends the second half only after the first was read: a body that
// is not streamed hangs it.
func testStdin(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() { sent <- s.Stdin(t.Context(), "last", r) }()
	for _, line := range []string{"first", "again"} {
		if _, err := io.WriteString(w, line); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(line))
		if _, err := io.ReadFull(j.Stdin(), got); err != nil || string(got) != line {
			t.Fatalf("got %q, %v, want %q", got, err, line)
		}
	}
	_ = w.Close() // never fails
	if _, err := j.Stdin().Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

// testStdinRefused must come back although its reader never ends.
func testStdinRefused(t *testing.T, f *Fake, s api.Service) {
	r, w := io.Pipe()
	defer w.Close()
	if err := s.Stdin(t.Context(), "zzz", r); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("unknown job: got %v, want ErrNotFound", err)
	}
	submit(t, f, s).Update(func(s *jobs.Status) { s.State = jobs.Completed })
	if err := s.Stdin(t.Context(), "last", strings.NewReader("late")); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("ended job: got %v, want ErrUnavailable", err)
	}
}

func testStdinGivenUp(t *testing.T, f *Fake, s api.Service) {
	j := submit(t, f, s)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() { sent <- s.Stdin(ctx, "last", r) }()
	if _, err := io.WriteString(w, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Stdin().Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := j.Stdin().Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("rank 0 reads %v, want an error: it must not take a broken stream for a whole one", err)
	}
	_ = w.Close() // a direct call sees ctx only after its read
	if err := <-sent; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func testChanges(t *testing.T, f *Fake, s api.Service) {
	changed := s.Changes()
	select {
	case <-changed:
		t.Fatal("closed before anything changed")
	default:
	}
	f.Add(Example())
	<-changed
}
