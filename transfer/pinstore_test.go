package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"zorilla/transfer"
)

// What is looked after is what is there: damage is found though the same process has
// read the blob before, what is needed stays, and the rest goes.
func TestKeeper(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir, 0)
	var all []transfer.Hash
	for i := range 5 {
		data := bytes.Repeat([]byte{byte(i)}, 5000)
		all = append(all, transfer.HashOf(data))
		if err := s.Put(all[i], data); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(all[i], nil); err != nil {
			t.Fatal(err)
		}
	}
	absent := transfer.HashOf([]byte("not here yet"))
	s.Pin("job", all[0], all[1], absent)
	s.Pin("other", all[1])
	s.Pin("waits", absent)
	s.StartEviction()
	const block = 8192 // 5000 bytes in whole blocks
	want := []transfer.Need{{Owner: "job", Blobs: 2, Bytes: 2 * block}, {Owner: "other", Blobs: 1, Bytes: block}}
	c := s.Contents()
	if c.Blobs != 5 || c.Bytes != 5*block || c.Pinned != 2*block || c.Limit != transfer.DefaultCache || !slices.Equal(c.Needs, want) {
		t.Errorf("contents %+v", c)
	}

	if got, err := s.Verify(t.Context()); err != nil || got.Blobs != 5 || got.Bytes != 25_000 || len(got.Damaged) != 0 {
		t.Errorf("all is whole: %+v, %v", got, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Verify(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	info, err := os.Stat(blobFile(dir, all[1]))
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(blobFile(dir, all[1]), make([]byte, 5000), 0o600) // other bytes, as long and as old
	if err = errors.Join(err, os.Chtimes(blobFile(dir, all[1]), info.ModTime(), info.ModTime()),
		os.Truncate(blobFile(dir, all[2]), 10), os.Remove(blobFile(dir, all[3]))); err != nil {
		t.Fatal(err)
	}
	got, err := s.Verify(t.Context())
	if err != nil || got.Blobs != 2 || len(got.Damaged) != 3 || slices.Contains(got.Damaged, all[0]) || slices.Contains(got.Damaged, all[4]) {
		t.Errorf("three are damaged: %+v, %v", got, err)
	}
	for i, h := range all {
		_, err := os.Stat(blobFile(dir, h))
		if whole := i == 0 || i == 4; s.Has(h) != whole || (err == nil) != whole {
			t.Errorf("blob %d: held is %v, file: %v", i, s.Has(h), err)
		}
	}

	if got := s.Prune(); got != (transfer.Pruned{Blobs: 1, Bytes: block}) || !s.Has(all[0]) || s.Has(all[4]) {
		t.Errorf("pruned %+v", got)
	}
	if got := s.Prune(); got != (transfer.Pruned{}) {
		t.Errorf("pruned again %+v", got)
	}
}
