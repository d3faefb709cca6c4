package journal

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A journal that was written before there were logs has all that it had, and what
// is added to it is found by the next one that opens it.
func TestJournalOfBeforeThereWereLogs(t *testing.T) {
	packed, err := os.ReadFile("testdata/before-logs.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	table, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, table, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"k7f3q@zeb2a: event 0 event 1 event 2",
		"long@zeb2a: " + strings.Repeat("0", 3000) + " " + strings.Repeat("1", 3000) + " " + strings.Repeat("2", 3000),
		"new@zeb2a: only",
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	wantContent(t, f, want...)
	if err := f.commit([]op{{entries: []Entry{entry("k7f3q@zeb2a", "event 3")}}}); err != nil {
		t.Fatal(err)
	}
	want[0] += " event 3"
	wantContent(t, f, want...)
	killed := (&badMedium{}).killed(t, path)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, killed} {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Lost()) != 0 {
			t.Errorf("told %q", f.Lost())
		}
		wantContent(t, f, want...)
		f.Close()
	}
}

// The layout of a log does not change: one that another version left is read.
func TestLayoutOfALog(t *testing.T) {
	steps := []step{{key: "gone@zeb2a"}}
	for i, data := range []string{"event 0", "event 1"} {
		r := record{seq: uint64(i) + 1, stamp: 258, born: 258, key: "k7f3q@zeb2a", data: []byte(data)}
		steps = append(steps, step{r.key, r.seq, r.append(nil)})
	}
	const golden = "9c7a68019de1f97100000000000001020000012c000000470000000000000000000000000a676f6e65407a656232610000000000000001000000370b6b376633" +
		"71407a656232610000000000000002000000370b6b37663371407a656232619c7a6a0291b45c1200000000000000010000000000000102000000000000010200" +
		"0000070b6b37663371407a656232616576656e7420309c7a6a020073969d000000000000000200000000000001020000000000000102000000070b6b37663371" +
		"407a656232616576656e7420310000000000000000000000000a676f6e65407a656232610000000000000001000000370b6b37663371407a6562326100000000" +
		"00000002000000370b6b37663371407a656232619de1f97100000000000001020000012c000000479c7a6601"
	if got := hex.EncodeToString(appendTransaction(nil, 258, steps)); got != golden {
		t.Errorf("got\n%s\nwant\n%s", got, golden)
	}
	log, err := hex.DecodeString(golden + strings.Repeat("00", 100))
	if err != nil {
		t.Fatal(err)
	}
	c := readLog(log)
	if len(c.transactions) != 1 || c.rest != 0 || c.transactions[0].number != 258 || len(c.transactions[0].damaged()) != 0 {
		t.Fatalf("read %+v", c)
	}
	for i, s := range c.transactions[0].steps {
		if s.key != steps[i].key || s.seq != steps[i].seq || !bytes.Equal(s.record, steps[i].record) {
			t.Errorf("step %d is %+v", i, s)
		}
	}
}
