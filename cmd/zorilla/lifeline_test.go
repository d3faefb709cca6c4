package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
	"zorilla/node/api"
	"zorilla/node/api/apitest"
	"zorilla/transfer"
)

// mortal is a node that can be stopped and started again.
type mortal struct {
	*apitest.Fake
	mu   sync.Mutex
	down context.Context // ends when the node stops
	stop context.CancelFunc

	deaf  func() error                                         // what Output says instead; nil = what it should
	chunk func(context.Context, transfer.Hash) ([]byte, error) // instead of Chunk
}

func newMortal() *mortal {
	m := &mortal{Fake: apitest.New()}
	m.start()
	return m
}

func (m *mortal) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down, m.stop = context.WithCancel(context.Background())
}

// up runs a call until it or the node ends.
func (m *mortal) up(ctx context.Context, f func(context.Context) error) error {
	m.mu.Lock()
	down := m.down
	m.mu.Unlock()
	if down.Err() != nil {
		return fmt.Errorf("%w here", api.ErrNoNode)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(down, cancel)()
	err := f(ctx)
	if down.Err() != nil {
		return fmt.Errorf("%w: the connection to the node broke", api.ErrUnavailable)
	}
	return err
}

func (m *mortal) Job(ctx context.Context, job string) (st jobs.Status, err error) {
	err = m.up(ctx, func(ctx context.Context) error { st, err = m.Fake.Job(ctx, job); return err })
	return st, err
}

func (m *mortal) Await(ctx context.Context, job string, since uint64) (st jobs.Status, v uint64, err error) {
	err = m.up(ctx, func(ctx context.Context) error { st, v, err = m.Fake.Await(ctx, job, since); return err })
	return st, v, err
}

func (m *mortal) Output(ctx context.Context, job string, q api.OutputQuery, f func(jobs.Output) error) error {
	if m.deaf != nil {
		return m.deaf()
	}
	return m.up(ctx, func(ctx context.Context) error { return m.Fake.Output(ctx, job, q, f) })
}

func (m *mortal) Cancel(ctx context.Context, job string, atOnce bool) error {
	return m.up(ctx, func(ctx context.Context) error { return m.Fake.Cancel(ctx, job, atOnce) })
}

func (m *mortal) Chunk(ctx context.Context, job string, h transfer.Hash) ([]byte, error) {
	return m.chunk(ctx, h)
}

const (
	saysAway = "zorilla: lost sight of job ID: waiting up to 2m0s for its node to come back\n"
	saysBack = "zorilla: the node is back, job ID is in sight again\n"
)

// A log that zorilla top follows goes on after an outage, with nothing twice.
func TestTopFollowsThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal()
		fo := follow(t, m, m.Fake)
		var got, said strings.Builder
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- follows(m)(ctx, fo.job.Status().ID, func(o jobs.Output) error {
				fmt.Fprintf(&got, "%d:%s ", o.Offset, o.Data)
				return nil
			}, func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) })
		}()
		write := func(attempt int, at int64, text string) {
			fo.job.Emit(jobs.Output{Attempt: attempt, Stream: work.Stdout, Offset: at, Data: []byte(text)})
			synctest.Wait()
		}
		write(1, 0, "one")
		write(2, 0, "two")
		m.stop()
		time.Sleep(10 * time.Second)
		m.start()
		time.Sleep(nodePoll)
		write(2, 3, "three")
		write(1, 3, "late")
		if want := "0:one 0:two 3:three "; got.String() != want {
			t.Errorf("got %s, want %s", &got, want)
		}
		if !strings.HasPrefix(said.String(), "lost sight of job ") || !strings.HasSuffix(said.String(), " is in sight again\n") {
			t.Errorf("said %s", &said)
		}
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		fo.job.Update(func(s *jobs.Status) { s.State = jobs.Completed })
		<-fo.ended
	})
}

func TestEachOutageIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal()
		fo := follow(t, m, m.Fake)
		fo.job.Update(func(s *jobs.Status) { s.State = jobs.Running })
		synctest.Wait()
		write := func(at int) {
			fo.job.Emit(jobs.Output{Attempt: 1, Stream: work.Stdout, Offset: int64(at), Data: []byte("x")})
		}
		for i := range 4 {
			write(2 * i)
			time.Sleep(time.Duration(i) * time.Minute)
			m.stop()
			write(2*i + 1)
			fo.says(t, saysAway)
			time.Sleep(nodeAway - time.Second)
			fo.says(t, "")
			m.start()
			time.Sleep(nodePoll)
			fo.says(t, saysBack)
		}
		// Ctrl-C is not lost either.
		m.stop()
		fo.says(t, saysAway)
		for range 2 {
			fo.signals <- os.Interrupt
		}
		synctest.Wait()
		fo.err.take()
		m.start()
		time.Sleep(nodePoll)
		fo.says(t, saysBack+"zorilla: job ID CANCELLED, exit code 130: cancelled by the user\n")
		if err := <-fo.ended; err != exitCode(130) || fo.out.take() != "xxxxxxxx" {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheNodeIsAwayForTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal()
		fo := follow(t, m, m.Fake)
		m.stop()
		fo.says(t, saysAway)
		began := time.Now()
		err := <-fo.ended
		id := fo.job.Status().ID.Short()
		if !errors.Is(err, api.ErrNoNode) || !strings.HasSuffix(err.Error(), "'zorilla attach "+id+"' comes back to it") || time.Since(began) != nodeAway {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if code := exitCode(0); errors.As(err, &code) {
			t.Errorf("ends with %d", code)
		}
	})
	wantRow(t, "the node of run, attach, wait", exitFailure)
}

// A node that answers, but cannot do what is asked, is not waited for without end,
// and not asked without pause.
func TestANodeThatIsThereInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortal()
		asked := 0
		m.deaf = func() error { asked++; return api.ErrUnavailable }
		fo := follow(t, m, m.Fake)
		began := time.Now()
		if err := <-fo.ended; !errors.Is(err, api.ErrUnavailable) || time.Since(began) > nodeAway+2*nodePoll || asked > int(nodeAway/nodePoll)+2 {
			t.Errorf("asked %d times in %v: %v", asked, time.Since(began), err)
		}
	})
}

// fetching is a follower that fetches the files of an ended job.
func fetching(t *testing.T, m *mortal) (fo *following, dir string) {
	t.Helper()
	fo = follow(t, m, m.Fake)
	content := []byte("content")
	tree := transfer.Manifest{Entries: []transfer.Entry{{Path: "a", Size: int64(len(content)), Chunks: transfer.HashList{transfer.HashOf(content)}}}}
	list, err := tree.Encode()
	if err != nil {
		t.Fatal(err)
	}
	hang := m.chunk
	m.chunk = func(ctx context.Context, h transfer.Hash) ([]byte, error) {
		if h == transfer.HashOf(list) {
			return list, nil
		}
		return hang(ctx, h)
	}
	fo.job.Update(func(s *jobs.Status) {
		s.State, s.ExitCode, s.Spec.Outputs = jobs.Completed, 0, []string{"a"}
		s.Outputs = []jobs.RankOutput{{Attempt: 1, Manifest: transfer.HashOf(list), Files: 1}}
	})
	synctest.Wait()
	return fo, fo.into
}

func TestFilesAreFetchedThroughAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, open := newMortal(), make(chan struct{})
		m.chunk = func(ctx context.Context, _ transfer.Hash) ([]byte, error) {
			return []byte("content"), m.up(ctx, func(ctx context.Context) error {
				select {
				case <-open:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		}
		fo, dir := fetching(t, m)
		m.stop()
		fo.says(t, saysAway)
		close(open)
		m.start()
		time.Sleep(nodePoll)
		fo.says(t, saysBack)
		if err := <-fo.ended; err != nil {
			t.Error(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "content" {
			t.Errorf("fetched %q, %v", b, err)
		}
	})
}

func TestSignalsWhileRunFetches(t *testing.T) {
	const left = "zorilla: not all output files of job ID were fetched: 'zorilla get ID' fetches the others\n"
	for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		synctest.Test(t, func(t *testing.T) {
			m := newMortal()
			m.chunk = func(ctx context.Context, _ transfer.Hash) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() }
			fo, dir := fetching(t, m)
			fo.signals <- syscall.SIGPIPE // means nothing by itself
			fo.signals <- sig
			fo.says(t, left)
			if err := <-fo.ended; err != exitCode(code) {
				t.Errorf("%v: got %v, want %d", sig, err, code)
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
				t.Errorf("%v: left %v, %v", sig, files, err)
			}
		})
	}
	wantRow(t, "output files were being fetched", 130)
	synctest.Test(t, func(t *testing.T) { // a second one does not wait for what hangs
		m := newMortal()
		release := make(chan struct{})
		m.chunk = func(context.Context, transfer.Hash) ([]byte, error) { <-release; return nil, api.ErrNotFound }
		fo, _ := fetching(t, m)
		fo.signals <- os.Interrupt
		fo.says(t, "")
		fo.signals <- os.Interrupt
		fo.says(t, left)
		if err := <-fo.ended; err != exitCode(130) {
			t.Errorf("got %v", err)
		}
		close(release)
	})
}
