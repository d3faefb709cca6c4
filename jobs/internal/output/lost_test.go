package output

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"zorilla/internal/seeds"
	"zorilla/jobs"
	"zorilla/jobs/internal/record"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
)

const lostJob jobs.ID = "k7f3q@zeb2a"

// written makes the output file of a job of two ranks, and returns what each
// stream holds, and the record of the job when it has ended.
func written(t testing.TB, path string) (map[StreamOf]string, *record.Record) {
	t.Helper()
	file, err := Open(path, lostJob, true)
	if err != nil {
		t.Fatal(err)
	}
	want := map[StreamOf]string{}
	for i, text := range []string{"one ", "two, longer ", "tres ", "four ", "five\n", "six\n"} {
		key := StreamOf{wiretest.RA(i%2, 1), work.Stdout + work.Stream(i/4)}
		if err := file.Append([]jobs.Output{{Rank: i % 2, Attempt: 1, Stream: key.Stream, Offset: int64(len(want[key])), Data: []byte(text)}}); err != nil {
			t.Fatal(err)
		}
		if want[key] += text; i%2 == 1 {
			if err := file.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	size, _, _ := file.Spool.State()
	file.Spool.Close()
	rec := &record.Record{ID: lostJob, Lineup: record.Lineup{Spec: jobs.Spec{Min: 2, Max: 2}}, Ending: record.Ending{Stored: size}}
	for i := range 2 {
		rec.Ranks = append(rec.Ranks, record.Rank{Attempt: 1, Wrote: &wire.Written{Stdout: int64(len(want[StreamOf{wiretest.RA(i, 1), work.Stdout}])), Stderr: int64(len(want[StreamOf{wiretest.RA(i, 1), work.Stderr}]))}})
	}
	return want, rec
}

// tell reads a file and fails if a byte of it is not what was written.
func tell(t testing.TB, what string, file *File, want map[StreamOf]string) map[StreamOf]string {
	t.Helper()
	got := map[StreamOf]string{}
	err := file.Read(t.Context(), false, func(jobs.RankAttempt) bool { return true }, func(o jobs.Output) error {
		key := StreamOf{jobs.RankAttempt{Rank: o.Rank, Attempt: o.Attempt}, o.Stream}
		end := o.Offset + int64(len(o.Data))
		if end > int64(len(want[key])) || want[key][o.Offset:end] != string(o.Data) {
			t.Fatalf("%s: %v tells %q at %d", what, key, o.Data, o.Offset)
		}
		got[key] += string(o.Data)
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return got
}

// ended opens the file of a job that has ended, and fails if something is
// missing and nobody says so, or the other way round.
func ended(t testing.TB, what, path string, want map[StreamOf]string, rec *record.Record) []string {
	t.Helper()
	file, err := Open(path, lostJob, false)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	file.Expect(rec)
	got := tell(t, what, file, want)
	list := file.Damage(rec, -1)
	whole := fmt.Sprint(got) == fmt.Sprint(want)
	if known := rec.KnowsOutput(-1); whole != (len(list) == 0) && (known || !whole) {
		t.Fatalf("%s: got %v, of %v; told as damage: %q", what, got, want, list)
	}
	return list
}

// One flipped bit changes nothing that is told, and what it hides is named.
func TestEveryBitOfAnOutputLog(t *testing.T) {
	seeds.OneGoroutine(t)
	path := filepath.Join(t.TempDir(), "output")
	want, rec := written(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unknown := *rec
	unknown.Ranks = []record.Rank{{Attempt: 1}, {Attempt: 1}} // it was cancelled: nobody knows how much they wrote
	for bit := range 8 * len(whole) {
		spoiled := bytes.Clone(whole)
		spoiled[bit/8] ^= 1 << (bit % 8)
		what := fmt.Sprint("bit ", bit)
		if err := os.WriteFile(path, spoiled, 0o600); err != nil {
			t.Fatal(err)
		}
		ended(t, what, path, want, rec)
		ended(t, what+", cancelled", path, want, &unknown)
		// A job that goes on gets again what was not durable, and only that.
		file, err := Open(path, lostJob, true)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		resent := file.all()
		for key, text := range want {
			if from := resent[key.RankAttempt].Of(key.Stream); from < int64(len(text)) {
				if err := file.Append([]jobs.Output{{Rank: key.Rank, Attempt: 1, Stream: key.Stream, Offset: from, Data: []byte(text[from:])}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		file.Spool.Close()
		got := tell(t, what, file, want)
		if list := file.Damage(rec, -1); (fmt.Sprint(got) == fmt.Sprint(want)) != (len(list) == 0) {
			t.Fatalf("%s of a job that goes on: got %v, damage %q", what, got, list)
		}
	}
	for size := range whole {
		what := fmt.Sprintf("the first %d bytes", size)
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		ended(t, what, path, want, rec)
		if len(ended(t, what+", cancelled", path, want, &unknown)) == 0 {
			t.Fatalf("%s of a cancelled job: nobody noticed", what)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	list := ended(t, "none", path, want, rec)
	if want := "rank 1: standard error: bytes 0 to 3"; !slices.Contains(list, want) || len(list) != 4 {
		t.Errorf("got %q, want 4 of which one is %q", list, want)
	}
}

// Frames that are whole but not where they belong are no frames.
func TestMovedFrames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	want, rec := written(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, second := frameHeader+len("one "), frameHeader+len("two, longer ")
	for name, b := range map[string][]byte{
		"swapped":  slices.Concat(whole[first:first+second], whole[:first], whole[first+second:]),
		"missing":  whole[first:],
		"twice":    slices.Concat(whole[:first], whole[:first], whole[first:]),
		"replaced": slices.Concat(whole[:len(whole)-frameHeader-4], whole[:first]),
		"zeros":    slices.Concat(whole[:first], make([]byte, second), whole[first+second:]),
	} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if list := ended(t, name, path, want, rec); len(list) == 0 {
			t.Errorf("%s: nobody noticed", name)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Open(path, "other@zeb2a", false)
	if err != nil {
		t.Fatal(err)
	}
	if got := tell(t, "another job", file, want); len(got) != 0 {
		t.Errorf("another job's file tells %v", got)
	}
}

// After a power cut the header of a frame may be on disk, and not its bytes. What
// was durable before stays, even if it is damaged.
func TestTornOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "output")
		file, err := Open(path, lostJob, true)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(4) {
			if err := file.Append([]jobs.Output{outputPiece(0, 5*i, "12345")}); err != nil {
				t.Fatal(err)
			}
			if i == 1 {
				if err := file.Sync(); err != nil {
					t.Fatal(err)
				}
			}
		}
		file.Spool.Close()
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		const first, each = frameHeader, frameHeader + 5 // after a time; and a mark before the third
		third := first + 2*each + frameHeader
		spoil := func(from, to int) []byte {
			b := bytes.Clone(whole)
			clear(b[from:to])
			return b
		}
		for name, c := range map[string]struct {
			bytes  []byte
			left   int64
			damage string
		}{
			"whole":            {whole, 20, ""},
			"cut":              {whole[:len(whole)-1], 15, ""},
			"torn":             {spoil(third+frameHeader, third+each), 10, ""},
			"torn to its end":  {spoil(third, len(whole)), 10, ""},
			"damaged before":   {spoil(first+frameHeader, first+each), 20, "rank 0: standard output: bytes 0 to 4"},
			"header before":    {spoil(0, 0), 20, "rank 0: standard output: bytes 0 to 4"},
			"damaged and torn": {append(spoil(first, first+20)[:third:third], make([]byte, 9000)...), 10, "rank 0: standard output: bytes 0 to 4"},
		} {
			if name == "header before" {
				c.bytes[first+3] ^= 1
			}
			if err := os.WriteFile(path, c.bytes, 0o600); err != nil {
				t.Fatal(err)
			}
			file, err := Open(path, lostJob, true)
			if err != nil {
				t.Fatal(err)
			}
			tell(t, name, file, map[StreamOf]string{{wiretest.RA(0, 1), work.Stdout}: strings.Repeat("12345", 4)})
			rec := &record.Record{Lineup: record.Lineup{Ranks: []record.Rank{{Attempt: 1}}}}
			list := strings.Join(file.Damage(rec, -1), "; ")
			if left, ahead := confirmed(file, 0); left != c.left || ahead != 0 || !strings.HasPrefix(list, c.damage) || (c.damage == "") != (list == "") {
				t.Errorf("%s: %d bytes are left (%d ahead), damage %q; want %d and %q", name, left, ahead, list, c.left, c.damage)
			}
		}
	})
}

// Whatever is in the file: no panic, no error, and what is told was written.
func FuzzOutputLog(f *testing.F) {
	path := filepath.Join(f.TempDir(), "output")
	want, _ := written(f, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole, true)
	f.Add(whole[:len(whole)/2], false)
	f.Add(append(make([]byte, 100), whole...), true)
	f.Fuzz(func(t *testing.T, b []byte, goesOn bool) { // one at a time in each process, so all in one file
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := Open(path, lostJob, goesOn)
		if err != nil {
			t.Fatal(err)
		}
		tell(t, "fuzz", file, want)
		file.Damage(&record.Record{Lineup: record.Lineup{Ranks: []record.Rank{{Attempt: 1}}}}, -1)
		if left, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(b, left) || !goesOn && len(left) < len(b) {
			t.Fatalf("opening it changed the file: %v", err)
		}
	})
}
