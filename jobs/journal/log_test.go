package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zorilla/internal/seeds"
)

// logged makes a journal whose process was killed, and returns its table, its log and
// what it holds.
func logged(t *testing.T, path string, entries int) (table, log []byte, want map[string][]string) {
	t.Helper()
	f := openSmall(t, path, looseMedium{})
	want = map[string][]string{}
	for i := range entries {
		key := fmt.Sprintf("job%d@node", i%2)
		data := fmt.Sprintf("%s has %d", key, i)
		want[key] = append(want[key], data)
		if err := f.commit([]op{{entries: []Entry{entry(key, data)}}}); err != nil {
			t.Fatal(err)
		}
	}
	table, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if log, err = os.ReadFile(f.log.Name()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return table, bytes.TrimRight(log, "\x00"), want
}

// spoiled puts a journal there with a log.
func spoiled(t *testing.T, path string, table, log []byte) {
	t.Helper()
	if err := errors.Join(overwrite(path, table), overwrite(logFile(path, 1), log)); err != nil {
		t.Fatal(err)
	}
}

// A bit that is flipped in a log, in the newest transaction too, costs one key at
// most, and that is named.
func TestEveryBitOfALog(t *testing.T) {
	seeds.OneGoroutine(t)
	path := filepath.Join(t.TempDir(), "journal")
	table, log, want := logged(t, path, 2)
	for bit := range 8 * len(log) {
		spoiled(t, path, table, append(flip(log, bit), make([]byte, 100)...))
		checkAt(t, fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), path, want)
	}
	spoiled(t, path, table, log)
	if checkAt(t, "as it was", path, want) {
		t.Error("something is wrong with the sound log")
	}
}

// A log that ends anywhere loses what was not completed, which is told, and nothing
// else. What is lost in its middle is told too, and kept.
func TestLogThatIsCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	table, log, want := logged(t, path, 4)
	transactions := readLog(log).transactions
	for size := range len(log) {
		whole := 0
		for _, x := range transactions {
			if last := x.steps[len(x.steps)-1].record; bytes.Index(log, last)+len(last) <= size {
				whole++ // its foot is needed only if its head is damaged
			}
		}
		spoiled(t, path, table, append(slices.Clone(log[:size]), make([]byte, len(log)-size)...))
		f, err := openLoose(path)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = f.Load(func(e Entry) error {
			n++
			if e.Damage != "" || !slices.Contains(want[e.Key], string(e.Data)) {
				t.Errorf("cut at %d: %+v", size, e)
			}
			return nil
		})
		clean := whole == len(transactions) || size <= transactions[whole].at
		if err != nil || n != whole || len(f.Lost()) > 1 || clean != (len(f.Lost()) == 0) {
			t.Errorf("cut at %d: %d entries are there of %d; told %q, %v", size, n, whole, f.Lost(), err)
		}
		f.Close()
	}
	second := transactions[1]
	hole := slices.Clone(log)
	clear(hole[second.at : second.at+second.size])
	spoiled(t, path, table, hole)
	f, err := openLoose(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if told := f.Lost(); len(told) != 1 || !strings.Contains(told[0], "1 transactions are lost") || !strings.Contains(told[0], path) {
		t.Errorf("told %q", told)
	}
	if kept, err := os.ReadFile(logFile(path, 1) + ".damaged"); err != nil || !bytes.Equal(kept, hole) {
		t.Errorf("the damaged log is not kept: %v", err)
	}
	if one, err := f.Read("job1@node"); err != nil || len(one) != 1 || one[0].Damage != "entry 1 of 2 is missing" {
		t.Errorf("the key: %v, %v", one, err)
	}
}

// A log that was removed, and that a power cut brought back, changes nothing, whatever
// its number.
func TestLogThatIsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	_, old, want := logged(t, path, 4)
	f := openSmall(t, path, looseMedium{})
	if err := f.commit([]op{{remove: "job0@node"}, {entries: []Entry{entry("job1@node", "next")}}}); err != nil {
		t.Fatal(err)
	}
	killed := (&badMedium{}).killed(t, path)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(logFile(killed, 9), old, 0o600); err != nil {
		t.Fatal(err)
	}
	delete(want, "job0@node")
	want["job1@node"] = append(want["job1@node"], "next")
	if checkAt(t, "a log is back", killed, want) {
		t.Error("something is wrong with it")
	}
	f, err := openLoose(killed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wantContent(t, f, "job1@node: "+strings.Join(want["job1@node"], " "))
}

// Logs without their table are not believed, but kept: whoever removed the table did
// so to begin without its jobs.
func TestLogsWithoutTheirTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	_, log, _ := logged(t, path, 4)
	spoiled(t, path, nil, log)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, told := range []int{1, 0} {
		f, err := openLoose(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Lost()) != told {
			t.Errorf("told %q", f.Lost())
		}
		wantContent(t, f)
		f.Close()
	}
	if kept, err := os.ReadFile(logFile(path, 1) + ".damaged"); err != nil || !bytes.Equal(kept, log) {
		t.Errorf("the log is not kept: %v", err)
	}
}
