package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/node/api"
	"zorilla/transfer"
)

// Uploads are kept while they go on, but not for ever, and not on a full disk.
func TestUploadsAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := transfer.NewMemStore(0)
		u := uploads{store: store}
		chunk := func(i int) transfer.Hash {
			b := fmt.Append(nil, i)
			u.hold(transfer.HashOf(b))
			if err := store.Put(transfer.HashOf(b), b); err != nil {
				t.Fatal(err)
			}
			return transfer.HashOf(b)
		}
		pinned := func(want int) {
			t.Helper()
			if got := store.Usage().Pinned / 4096; int(got) != want {
				t.Errorf("%d chunks are kept, want %d", got, want)
			}
		}
		const hour = 12 // steps
		for i := range 24*hour + 3 {
			chunk(i)
			time.Sleep(5 * time.Minute)
		}
		if got := store.Usage().Pinned / 4096; got < 24*hour-3 || got > 24*hour+2 {
			t.Errorf("%d chunks are kept, want those of a day", got)
		}
		time.Sleep(uploadHold)
		pinned(0)
		a, b := chunk(-1), chunk(-2)
		u.submitted(a)
		pinned(2) // they came together
		u.submitted(b)
		pinned(0)
		chunk(-3)
		u.stored(fmt.Errorf("store blob: %w", syscall.ENOSPC))
		pinned(0)
		if len(u.batches) > 0 {
			t.Error("something is left")
		}
	})
}

// Hashes of a file are believed of this process's user alone.
func TestWhoseHashesAreBelieved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, make([]byte, transfer.ChunkSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := api.Listen(filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for name, c := range map[string]struct {
		ctx      context.Context
		believed bool
	}{"the same user": {api.ConnContext(t.Context(), conn), true}, "anybody": {t.Context(), false}} {
		store := transfer.NewDirStore(filepath.Join(dir, name), 1<<30)
		if err := store.Open(); err != nil {
			t.Fatal(err)
		}
		s := &blobService{store: store, uploads: uploads{store: store}}
		guess := transfer.HashOf([]byte(name))
		if err := s.Refer(c.ctx, transfer.File{Path: path, Stamp: transfer.StampOf(info), Chunks: transfer.HashList{guess, transfer.HashOf([]byte{0})}}); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(guess, nil); (err == nil) != c.believed {
			t.Errorf("of %s: %v", name, err)
		}
	}
}

// What was uploaded for a job is let go, whether the job keeps it or has ended already.
func TestUploadsOfAJobAreLetGo(t *testing.T) {
	store := transfer.NewMemStore(0)
	s := blobService{store: store, uploads: uploads{store: store}}
	put := func(data []byte) transfer.Hash {
		h := transfer.HashOf(data)
		if err := s.PutChunk(t.Context(), h, data); err != nil {
			t.Fatal(err)
		}
		return h
	}
	upload := func() (inputs, chunk transfer.Hash) {
		chunk = put([]byte("content"))
		m, err := transfer.NewManifest([]transfer.Entry{{Path: "f", Size: 7, Chunks: transfer.HashList{chunk}}})
		if err != nil {
			t.Fatal(err)
		}
		blob, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return put(blob), chunk
	}
	for what, kept := range map[string]bool{"a job that keeps them": true, "a job that has ended": false} {
		inputs, chunk := upload()
		var list []transfer.Hash
		if kept {
			list = []transfer.Hash{inputs, chunk}
		}
		if n := store.Usage().Pinned; n == 0 {
			t.Errorf("%s: nothing is kept before it is submitted", what)
		}
		s.submitted(inputs, list)
		if n := store.Usage().Pinned; n != 0 {
			t.Errorf("%s: %d bytes are kept", what, n)
		}
	}
	other, _ := upload()
	s.submitted(transfer.Hash{}, nil)
	if store.Usage().Pinned == 0 {
		t.Errorf("a job without inputs lets go of %s", other)
	}
}

// A chunk that has another hash is the client's mistake.
func TestChunkOfAnotherHash(t *testing.T) {
	store := transfer.NewMemStore(0)
	s := blobService{store: store, uploads: uploads{store: store}}
	h := transfer.HashOf([]byte("what was meant"))
	if err := s.PutChunk(t.Context(), h, []byte("what came")); !errors.Is(err, api.ErrInvalid) || !strings.Contains(err.Error(), h.String()) {
		t.Errorf("got %v, want ErrInvalid with the hash", err)
	}
	if store.Has(h) {
		t.Error("it is kept")
	}
}
