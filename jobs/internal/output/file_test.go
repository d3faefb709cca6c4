package output

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

func TestOutputArrivesOnceWhateverIsSentTwice(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		path := filepath.Join(t.TempDir(), "job", "output")
		file, err := Open(path, "k7f3q@zeb2a", true)
		if err != nil {
			t.Fatal(err)
		}
		want := map[work.Stream][]byte{}
		for _, st := range []work.Stream{work.Stdout, work.Stderr} {
			for range 1 + rnd.IntN(4000) {
				want[st] = append(want[st], byte(rnd.Uint32()))
			}
		}
		// Send random pieces, again and again, until all of it has arrived.
		for {
			got := file.Received([]jobs.RankAttempt{{Rank: 3, Attempt: 1}})[jobs.RankAttempt{Rank: 3, Attempt: 1}]
			if got.Stdout == int64(len(want[work.Stdout])) && got.Stderr == int64(len(want[work.Stderr])) {
				break
			}
			st, at := work.Stdout, got.Stdout
			if rnd.IntN(2) == 0 {
				st, at = work.Stderr, got.Stderr
			}
			from := max(0, int(at)-rnd.IntN(100)+rnd.IntN(20))
			to := min(len(want[st]), from+rnd.IntN(500))
			if from >= to {
				continue
			}
			if err := file.Append([]jobs.Output{{Rank: 3, Attempt: 1, Stream: st, Offset: int64(from), Data: want[st][from:to]}}); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if rnd.IntN(10) == 0 { // a restart finds what was there
				file.Spool.Close()
				if file, err = Open(path, "k7f3q@zeb2a", true); err != nil {
					t.Fatal(err)
				}
			}
		}
		got := map[work.Stream][]byte{}
		err = file.Read(t.Context(), false, func(jobs.RankAttempt) bool { return true }, func(o jobs.Output) error {
			if int(o.Offset) != len(got[o.Stream]) {
				t.Fatalf("seed %d: a piece at %d after %d bytes", seed, o.Offset, len(got[o.Stream]))
			}
			got[o.Stream] = append(got[o.Stream], o.Data...)
			return nil
		})
		if err != nil || !bytes.Equal(got[work.Stdout], want[work.Stdout]) || !bytes.Equal(got[work.Stderr], want[work.Stderr]) {
			t.Fatalf("seed %d: the output differs (%v)", seed, err)
		}
	}
}

func TestOutputLogCutShortByACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which one time is enough, at the beginning
		path := filepath.Join(t.TempDir(), "output")
		file, err := Open(path, "k7f3q@zeb2a", true)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{"first ", "second"} {
			if err := file.Append([]jobs.Output{{Rank: 0, Attempt: 1, Stream: work.Stdout, Offset: int64(i * 6), Data: []byte(text)}}); err != nil {
				t.Fatal(err)
			}
		}
		file.Spool.Close()
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for cut := range whole {
			if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := Open(path, "k7f3q@zeb2a", true)
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			if got := file.Received([]jobs.RankAttempt{{Rank: 0, Attempt: 1}})[jobs.RankAttempt{Rank: 0, Attempt: 1}].Stdout; got != int64((cut-frameHeader)/(frameHeader+6))*6 {
				t.Fatalf("cut at %d: %d bytes are there", cut, got)
			}
		}
	})
}

func TestFollowEndsWhenTheLogIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, err := Open(filepath.Join(t.TempDir(), "output"), "k7f3q@zeb2a", true)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		done := make(chan error)
		go func() {
			done <- file.Read(t.Context(), true, func(ra jobs.RankAttempt) bool { return ra.Rank == 1 }, func(o jobs.Output) error {
				got = append(got, o.Data...)
				return nil
			})
		}()
		for i := range 3 {
			pieces := []jobs.Output{{Rank: 1, Attempt: 1, Stream: work.Stdout, Offset: int64(i), Data: []byte{'a' + byte(i)}},
				{Rank: 2, Attempt: 1, Stream: work.Stdout, Offset: int64(i), Data: []byte{'x'}}}
			if err := file.Append(pieces); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		file.Spool.Close()
		if err := <-done; err != nil || string(got) != "abc" {
			t.Fatalf("got %q, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		open, err := OpenSpool(filepath.Join(t.TempDir(), "never"))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := open.Reader(ctx, true).Read(make([]byte, 1))
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
	s, err := OpenSpool(filepath.Join(t.TempDir(), "stdin"))
	if err != nil {
		t.Fatal(err)
	}
	r := s.Reader(t.Context(), true)
	r.Pos = 5
	for _, text := range []string{"abc", "defg"} {
		if err := s.Append([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	b := make([]byte, 10)
	if n, err := r.Read(b); err != nil || string(b[:n]) != "fg" {
		t.Fatalf("got %q, %v", b[:n], err)
	}
	r.Close()
	r = s.Reader(t.Context(), true)
	r.Pos, r.end = 9, 0
	if n, err := r.Read(b); n != 0 || err == nil {
		t.Fatalf("got %q, %v beyond the end", b[:n], err)
	}
}

// Who reads has one piece in memory at a time, and there may be many who read.
func TestPiecesAreSmall(t *testing.T) {
	file, err := Open(filepath.Join(t.TempDir(), "output"), "k7f3q@zeb2a", true)
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("0123456789abcde"), 1<<17)
	if err := file.Append([]jobs.Output{{Rank: 0, Attempt: 1, Stream: work.Stdout, Data: want}}); err != nil {
		t.Fatal(err)
	}
	var got []byte
	err = file.Read(t.Context(), false, func(jobs.RankAttempt) bool { return true }, func(o jobs.Output) error {
		if len(o.Data) > 128<<10 || int(o.Offset) != len(got) {
			t.Errorf("a piece at %d has %d bytes", o.Offset, len(o.Data))
		}
		got = append(got, o.Data...)
		return nil
	})
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d of %d bytes: %v", len(got), len(want), err)
	}
	if err := file.Spool.Close(); err != nil {
		t.Error(err)
	}
}

// What passes through makes no garbage of its size: a fifth of what a program costs that prints
// gigabytes was the garbage collector's.
func TestPiecesMakeLittleGarbage(t *testing.T) {
	file, err := Open(filepath.Join(t.TempDir(), "output"), "k7f3q@zeb2a", true)
	if err != nil {
		t.Fatal(err)
	}
	const piece, all = 256 << 10, 16 << 20
	data := make([]byte, piece)
	garbage := func(f func() error) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := f()
		if runtime.ReadMemStats(&after); err != nil {
			t.Error(err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if n := garbage(func() (err error) {
		for at := int64(0); at < all && err == nil; at += piece {
			err = file.Append([]jobs.Output{{Attempt: 1, Stream: work.Stdout, Offset: at, Data: data}})
		}
		return err
	}); n > all/4 {
		t.Errorf("storing %d bytes took %d", all, n)
	}
	read := 0
	n := garbage(func() error {
		return file.Read(t.Context(), false, func(jobs.RankAttempt) bool { return true }, func(o jobs.Output) error {
			read += len(o.Data)
			return nil
		})
	})
	if n > all/2 || read != all { // under the race detector a pool forgets a quarter of what it is given
		t.Errorf("reading %d bytes of %d took %d", read, all, n)
	}
	if err := file.Spool.Close(); err != nil {
		t.Error(err)
	}
}
