package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"
)

// Whatever the file holds, looking at it ends, and if it is found to be sound then
// bbolt can read it.
func FuzzLook(f *testing.F) {
	path := filepath.Join(f.TempDir(), "journal")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true, NoSync: true, PageSize: 1024})
	if err != nil {
		f.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		logs := newTail()
		for _, key := range []string{"a@b", "c@d"} {
			for i := range uint64(3) {
				r := record{seq: i + 1, stamp: 1, born: 1, key: key, data: make([]byte, 200)}
				logs.add(1, []step{{key, i + 1, r.append(nil)}})
			}
		}
		outer, err := tx.CreateBucket(root)
		return errors.Join(err, apply(tx, logs), outer.SetSequence(2))
	})
	if err != nil {
		f.Fatal(err)
	}
	db.Close()
	file, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	if x := look(file); x.err != nil || len(x.keys) != 2 {
		f.Fatalf("the sound file: %+v", x)
	}
	f.Add(uint(0), uint(0), byte(0))
	f.Add(uint(1024*3+10), uint(1024*4+12), byte(3))
	f.Fuzz(func(t *testing.T, at, other uint, b byte) {
		spoiled := slices.Clone(file)
		for _, i := range []uint{at, other} { // every number is a place, so that few inputs spoil nothing
			spoiled[i%uint(len(spoiled))] ^= b
		}
		findRecords(spoiled, func(r record) {
			if r.key != "a@b" && r.key != "c@d" || len(r.data) != 200 {
				t.Errorf("found %+v", r)
			}
		})
		if look(spoiled).err != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "journal")
		if err := errors.Join(os.WriteFile(path, spoiled, 0o600), os.WriteFile(markFile(path), nil, 0o600)); err != nil { // to write the mark as it should be is slow
			t.Fatal(err)
		}
		j, err := openLoose(path)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		if err := j.Load(func(Entry) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
