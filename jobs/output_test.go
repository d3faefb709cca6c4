package jobs

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"zorilla/jobs/journal"
	"zorilla/jobs/process"
)

func TestOutputArrivesOnceWhateverIsSentTwice(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		path := filepath.Join(t.TempDir(), "job", "output")
		log, err := openOutputLog(path, "k7f3q@zeb2a", true)
		if err != nil {
			t.Fatal(err)
		}
		want := map[process.Stream][]byte{}
		for _, st := range []process.Stream{process.Stdout, process.Stderr} {
			for range 1 + rnd.IntN(4000) {
				want[st] = append(want[st], byte(rnd.Uint32()))
			}
		}
		// Send random pieces, again and again, until all of it has arrived.
		for {
			got := log.received([]RankAttempt{{3, 1}})[RankAttempt{3, 1}]
			if got.stdout == int64(len(want[process.Stdout])) && got.stderr == int64(len(want[process.Stderr])) {
				break
			}
			st, at := process.Stdout, got.stdout
			if rnd.IntN(2) == 0 {
				st, at = process.Stderr, got.stderr
			}
			from := max(0, int(at)-rnd.IntN(100)+rnd.IntN(20))
			to := min(len(want[st]), from+rnd.IntN(500))
			if from >= to {
				continue
			}
			if err := log.append([]Output{{Rank: 3, Attempt: 1, Stream: st, Offset: int64(from), Data: want[st][from:to]}}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if rnd.IntN(10) == 0 { // a restart finds what was there
				log.spool.close()
				if log, err = openOutputLog(path, "k7f3q@zeb2a", true); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := map[process.Stream][]byte{}
		err = log.read(t.Context(), false, func(RankAttempt) bool { return true }, func(o Output) error {
			if int(o.Offset) != len(got[o.Stream]) {
				t.Fatalf("seed %d: a piece at %d after %d bytes", seed, o.Offset, len(got[o.Stream]))
			}
			got[o.Stream] = append(got[o.Stream], o.Data...)
			return nil
		})
		if err != nil || !bytes.Equal(got[process.Stdout], want[process.Stdout]) || !bytes.Equal(got[process.Stderr], want[process.Stderr]) {
			t.Fatalf("seed %d: the output differs (%v)", seed, err)
		}
	}
}

func TestOutputLogCutShortByACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	log, err := openOutputLog(path, "k7f3q@zeb2a", true)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"first ", "second"} {
		if err := log.append([]Output{{Rank: 0, Attempt: 1, Stream: process.Stdout, Offset: int64(i * 6), Data: []byte(text)}}); err != nil {
			t.Fatal(err)
		}
	}
	log.spool.close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		log, err := openOutputLog(path, "k7f3q@zeb2a", true)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if got := log.received([]RankAttempt{{0, 1}})[RankAttempt{0, 1}].stdout; got != int64(cut/(len(whole)/2))*6 {
			t.Fatalf("cut at %d: %d bytes are there", cut, got)
		}
	}
}

func TestFollowEndsWhenTheLogIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, err := openOutputLog(filepath.Join(t.TempDir(), "output"), "k7f3q@zeb2a", true)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		done := make(chan error)
		go func() {
			done <- log.read(t.Context(), true, func(ra RankAttempt) bool { return ra.Rank == 1 }, func(o Output) error {
				got = append(got, o.Data...)
				return nil
			})
		}()
		for i := range 3 {
			pieces := []Output{{Rank: 1, Attempt: 1, Stream: process.Stdout, Offset: int64(i), Data: []byte{'a' + byte(i)}},
				{Rank: 2, Attempt: 1, Stream: process.Stdout, Offset: int64(i), Data: []byte{'x'}}}
			if err := log.append(pieces); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		log.spool.close()
		if err := <-done; err != nil || string(got) != "abc" {
			t.Fatalf("got %q, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		open, err := openSpool(filepath.Join(t.TempDir(), "never"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := open.reader(ctx, true).Read(make([]byte, 1))
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("a cancelled reader got %v", err)
		}
	})
}

func TestReaderBeyondTheEndWaitsForIt(t *testing.T) {
	s, err := openSpool(filepath.Join(t.TempDir(), "stdin"))
	if err != nil {
		t.Fatal(err)
	}
	r := s.reader(t.Context(), true)
	r.pos = 5
	for _, text := range []string{"abc", "defg"} {
		if err := s.append([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s.close()
	b := make([]byte, 10)
	if n, err := r.Read(b); err != nil || string(b[:n]) != "fg" {
		t.Fatalf("got %q, %v", b[:n], err)
	}
	r.Close()
	r = s.reader(t.Context(), true)
	r.pos, r.end = 9, 0
	if n, err := r.Read(b); n != 0 || err == nil {
		t.Fatalf("got %q, %v beyond the end", b[:n], err)
	}
}

func TestEndIsToldWhenItIsDurable(t *testing.T) {
	c := newTalk(t, Spec{Min: 1, Max: 1})
	j := &job{originJob: &originJob{core: c.p, steps: []*pendingStep{{}}}, output: &outputLog{spool: &spool{}}, stdin: &spool{}}
	s := &Service{cfg: Config{Journal: journal.NewMemory()}}
	_, before := s.view(j)
	c.p.cancel(c.now, "cancelled by a user")
	st, version := s.view(j)
	if st.State.Final() || st.ExitCode != -1 || version < before {
		t.Fatalf("got %s with %d at version %d before the end is in the journal", st.State, st.ExitCode, version)
	}
	j.steps = nil
	if st, after := s.view(j); st.State != Cancelled || after == version {
		t.Fatalf("got %s at version %d after %d", st.State, after, version)
	}
}
