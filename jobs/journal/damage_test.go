package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"zorilla/internal/seeds"
)

// sample makes a journal, and returns its bytes and what it holds. Entries of size
// bytes, and more of them, make more pages.
func sample(t *testing.T, path string, keys, entries, size int) ([]byte, map[string][]string) {
	t.Helper()
	b, err := openLoose(path)
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, b)
	want := map[string][]string{}
	for i := range entries {
		var batch []Entry
		for k := range keys {
			key := fmt.Sprintf("job%d@node", k)
			data := fmt.Sprintf("%s has %d %s", key, i, strings.Repeat("x", size))
			want[key] = append(want[key], data)
			batch = append(batch, entry(key, data))
		}
		if err := appendNow(b, append(batch, entry("gone", "before"))...); err != nil {
			t.Fatal(err)
		}
	}
	if err := deleteNow(b, "gone"); err != nil { // its pages are free now
		t.Fatal(err)
	}
	stop()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file, want
}

// check opens a damaged journal, and fails if anything that it holds is not what
// was appended, or is missing, and nobody says so; or if a key vanished.
func check(t *testing.T, what, path string, file []byte, want map[string][]string) (told bool) {
	t.Helper()
	if err := overwrite(path, file); err != nil {
		t.Fatal(err)
	}
	return checkAt(t, what, path, want)
}

// overwrite is os.WriteFile that never empties the file, for which ext4 waits
// until what was in it is on the disk.
func overwrite(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Truncate(int64(len(b))), f.Close())
}

// checkAt is check of the journal as it is there.
func checkAt(t *testing.T, what, path string, want map[string][]string) (told bool) {
	t.Helper()
	b, err := openLoose(path)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	defer b.Close()
	got, damaged := map[string][]string{}, map[string]bool{}
	err = b.Load(func(e Entry) error {
		if damaged[e.Key] {
			t.Errorf("%s: something follows the damage of %s", what, e.Key)
		}
		if e.Damage != "" {
			damaged[e.Key] = true
			return nil
		}
		got[e.Key] = append(got[e.Key], string(e.Data))
		return nil
	})
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for key, all := range want {
		n := len(got[key])
		if n > len(all) || !slices.Equal(got[key], all[:n]) || (n < len(all)) && !damaged[key] {
			t.Errorf("%s: %s holds %d entries of %d, damaged is %v; told %q", what, key, n, len(all), damaged[key], b.Lost())
		}
	}
	for key := range got {
		if want[key] == nil && len(b.Lost()) == 0 {
			t.Errorf("%s: %s came out of nothing", what, key)
		}
	}
	if len(damaged) > 2 { // a name that is a ghost may be one
		t.Errorf("%s: %d keys are damaged", what, len(damaged))
	}
	for _, l := range b.Lost() {
		if !strings.Contains(l, path) || strings.Contains(l, "\n") {
			t.Errorf("%s: told %q", what, l)
		}
	}
	os.Remove(path + ".damaged")
	return len(b.Lost()) > 0 || len(damaged) > 0
}

// inUse calls f with the places of the file where something stands.
func inUse(file []byte, f func(at int)) {
	for page := 0; page < len(file); page += os.Getpagesize() {
		p := file[page:min(page+os.Getpagesize(), len(file))]
		for at := range bytes.TrimRight(p, "\x00") {
			f(page + at)
		}
	}
}

func flip(file []byte, bit int) []byte {
	file = bytes.Clone(file)
	file[bit/8] ^= 1 << (bit % 8)
	return file
}

// A bit that is flipped anywhere changes at most one key, and never without a word.
func TestEveryBitOfAFile(t *testing.T) {
	seeds.OneGoroutine(t)
	path := filepath.Join(t.TempDir(), "journal")
	file, want := sample(t, path, 2, 2, 0)
	told, tried := 0, 0
	inUse(file, func(at int) {
		for bit := range 8 {
			tried++
			if check(t, fmt.Sprintf("bit %d of byte %d", bit, at), path, flip(file, 8*at+bit), want) {
				told++
			}
		}
	})
	if told < tried/4 {
		t.Errorf("of %d bits only %d were noticed", tried, told)
	}
}

// The same of a journal with pages of all kinds; random ones of its bits.
func TestBitsOfALargerFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	file, want := sample(t, path, 150, 4, 300)
	var places []int
	inUse(file, func(at int) { places = append(places, at) })
	rnd := rand.New(rand.NewPCG(seeds.One(t), 1))
	for range seeds.Fewer(200, 20) {
		bit := 8*places[rnd.IntN(len(places))] + rnd.IntN(8)
		check(t, fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), path, flip(file, bit), want)
	}
	x := look(file)
	if x.err != nil || len(x.keys) != 150 || x.heads != 2 {
		t.Fatalf("the sound file: %+v", x)
	}
	for range seeds.Fewer(200, 20) { // those of pages' heads and elements matter most
		page := os.Getpagesize() * rnd.IntN(len(file)/os.Getpagesize())
		bit := 8*page + rnd.IntN(8*64)
		check(t, fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), path, flip(file, bit), want)
	}
}

// A key whose name was flipped is neither lost nor another key.
func TestEveryBitOfAName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	file, want := sample(t, path, 40, 1, 400)
	name := []byte("job17@node")
	for at := 0; ; {
		next := bytes.Index(file[at:], name)
		if next < 0 {
			return
		}
		at += next
		for bit := range 8 * len(name) {
			check(t, fmt.Sprintf("bit %d of the name at %d", bit, at), path, flip(file, 8*at+bit), want)
		}
		at += len(name)
	}
}

// There is no list of free pages in the file that could be damaged: bbolt would
// write over what is in use.
func TestNoFreeListIsStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	file, _ := sample(t, path, 20, 3, 300)
	for page := 2; page < len(file)/os.Getpagesize(); page++ {
		p := file[page*os.Getpagesize():]
		if order.Uint16(p[8:]) == 0x10 && order.Uint64(p) == uint64(page) && page > 2 {
			t.Errorf("page %d is a list of free pages", page)
		}
	}
}

// Entries that are missing, or stand where others belong, end what is believed of
// their key.
func TestMissingEntries(t *testing.T) {
	for name, spoil := range map[string]func(job *bbolt.Bucket) error{
		"entry 1 of 4 is missing":  func(job *bbolt.Bucket) error { return job.Delete(sequence(1)) },
		"entry 2 of 4 is missing":  func(job *bbolt.Bucket) error { return job.Delete(sequence(2)) },
		"3 entries are there of 4": func(job *bbolt.Bucket) error { return job.Delete(sequence(4)) },
		"entry 2 of 4 is damaged":  func(job *bbolt.Bucket) error { return job.Put(sequence(2), []byte("an event")) },
		"4 entries are there of 9": func(job *bbolt.Bucket) error { return job.SetSequence(9) },
	} {
		path := filepath.Join(t.TempDir(), "journal")
		_, want := sample(t, path, 3, 4, 10)
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bbolt.Tx) error { return spoil(tx.Bucket(root).Bucket([]byte("job1@node"))) })
		if err != nil {
			t.Fatal(err)
		}
		db.Close()
		b, err := openLoose(path)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		err = b.Load(func(e Entry) error { got += e.Damage; return nil })
		if err != nil || got != name || len(want) != 3 {
			t.Errorf("got %q, %v, want %q", got, err, name)
		}
		if one, err := b.Read("job1@node"); err != nil || one[len(one)-1].Damage != name {
			t.Errorf("alone: %v, %v", one, err)
		}
		b.Close()
	}
}

// What is there at the same place of another key, or of another life of the same
// key, is not believed.
func TestSwappedEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	_, want := sample(t, path, 2, 3, 10)
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		a, b := tx.Bucket(root).Bucket([]byte("job0@node")), tx.Bucket(root).Bucket([]byte("job1@node"))
		one, other := bytes.Clone(a.Get(sequence(2))), bytes.Clone(b.Get(sequence(2)))
		if err := a.Put(sequence(2), other); err != nil {
			return err
		}
		return b.Put(sequence(2), one)
	})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !check(t, "swapped", path, file, want) {
		t.Error("nobody noticed")
	}
}

// A journal that was there is missed.
func TestJournalThatWasThere(t *testing.T) {
	for how, spoil := range map[string]func(path string) error{
		"is not there any more": os.Remove,
		"is empty":              func(path string) error { return os.Truncate(path, 0) },
	} {
		path := filepath.Join(t.TempDir(), "journal")
		b, err := openLoose(path)
		if err != nil || len(b.Lost()) != 0 {
			t.Fatalf("a new one: %v, %v", b.Lost(), err)
		}
		b.Close()
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{1, 0} {
			b, err := openLoose(path)
			if err != nil || len(b.Lost()) != want || want == 1 && !strings.Contains(b.Lost()[0], path+" "+how) {
				t.Errorf("%s: told %q, %v, want %d lines", how, b.Lost(), err, want)
			}
			b.Close()
		}
	}
}

// A power cut while the first journal is made leaves a file that says nothing: the
// node can be started all the same.
func TestPowerCutAtTheFirstStart(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	db, err := bbolt.Open(empty, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	fresh, err := os.ReadFile(empty)
	if err != nil {
		t.Fatal(err)
	}
	for what, file := range map[string][]byte{"zeros": make([]byte, 16384), "no bucket yet": fresh} {
		path := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			b, err := Open(path)
			if err != nil || len(b.Lost()) != 0 {
				t.Fatalf("%s: told %q, %v", what, b.Lost(), err)
			}
			b.Close()
		}
	}
}
