package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"zorilla/internal/seeds"
)

// The test binary runs itself as a process of its own where a test needs one
// that can be killed or have limits.
func TestMain(m *testing.M) {
	path := os.Getenv("JOURNAL_TEST_PATH")
	switch os.Getenv("JOURNAL_TEST_CHILD") {
	case "append":
		childAppends(path)
	case "hold":
		childHolds(path)
	case "full":
		childFillsDisk(path)
	default:
		os.Exit(m.Run())
	}
}

func child(t *testing.T, what, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "JOURNAL_TEST_CHILD="+what, "JOURNAL_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

func childOpens(path string) *File {
	b, err := Open(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if size, err := strconv.Atoi(os.Getenv("JOURNAL_TEST_LOG")); err == nil {
		b.logSize = size
	}
	go b.Run(context.Background())
	return b
}

// childAppends prints the number of each entry once it is acknowledged, for
// ever. It goes on where an earlier one was stopped.
func childAppends(path string) {
	b := childOpens(path)
	first := 0
	if err := b.Load(func(Entry) error { first++; return nil }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	room := make(chan struct{}, 50)
	for i := first; ; i++ {
		room <- struct{}{}
		b.Append([]Entry{entry(fmt.Sprintf("k%d", i%7), fmt.Sprint(i))}, func(err error) {
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println(i)
			<-room
		})
	}
}

// A process that is killed again and again, at any time, with logs so small that
// they are always being changed, loses nothing of what it acknowledged.
func TestAcknowledgedEntriesSurviveSIGKILL(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seeds.One(t), 4))
	path := filepath.Join(t.TempDir(), "journal")
	there := 0
	for round := range 8 {
		acked, until := there, there+100+rnd.IntN(400)
		cmd := child(t, "append", path)
		cmd.Env = append(cmd.Env, "JOURNAL_TEST_LOG=8192")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines := bufio.NewScanner(out); lines.Scan(); acked++ {
			if lines.Text() != fmt.Sprint(acked) {
				t.Fatalf("round %d: acknowledged %s, want %d", round, lines.Text(), acked)
			}
			if acked == until {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		cmd.Wait()
		if acked < until {
			t.Fatalf("round %d: %d entries acknowledged: the child ended by itself", round, acked)
		}
		there = countNumbered(t, path)
		if there < acked {
			t.Fatalf("round %d: %d entries are there, %d were acknowledged", round, there, acked)
		}
	}
}

// countNumbered counts what childAppends wrote, without a gap.
func countNumbered(t *testing.T, path string) (total int) {
	t.Helper()
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	next := map[string]int{}
	err = b.Load(func(e Entry) error {
		n, err := strconv.Atoi(string(e.Data))
		if next[e.Key] == 0 && n < 7 {
			next[e.Key] = n
		}
		if err != nil || n != next[e.Key] || e.Key != fmt.Sprintf("k%d", n%7) {
			t.Fatalf("%s: entry %q (%s), want %d", e.Key, e.Data, e.Damage, next[e.Key])
		}
		next[e.Key] = n + 7
		total++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return total
}

// childHolds keeps the journal open until its standard input ends.
func childHolds(path string) {
	childOpens(path)
	fmt.Println("open")
	bufio.NewReader(os.Stdin).ReadByte()
}

func TestLockedByAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	cmd := child(t, "hold", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the child says %q", line)
	}
	began := time.Now()
	_, err = Open(path)
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want ErrLocked with the name of the file", err)
	}
	if d := time.Since(began); d > 5*time.Second { // about 1 s, with room for a busy machine
		t.Errorf("took %v", d)
	}
	in.Close()
	cmd.Wait()
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
}

// childFillsDisk appends under a limit on the size of files until that fails,
// and then without.
func childFillsDisk(path string) {
	b := childOpens(path)
	must := func(what string, ok bool, err error) {
		if !ok {
			fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
			os.Exit(1)
		}
	}
	big := strings.Repeat("x", 50_000)
	must("first entry", true, appendNow(b, entry("a", big)))
	var limit syscall.Rlimit
	must("limit", syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit) == nil, nil)
	small := syscall.Rlimit{Cur: 500_000, Max: limit.Max}
	must("limit", syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small) == nil, nil)
	written := 1
	var err error
	for err == nil && written < 100 {
		if err = appendNow(b, entry("a", big)); err == nil {
			written++
		}
	}
	must("full disk", err != nil && strings.Contains(err.Error(), path) && strings.Contains(err.Error(), "file too large") && strings.Contains(err.Error(), "has room"), err)
	must("limit", syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit) == nil, nil)
	err = appendNow(b, entry("a", "after the gap"))
	must("after the gap", errors.Is(err, ErrGap) && strings.Contains(err.Error(), "file too large"), err)
	err = appendNow(b, entry("b", big+big))
	must("another key", err == nil, err)
	fmt.Println(written)
}

func TestFullDiskReachesDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	out, err := child(t, "full", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	count := map[string]int{}
	if err := b.Load(func(e Entry) error { count[e.Key]++; return nil }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprintln(count["a"]) != string(out) || count["b"] != 1 {
		t.Fatalf("%v are there, acknowledged of a: %s", count, out)
	}
}

// filled makes a journal of some 100 pages and returns its bytes.
func filled(t *testing.T, path string) []byte {
	t.Helper()
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, b)
	for i := range 100 {
		if err := appendNow(b, entry(fmt.Sprintf("k%d", i%3), strings.Repeat("x", 3000))); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Whatever is cut off or overwritten: an error that names the file and the way
// out, or everything is there, or it is told what is not; never a crash.
func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	data := filled(t, path)
	rnd := rand.New(rand.NewPCG(seeds.One(t), 0))
	try := func(what string, data []byte, mustTell bool) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := Open(path)
		if err != nil {
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "move it away") {
				t.Errorf("%s: got %v", what, err)
			}
			return
		}
		defer b.Close()
		n, told := 0, len(b.Lost()) > 0
		err = b.Load(func(e Entry) error {
			if e.Damage != "" {
				told = true
			} else if n++; string(e.Data) != strings.Repeat("x", 3000) {
				t.Errorf("%s: an entry is not what it was", what)
			}
			return nil
		})
		if err != nil || n > 100 || !told && (n < 100 || mustTell) {
			t.Errorf("%s: %d entries, told %q, %v", what, n, b.Lost(), err)
		}
	}
	for _, size := range []int{1, 100, 4095, 4096, 5000, 8192, 16384, len(data) / 4, len(data) / 2} {
		try(fmt.Sprintf("first %d bytes", size), data[:size], true)
	}
	for range 10 {
		size := rnd.IntN(len(data))
		try(fmt.Sprintf("first %d bytes", size), data[:size], false)
	}
	try("text", []byte(strings.Repeat("this is not a journal\n", 1000)), true)
	try("zeros", make([]byte, len(data)), true)
	for range 20 {
		torn := append([]byte(nil), data...)
		page := rnd.IntN(len(data)/4096) * 4096
		clear(torn[page : page+4096])
		try(fmt.Sprintf("page at %d cleared", page), torn, false)
		for i := range 16 {
			torn[page+i] = byte(rnd.Uint32())
		}
		try(fmt.Sprintf("page at %d with a random header", page), torn, false)
	}
}

func TestEmptyAndUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Open(empty)
	if err != nil {
		t.Fatal(err)
	}
	b.Close()
	if err := b.Load(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none", "journal")} {
		if _, err := Open(path); err == nil || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestOtherVersion(t *testing.T) {
	for _, name := range []string{"zorilla journal 1", "zorilla journal 3"} {
		path := filepath.Join(t.TempDir(), "journal")
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error {
			outer, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			job, err := outer.CreateBucket([]byte("k7f3q@zeb2a"))
			if err != nil {
				return err
			}
			return job.Put([]byte{0, 0, 0, 0, 0, 0, 0, 1}, []byte("an event"))
		})
		if err != nil {
			t.Fatal(err)
		}
		db.Close()
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "another version") || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestReopenedMemoryIsAsAfterACrash(t *testing.T) {
	old := NewMemory()
	stop := start(t, old)
	if err := appendNow(old, entry("a", "1")); err != nil {
		t.Fatal(err)
	}
	next := old.Reopen()
	if err := appendNow(old, entry("a", "from the dead")); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
	stop()
	wantContent(t, next, "a: 1")
}

// An open journal has nothing in memory of the keys that were in its table.
func TestOpenJournalHasNoKeysInMemory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	for life := range 2 {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.found.keys) > 0 {
			t.Errorf("life %d: %d keys are in memory", life, len(f.found.keys))
		}
		ctx, stop := context.WithCancel(t.Context())
		f.Append([]Entry{{Key: "a", Data: []byte("x")}}, func(error) { stop() })
		if err := f.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
