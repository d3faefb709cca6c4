package output

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
)

// However long a file is, only its end is read for its end, and that is told whole, of those who
// count.
func TestTail(t *testing.T) {
	for name, last := range map[string]int{"short pieces": 1000, "the longest piece": wire.MaxBody} {
		file, err := Open(filepath.Join(t.TempDir(), "output"), lostJob, true)
		if err != nil {
			t.Fatal(err)
		}
		wanted := func(ra jobs.RankAttempt) bool { return ra.Rank == 0 }
		read := func() (got []byte) {
			t.Helper()
			err := file.Tail(t.Context(), wanted, func(o jobs.Output) error { got = append(got, o.Data...); return nil })
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if got := read(); len(got) > 0 {
			t.Errorf("of no file: %q", got)
		}
		var all []byte
		add := func(n int) {
			t.Helper()
			text := bytes.Repeat([]byte(fmt.Sprintf("%7d\n", len(all))), n/8)
			if err := file.Append([]jobs.Output{outputPiece(0, int64(len(all)), string(text)), outputPiece(1, int64(len(all)), string(text))}); err != nil {
				t.Fatal(err)
			}
			all = append(all, text...)
		}
		add(80)
		if got := read(); !bytes.Equal(got, all) {
			t.Errorf("of a short file: %q", got)
		}
		for len(all) < 2*tailSize {
			add(100_000)
		}
		end := bytes.Repeat([]byte("the end\n"), last/8)
		if err := file.Append([]jobs.Output{outputPiece(0, int64(len(all)), string(end))}); err != nil {
			t.Fatal(err)
		}
		all = append(all, end...)
		if got := read(); len(got) < 100_000 || len(got) > tailSize || !bytes.HasSuffix(all, got) {
			t.Errorf("%s: got %d bytes of %d, that end with %q", name, len(got), len(all), got[max(0, len(got)-30):])
		}
		if err := file.Spool.Close(); err != nil {
			t.Error(err)
		}
	}
}
