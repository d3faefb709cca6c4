package journal

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// implementation is a journal under test: open makes an empty one, and reopen
// makes it anew after Run has ended.
type implementation struct {
	open   func(t *testing.T) Journal
	reopen func(t *testing.T, j Journal) Journal
}

func implementations() map[string]implementation {
	onDisk := func(logSize int, m medium) implementation {
		openAt := func(t *testing.T, path string) Journal {
			t.Helper()
			f, err := open(path, m)
			if err != nil {
				t.Fatal(err)
			}
			f.logSize = logSize
			t.Cleanup(func() { f.Close() })
			return f
		}
		return implementation{
			open:   func(t *testing.T) Journal { return openAt(t, filepath.Join(t.TempDir(), "journal")) },
			reopen: func(t *testing.T, j Journal) Journal { return openAt(t, j.(*File).path) },
		}
	}
	return map[string]implementation{
		"file":             onDisk(defaultLog, realMedium{}),
		"file, small logs": onDisk(1000, looseMedium{}),
		"memory": {
			open:   func(t *testing.T) Journal { return NewMemory() },
			reopen: func(t *testing.T, j Journal) Journal { return j.(*Memory).Reopen() },
		},
	}
}

// start runs a journal; stop ends it.
func start(t *testing.T, j Journal) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// appendNow appends and waits; deleteNow deletes and waits.
func appendNow(j Journal, entries ...Entry) error {
	done := make(chan error, 1)
	j.Append(entries, func(err error) { done <- err })
	return <-done
}

func deleteNow(j Journal, key string) error {
	done := make(chan error, 1)
	j.Delete(key, func(err error) { done <- err })
	return <-done
}

func entry(key, data string) Entry { return Entry{Key: key, Data: []byte(data)} }

// content is what Load gives, as "key: data data" lines in order of the keys.
func content(t *testing.T, j Journal) string {
	t.Helper()
	byKey := map[string][]string{}
	err := j.Load(func(e Entry) error {
		byKey[e.Key] = append(byKey[e.Key], string(e.Data))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for key, data := range byKey {
		lines = append(lines, key+": "+strings.Join(data, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func wantContent(t *testing.T, j Journal, want ...string) {
	t.Helper()
	if got := content(t, j); got != strings.Join(want, "\n") {
		t.Fatalf("the journal holds\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestConformance(t *testing.T) {
	for name, impl := range implementations() {
		for _, test := range []struct {
			name string
			run  func(*testing.T, implementation)
		}{
			{"keeps order and survives", testKeepsOrder},
			{"delete", testDelete},
			{"replace and read", testReplace},
			{"bad entries", testBadEntries},
			{"load stops and copies", testLoad},
			{"done in order, many writers", testManyWriters},
			{"end of run", testEndOfRun},
			{"calls from done", testCallsFromDone},
		} {
			t.Run(name+"/"+test.name, func(t *testing.T) { test.run(t, impl) })
		}
	}
}

func testKeepsOrder(t *testing.T, impl implementation) {
	j := impl.open(t)
	wantContent(t, j)
	stop := start(t, j)
	var want []string
	for i := range 300 { // beyond one byte of sequence number, and beyond one page
		if err := appendNow(j, entry("a@z", fmt.Sprint(i)), entry("b", strings.Repeat("x", i))); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(i))
	}
	if err := appendNow(j, Entry{Key: "empty"}); err != nil {
		t.Fatal(err)
	}
	check := func(j Journal) {
		t.Helper()
		got := strings.Split(content(t, j), "\n")
		if len(got) != 3 || got[0] != "a@z: "+strings.Join(want, " ") || len(got[1]) != 3+299+299*300/2 || got[2] != "empty: " {
			t.Fatalf("got %.200q", got)
		}
	}
	check(j)
	stop()
	j = impl.reopen(t, j)
	check(j)
	stop = start(t, j)
	defer stop()
	if err := appendNow(j, entry("a@z", "300")); err != nil {
		t.Fatal(err)
	}
	want = append(want, "300")
	check(j)
}

func testDelete(t *testing.T, impl implementation) {
	j := impl.open(t)
	stop := start(t, j)
	for _, err := range []error{
		appendNow(j, entry("a", "1"), entry("b", "1"), entry("a", "2")),
		deleteNow(j, "a"),
		deleteNow(j, "never"),
		appendNow(j, entry("a", "3")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantContent(t, j, "a: 3", "b: 1")
	stop()
	wantContent(t, impl.reopen(t, j), "a: 3", "b: 1")
}

func testReplace(t *testing.T, impl implementation) {
	j := impl.open(t)
	stop := start(t, j)
	replaceNow := func(e Entry) error {
		done := make(chan error, 1)
		j.Replace(e, func(err error) { done <- err })
		return <-done
	}
	for _, err := range []error{
		appendNow(j, entry("a", "1"), entry("b", "1"), entry("a", "2"), entry("c", "1")),
		replaceNow(entry("a", "all")),
		appendNow(j, entry("a", "next")),
		replaceNow(entry("new", "1")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := replaceNow(Entry{Key: "b", Data: make([]byte, MaxData+1)}); !errors.Is(err, ErrInvalid) {
		t.Errorf("too large: got %v, want ErrInvalid", err)
	}
	if err := appendNow(j, entry("b", "2")); err != nil {
		t.Errorf("after a Replace that failed: %v", err)
	}
	if err := appendNow(j, Entry{Key: "c", Data: make([]byte, MaxData+1)}); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	if err := replaceNow(entry("c", "heals")); err != nil {
		t.Errorf("in the place of a key with a gap: %v", err)
	}
	stop()
	j = impl.reopen(t, j)
	wantContent(t, j, "a: all next", "b: 1 2", "c: heals", "new: 1")
	for key, want := range map[string]string{"a": "[all next]", "b": "[1 2]", "never": "[]"} {
		got, err := j.Read(key)
		var data []string
		for _, e := range got {
			data = append(data, string(e.Data))
		}
		if err != nil || fmt.Sprint(data) != want {
			t.Errorf("key %s: got %v, %v, want %s", key, data, err, want)
		}
	}
}

func testBadEntries(t *testing.T, impl implementation) {
	j := impl.open(t)
	stop := start(t, j)
	defer stop()
	for _, bad := range []Entry{
		entry("", "x"), entry("a/b", "x"), entry("../x", "x"), entry("ü", "x"), entry(strings.Repeat("k", MaxKey+1), "x"),
		{Key: "good", Data: make([]byte, MaxData+1)},
	} {
		if err := appendNow(j, entry("other", "x"), bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("key %.20q, %d bytes: got %v, want ErrInvalid", bad.Key, len(bad.Data), err)
		}
		if err := deleteNow(j, "other"); err != nil {
			t.Fatal(err)
		}
	}
	if err := deleteNow(j, "a b"); !errors.Is(err, ErrInvalid) {
		t.Errorf("delete: got %v, want ErrInvalid", err)
	}
	// "good" lost an entry: nothing may follow the gap until it is deleted.
	if err := appendNow(j, entry("good", "2")); !errors.Is(err, ErrGap) || !errors.Is(err, ErrInvalid) {
		t.Errorf("after a lost entry: got %v, want ErrGap and its cause", err)
	}
	if err := appendNow(j, entry("fine", "1"), entry("good", "3")); !errors.Is(err, ErrGap) {
		t.Errorf("after a lost entry: got %v, want ErrGap", err)
	}
	if err := appendNow(j, entry("fine", "2")); !errors.Is(err, ErrGap) {
		t.Errorf("an Append is all or none, and fine lost an entry too: got %v, want ErrGap", err)
	}
	wantContent(t, j)
	if err := deleteNow(j, "good"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		appendNow(j, entry("good", "4")),
		appendNow(j, entry(strings.Repeat("k", MaxKey), "x")),
		appendNow(j),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantContent(t, j, "good: 4", strings.Repeat("k", MaxKey)+": x")
	j.Append([]Entry{entry("nobody", "waits")}, nil)
	j.Delete("nobody", nil)
}

func testLoad(t *testing.T, impl implementation) {
	j := impl.open(t)
	stop := start(t, j)
	defer stop()
	data := []byte("1")
	if err := appendNow(j, Entry{Key: "a", Data: data}, entry("a", "2")); err != nil {
		t.Fatal(err)
	}
	data[0] = 'X' // ours again after done
	calls, enough := 0, errors.New("enough")
	err := j.Load(func(e Entry) error {
		calls++
		e.Data = append(e.Data[:0], '?')
		return enough
	})
	if err != enough || calls != 1 {
		t.Fatalf("got %v after %d calls", err, calls)
	}
	wantContent(t, j, "a: 1 2")
	defer func() {
		if recover() != "mistake" {
			t.Error("a panic of the caller's function is hidden")
		}
	}()
	j.Load(func(Entry) error { panic("mistake") })
}

func testManyWriters(t *testing.T, impl implementation) {
	j := impl.open(t)
	stop := start(t, j)
	defer stop()
	const writers, each = 20, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			order := make(chan int, each)
			for i := range each {
				j.Append([]Entry{entry(fmt.Sprintf("k%02d", w), fmt.Sprint(i))}, func(err error) {
					if err != nil {
						t.Error(err)
					}
					order <- i
				})
			}
			for i := range each {
				if got := <-order; got != i {
					t.Errorf("done %d was called as number %d", got, i)
				}
			}
		})
	}
	wg.Wait()
	var all []string
	for i := range each {
		all = append(all, fmt.Sprint(i))
	}
	for line := range strings.SplitSeq(content(t, j), "\n") {
		if _, got, _ := strings.Cut(line, ": "); got != strings.Join(all, " ") {
			t.Errorf("out of order: %s", line)
		}
	}
}

func testEndOfRun(t *testing.T, impl implementation) {
	j := impl.open(t)
	var got []error
	for i := range 5 { // queued before Run starts, written although it is told to end
		j.Append([]Entry{entry("a", fmt.Sprint(i))}, func(err error) { got = append(got, err) })
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	for _, err := range got {
		if err != nil {
			t.Fatal(err)
		}
	}
	late := errors.New("not called")
	j.Append([]Entry{entry("a", "late")}, func(err error) { late = err })
	if len(got) != 5 || !errors.Is(late, ErrClosed) {
		t.Fatalf("%d done, late: %v", len(got), late)
	}
	wantContent(t, impl.reopen(t, j), "a: 0 1 2 3 4")
}

func testCallsFromDone(t *testing.T, impl implementation) {
	j := impl.open(t)
	stop := start(t, j)
	defer stop()
	finished := make(chan error)
	j.Append([]Entry{entry("a", "1")}, func(error) {
		j.Append([]Entry{entry("a", "2")}, func(error) {
			j.Delete("a", func(error) {
				j.Append([]Entry{entry("a", "3")}, func(err error) { finished <- err })
			})
		})
	})
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	wantContent(t, j, "a: 3")
}
