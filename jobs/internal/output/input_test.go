package output

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"zorilla/internal/codec"
)

// filler is a piece of input with its number, so that no two are the same.
func filler(n int) []byte { return bytes.Repeat([]byte{byte(n)}, 1<<20) }

func onDisk(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func newInput(t *testing.T, whole bool) *Input {
	t.Helper()
	in, err := OpenInput(filepath.Join(t.TempDir(), "stdin"))
	if err != nil {
		t.Fatal(err)
	}
	in.Whole = whole
	return in
}

// A stream that a later one has overtaken does not note less than is let go.
func TestNoteOfInputDoesNotGoBack(t *testing.T) {
	in := newInput(t, false)
	if err := in.Append(t.Context(), filler(1)); err != nil {
		t.Fatal(err)
	}
	in.letGo(part{size: 4096})
	in.letGo(part{size: 1024})
	again, err := OpenInput(in.Path)
	if err != nil || again.Base() != 4096 {
		t.Errorf("the input is here from %d on, want 4096: %v", again.Base(), err)
	}
}

// Who sends more than the window waits until some of it is taken, the input has ended, or
// nobody sends any more.
func TestInputWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInput(t, false)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range InputWindow >> 20 {
			if err := in.Append(ctx, filler(i)); err != nil {
				t.Fatal(err)
			}
		}
		result := make(chan error, 1)
		more := func(ctx context.Context) {
			t.Helper()
			go func() { result <- in.Append(ctx, []byte("more")) }()
			synctest.Wait()
			select {
			case err := <-result:
				t.Fatalf("did not wait: %v", err)
			default:
			}
		}
		more(ctx)
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("nobody sends any more: got %v", err)
		}
		more(t.Context())
		in.Took(4)
		if err := <-result; err != nil {
			t.Errorf("some is taken: got %v", err)
		}
		more(t.Context())
		in.Took(1 << 40) // of what is not here nobody has taken anything
		if err := <-result; err != nil {
			t.Errorf("all is taken: got %v", err)
		}
		for i := range InputWindow>>20 - 1 {
			if err := in.Append(t.Context(), filler(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := in.Append(t.Context(), filler(0)); err != nil {
			t.Fatal(err)
		}
		more(t.Context())
		in.Drop()
		if err := <-result; !errors.Is(err, os.ErrClosed) {
			t.Errorf("the input has ended: got %v", err)
		}
		if size, _, _ := in.State(); size != 2*InputWindow+8 {
			t.Errorf("%d bytes", size)
		}
	})
}

// What was taken is let go, but for what may be asked for again; what is left is compared
// with its end, also by a later life of the node.
func TestInputIsLetGo(t *testing.T) {
	for _, whole := range []bool{false, true} {
		in := newInput(t, whole)
		const all = 96
		for i := range all {
			if err := in.Append(t.Context(), filler(i)); err != nil {
				t.Fatal(err)
			}
			in.Took(int64(i+1) << 20)
		}
		if err := in.Sync(); err != nil {
			t.Fatal(err)
		}
		least, most := int64(inputBehind), int64(inputBehind+inputStep)
		if whole {
			least, most = all<<20, all<<20
		}
		if kept, took := in.Kept(), onDisk(t, in.Path); kept < least || kept > most || took < least || took > most+1<<20 {
			t.Errorf("whole %v: %d kept, %d on disk", whole, kept, took)
		}
		end := in.Digest()
		again, err := OpenInput(in.Path)
		if err != nil {
			t.Fatal(err)
		}
		r := again.Reader(t.Context(), false)
		r.Pos = again.Base()
		got := make([]byte, 1<<20)
		if n, err := r.Read(got); err != nil || !bytes.Equal(got[:n], filler(int(r.Pos-int64(n)) >> 20)[:n]) {
			t.Errorf("whole %v: what is left is not what was sent: %v", whole, err)
		}
		if again.Base() != in.Base() || !again.EndsWith(end) {
			t.Errorf("whole %v: begins at %d, not %d, or does not end as it was", whole, again.Base(), in.Base())
		}
		f, err := os.OpenFile(in.Path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte{255}, all<<20-5); err != nil || f.Close() != nil || again.EndsWith(end) {
			t.Errorf("whole %v: damage was not seen: %v", whole, err)
		}
		if err := in.Drop()(); err != nil || in.Kept() != 0 || onDisk(t, in.Path) != 0 {
			t.Errorf("whole %v: %d kept after the end, %v", whole, in.Kept(), err)
		}
		if size, _, _ := in.State(); size != all<<20 {
			t.Errorf("whole %v: the length is forgotten", whole)
		}
	}
}

// A note that is damaged lets nothing of the input count as gone.
func TestInputWithDamagedNote(t *testing.T) {
	in := newInput(t, false)
	if err := os.WriteFile(in.note(), codec.Seal([]byte("short")), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := OpenInput(in.Path); err != nil || again.Base() != 0 {
		t.Errorf("got %v", err)
	}
}
