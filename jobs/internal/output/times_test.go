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
	"time"

	"zorilla/jobs"
	"zorilla/jobs/work"
)

// times lists "text at when" of what a file tells, with when in milliseconds after a time.
func times(t *testing.T, file *File, since time.Time) (list []string) {
	t.Helper()
	err := file.Read(t.Context(), false, func(jobs.RankAttempt) bool { return true }, func(o jobs.Output) error {
		when := "?"
		if o.At != 0 {
			when = fmt.Sprint(o.At - since.UnixMilli())
		}
		list = append(list, fmt.Sprintf("%s at %s", o.Data, when))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// When output came is known to a tenth of a second, at a frame in as much, over starts of the
// node, and not where that frame was damaged.
func TestTimesOfOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "output")
		start := time.Now()
		offset := int64(0)
		open := func() *File {
			file, err := Open(path, lostJob, true)
			if err != nil {
				t.Fatal(err)
			}
			return file
		}
		file := open()
		add := func(text string) {
			t.Helper()
			if err := file.Append([]jobs.Output{outputPiece(0, offset, text)}); err != nil {
				t.Fatal(err)
			}
			offset += int64(len(text))
		}
		for _, text := range []string{"a", "b", "c", "d"} {
			add(text)
			time.Sleep(60 * time.Millisecond)
		}
		want := []string{"a at 0", "b at 0", "c at 120", "d at 120"}
		if got := times(t, file, start); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if size, _, _ := file.Spool.State(); size != 6*frameHeader+4 {
			t.Errorf("%d bytes", size)
		}
		file.Sync()
		time.Sleep(time.Hour)
		add("e")
		file.Sync()
		file.Spool.Close()
		file = open()
		add("f") // another life of the node knows no earlier time
		want = append(want, "e at 3600240", "f at 3600240")
		if got := times(t, file, start); !slices.Equal(got, want) {
			t.Errorf("after a start %q", got)
		}
		file.Spool.Close()
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole[2*frameHeader+2+frameHeader+5] ^= 1 // the second time
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		want[2], want[3] = "c at ?", "d at ?"
		if got := times(t, open(), start); !slices.Equal(got, want) {
			t.Errorf("damaged %q", got)
		}
	})
}

// A file of before there were times tells all, and none of when.
func TestOutputWithoutTimes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	var b []byte
	for i, text := range []string{"old", "est"} {
		b = append(appendHeader(b, lostJob, int64(len(b)), outputPiece(0, 3*int64(i), text)), text...)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Open(path, lostJob, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := times(t, file, time.Now()); !slices.Equal(got, []string{"old at ?", "est at ?"}) {
		t.Errorf("%q", got)
	}
}

func TestSince(t *testing.T) {
	var got bytes.Buffer
	next := map[work.Stream]int64{}
	s := Since{From: 100, Tell: func(o jobs.Output) error {
		if o.Offset < next[o.Stream] {
			t.Errorf("%q at %d again", o.Data, o.Offset)
		}
		next[o.Stream] = o.Offset + int64(len(o.Data))
		got.Write(o.Data)
		return nil
	}}
	at := map[work.Stream]int64{}
	for _, p := range []struct {
		at     int64
		stream work.Stream
		text   string
	}{
		{50, work.Stdout, "long ago\nbegun "}, {60, work.Stderr, "an error\n"}, {100, work.Stdout, "before, "}, {110, work.Stderr, "<a new error>"},
		{120, work.Stdout, "ended now\n<new\n"}, {130, work.Stdout, "lines\n>"}, {0, work.Stderr, "<nobody knows>"},
	} {
		if err := s.Take(jobs.Output{Attempt: 1, Stream: p.stream, Offset: at[p.stream], Data: []byte(p.text), At: p.at}); err != nil {
			t.Fatal(err)
		}
		at[p.stream] += int64(len(p.text))
	}
	if want := "<a new error><new\nlines\n><nobody knows>"; got.String() != want {
		t.Errorf("%q, want %q", got.String(), want)
	}
	if next[work.Stdout] != int64(strings.Count("long ago\nbegun before, ended now\n<new\nlines\n>", "")-1) {
		t.Errorf("ends at %d", next[work.Stdout])
	}
}
