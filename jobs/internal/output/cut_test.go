package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/jobs"
)

// Wherever a crash cuts the file, in a time too, what is before is told, and it goes on after that.
func TestFileThatIsCutWithinATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file, err := Open(filepath.Join(dir, "output"), lostJob, true)
		if err != nil {
			t.Fatal(err)
		}
		text := "abcdef"
		var ends []int64 // of the file, with so many bytes of text in it
		for i := range text {
			size, _, _ := file.Spool.State()
			ends = append(ends, size)
			if err := file.Append([]jobs.Output{outputPiece(0, int64(i), text[i:i+1])}); err != nil {
				t.Fatal(err)
			}
			if err := file.Sync(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		file.Spool.Close()
		whole, err := os.ReadFile(filepath.Join(dir, "output"))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for cut := range int64(len(whole)) {
			path := filepath.Join(dir, "cut")
			if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			had := 0
			for had+1 < len(ends) && ends[had+1] <= cut {
				had++
			}
			file, err := Open(path, lostJob, true)
			if err != nil {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			for i := had; i < len(text); i++ {
				if err := file.Append([]jobs.Output{outputPiece(0, int64(i), text[i:i+1])}); err != nil {
					t.Fatal(err)
				}
			}
			file.Spool.Close()
			again, err := Open(path, lostJob, false)
			if err != nil {
				t.Fatal(err)
			}
			list := times(t, again, start)
			var got strings.Builder
			for i, s := range list {
				got.WriteString(s[:1])
				if late := strings.HasSuffix(s, " at 0"); late != (i >= had) {
					t.Errorf("cut at %d, %d were there: %q", cut, had, list)
				}
			}
			if got.String() != text || again.blind > 0 {
				t.Errorf("cut at %d: %q, %d bytes tell nothing", cut, list, again.blind)
			}
			again.Spool.Close()
		}
	})
}
