package users

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"zorilla/internal/needs"
)

func TestRanges(t *testing.T) {
	for text, want := range map[string]string{
		"70000-70009": "70000-70009", "5-5": "5-5", "2100000000-2147483647": "2100000000-2147483647",
		"": "", "-": "", "0-5": "", "9-8": "", "a-b": "", "1-2-3": "", "-1-5": "", "1-2147483648": "", "70000": "", "1- 2": "",
	} {
		r, err := Parse(text)
		if got := r.String(); err == nil && got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
	for text, want := range map[string]bool{"1-2": true, "9-8": true, "nobody": false, "www-data": false, "70000": false} {
		if got := IsRange(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestNumbersOfOthersAreRefused(t *testing.T) {
	if err := Default.Check(); err != nil {
		t.Error(err)
	}
	for _, r := range []Range{{1, 10}, {60000, 61184}, {65000, 65001}, {65535, 70000}} {
		if err := r.Check(); err == nil {
			t.Errorf("%v is taken for free", r)
		}
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	names := write("passwd", "root:x:0:0:root:/root:/bin/sh\n+::::::\nbad\nann:x:70005:100:Ann:/home/ann:/bin/sh\n")
	subs := write("subuid", "ann:100000:65536\nbad:x:1\n")
	for _, c := range []struct {
		r     Range
		path  string
		owned func([]string) Range
		want  string
	}{
		{Range{70000, 70009}, names, one, "ann"},
		{Range{70006, 70009}, names, one, ""},
		{Range{165535, 170000}, subs, several, "ann"},
		{Range{165536, 170000}, subs, several, ""},
		{Range{1, 2}, filepath.Join(dir, "none"), one, ""},
	} {
		if who, err := c.r.find(c.path, c.owned); who != c.want || err != nil {
			t.Errorf("%v in %s: %q, %v", c.r, c.path, who, err)
		}
	}
	maps := write("map", "         0     100000      65536\n")
	if !mapped(Range{1000, 65535}, maps) || mapped(Range{1000, 65536}, maps) || mapped(Default, maps) {
		t.Error("what a container's user has is not told from what it has not")
	}
}

// reserve reserves numbers of four blocks for a node, which is killed at the test's end.
func reserve(t *testing.T, place, work string) *Block {
	t.Helper()
	b, err := Reserve(place, Range{100_001, 100_000 + 4*blockSize}, work)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.letGo)
	return b
}

// Nodes of a machine have numbers of their own, and a node that was killed keeps those
// that its workers and their files have.
func TestReservations(t *testing.T) {
	place, work := filepath.Join(t.TempDir(), "users"), t.TempDir()
	for _, name := range []string{"a/x", "b/x", "c", "d/x"} {
		if err := os.MkdirAll(filepath.Join(work, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(work, name) }
	a, b, c := reserve(t, place, at("a")), reserve(t, place, at("b")), reserve(t, place, at("c"))
	first := []Range{a.numbers, b.numbers, c.numbers}
	if a.numbers.overlaps(b.numbers) || b.numbers.overlaps(c.numbers) || a.numbers.overlaps(c.numbers) {
		t.Fatalf("the same numbers: %v", first)
	}
	a.letGo() // as SIGKILL does
	c.letGo()
	d := reserve(t, place, at("d"))
	if d.numbers.overlaps(first[0]) || d.numbers.overlaps(first[2]) {
		t.Errorf("got %v, had by nodes that were killed: %v", d.numbers, first)
	}
	if a = reserve(t, place, at("a")); a.numbers != first[0] {
		t.Errorf("a node that came back has %v, had %v", a.numbers, first[0])
	}
	last := reserve(t, place, at("c"))
	if _, err := Reserve(place, Range{100_001, 100_000 + 4*blockSize}, at("e")); err == nil || !strings.Contains(err.Error(), "have all of 100001-104096") {
		t.Errorf("a fifth node: %v", err)
	}
	last.Close()
	if _, err := os.Stat(filepath.Join(place, last.numbers.String())); err == nil {
		t.Error("a node that stopped without workers has left its reservation")
	}
	b.Close()
	if _, err := os.Stat(filepath.Join(place, b.numbers.String())); err != nil {
		t.Errorf("a node that stopped with workers has lost its reservation: %v", err)
	}
	// Of another range there are others; the former ones stay its own.
	a.letGo()
	moved, err := Reserve(place, Default, at("a"))
	if err != nil || !Default.holds(moved.numbers.First) {
		t.Fatalf("%+v, %v", moved, err)
	}
	defer moved.Close()
	if other := reserve(t, place, at("e")); other.numbers.overlaps(first[0]) {
		t.Errorf("another node has %v", other.numbers)
	}
}

// The disk of a node's files may not be there when another node starts: its numbers go to
// others only when there are no more, those of who was away longest first.
func TestReservationOfADiskThatIsAway(t *testing.T) {
	place, work := filepath.Join(t.TempDir(), "users"), t.TempDir()
	at := func(name string) string { return filepath.Join(work, name) }
	was := map[string]Range{}
	for i, name := range []string{"away", "here", "longest", "empty"} {
		if err := os.MkdirAll(at(name)+"/x", 0o700); err != nil {
			t.Fatal(err)
		}
		b := reserve(t, place, at(name))
		was[name] = b.numbers
		begun := time.Now().Add(time.Duration(-i) * time.Hour)
		if err := os.Chtimes(filepath.Join(place, b.numbers.String()), begun, begun); err != nil {
			t.Fatal(err)
		}
		b.letGo()
	}
	back := reserve(t, place, at("empty"))
	back.letGo() // it began last
	if err := errors.Join(os.Rename(at("away"), at("elsewhere")), os.RemoveAll(at("longest")), os.Remove(at("empty")+"/x")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"longest", "away", "empty"} {
		if b := reserve(t, place, at(fmt.Sprint("new", i))); b.numbers != was[want] {
			t.Errorf("got %v, want those of %s: %v", b.numbers, want, was)
		}
	}
	if _, err := Reserve(place, Range{100_001, 100_000 + 4*blockSize}, at("more")); err == nil {
		t.Error("a node has the numbers of one with workers")
	}
}

// A node that stops cannot tell that nothing is left where it cannot look.
func TestReservationStaysWithoutADisk(t *testing.T) {
	place, work := filepath.Join(t.TempDir(), "users"), filepath.Join(t.TempDir(), "work")
	for _, used := range []bool{false, true} {
		b := reserve(t, place, work)
		if used {
			b.mustNumber(t, "job", work+"/x")
		}
		b.Close()
		if _, err := os.Stat(filepath.Join(place, b.numbers.String())); (err == nil) != used {
			t.Errorf("used %v: %v", used, err)
		}
	}
}

func (b *Block) mustNumber(t *testing.T, job, root string) int {
	t.Helper()
	n, err := b.Number(job, root)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNumbers(t *testing.T) {
	b := reserve(t, t.TempDir(), t.TempDir())
	one := b.mustNumber(t, "j", "/j-0")
	if two := b.mustNumber(t, "j", "/j-1"); two != one || !b.numbers.holds(one) {
		t.Errorf("workers of a job have %d and %d", one, two)
	}
	b.Known("old", "/old-0", one+1)
	b.Known("before", "/before-0", 65534) // all had it once
	other := b.mustNumber(t, "k", "/k-0")
	if other == one || other == one+1 {
		t.Errorf("two jobs have %d", other)
	}
	if n := b.mustNumber(t, "old", "/old-1"); n != one+1 {
		t.Errorf("a job that came back has %d, had %d", n, one+1)
	}
	if n := b.mustNumber(t, "before", "/before-1"); !b.numbers.holds(n) {
		t.Errorf("got %d", n)
	}
	b.Left("/j-0")
	if n := b.mustNumber(t, "j", "/j-2"); n != one {
		t.Errorf("a job has %d and %d", one, n)
	}
	seen := map[int]bool{}
	for i := range blockSize - 4 {
		seen[b.mustNumber(t, strconv.Itoa(i), strconv.Itoa(i))] = true
	}
	if len(seen) != blockSize-4 || seen[one] || seen[one+1] || seen[other] {
		t.Errorf("%d numbers for %d jobs", len(seen), blockSize-4)
	}
	if n, err := b.Number("more", "/more"); err == nil {
		t.Errorf("all are given out, and then %d", n)
	}
	b.Left("17")
	if n := b.mustNumber(t, "more", "/more"); !b.numbers.holds(n) {
		t.Errorf("got %d", n)
	}
	var none *Block
	none.Known("j", "/j-0", 5)
	none.Left("/j-0")
	none.Close()
	if n, err := none.Number("j", "/j-0"); n != -1 || err != nil {
		t.Errorf("without numbers: %d, %v", n, err)
	}
}

// What a process still has, nobody gets.
func TestNumberOfALivingProcess(t *testing.T) {
	needs.Root(t)
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 100_001, Gid: 100_001}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	b := reserve(t, t.TempDir(), t.TempDir())
	for i := range b.numbers.Last - b.numbers.First {
		if n := b.mustNumber(t, fmt.Sprint(i), fmt.Sprint("/", i)); n == 100_001 {
			t.Errorf("job %d has the number of a process", i)
		}
	}
}
