package testnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func listen(t *testing.T, h *Host, port int) net.Listener {
	t.Helper()
	l, err := h.Listen(t.Context(), h.Addr(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// connect returns both ends of a connection from a to b.
func connect(t *testing.T, a, b *Host) (net.Conn, net.Conn) {
	t.Helper()
	l := listen(t, b, 80)
	defer l.Close()
	near, err := a.Dial(t.Context(), b.Addr(80))
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

func readString(c net.Conn) (string, error) {
	b := make([]byte, 100)
	n, err := c.Read(b)
	return string(b[:n]), err
}

func TestStreamLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := duo(Config{})
		l, start := listen(t, b, 80), time.Now()
		near, err := a.Dial(t.Context(), "10.0.0.2:80")
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		if got := time.Since(start); got != there+back {
			t.Errorf("Dial took %v, want %v", got, there+back)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		if got := time.Since(start); got != 2*there+back {
			t.Errorf("Accept came after %v, want %v", got, 2*there+back)
		}
		if far.RemoteAddr().String() != near.LocalAddr().String() || near.RemoteAddr().String() != "10.0.0.2:80" {
			t.Errorf("%v -> %v, but %v <- %v", near.LocalAddr(), near.RemoteAddr(), far.LocalAddr(), far.RemoteAddr())
		}
		start = time.Now()
		b1 := []byte("one")
		near.Write(b1)
		b1[0] = 'X'
		time.AfterFunc(time.Millisecond, func() { near.Write([]byte("two")) })
		for i, want := range []string{"one", "two"} {
			got, err := readString(far)
			if took := time.Since(start); got != want || err != nil || took != there+time.Duration(i)*time.Millisecond {
				t.Errorf("read %q, %v after %v, want %q", got, err, took, want)
			}
		}
		if c := n.Counters(); c.Streams != (Amount{1, 6}) {
			t.Errorf("counters: %+v", c)
		}
	})
}

func TestStreamKeepsOrderWhenLatencyVaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		i := 0
		_, a, b := duo(Config{Latency: func(a, b *Host) time.Duration {
			mu.Lock()
			defer mu.Unlock()
			i++
			return time.Duration(i*7919%100) * time.Millisecond
		}})
		near, far := connect(t, a, b)
		var want bytes.Buffer
		for k := range 100 {
			fmt.Fprintf(io.MultiWriter(near, &want), "segment %d;", k)
			time.Sleep(time.Millisecond)
		}
		near.Close()
		got, err := io.ReadAll(far)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("read %d bytes, %v; want the %d in order", len(got), err, want.Len())
		}
	})
}

func TestStreamClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := duo(Config{})
		near, far := connect(t, a, b)
		near.Write([]byte("all of this"))
		near.Close()
		if err := near.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("second Close: %v", err)
		}
		if _, err := near.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after Close: %v", err)
		}
		if got, err := io.ReadAll(far); string(got) != "all of this" || err != nil {
			t.Errorf("the peer read %q, %v", got, err)
		}
		if _, err := far.Write([]byte("x")); err != nil {
			t.Errorf("the first write to a closed peer: %v", err)
		}
		time.Sleep(there + back + 1)
		if _, err := far.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a later write to a closed peer: %v", err)
		}
		if _, err := far.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("read: %v, want EOF as before", err)
		}
	})
}

func TestStreamCloseWakesReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := duo(Config{})
		near, _ := connect(t, a, b)
		time.AfterFunc(time.Minute, func() { near.Close() })
		if _, err := readString(near); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read at a closed end: %v", err)
		}
	})
}

func TestStreamDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := duo(Config{})
		near, far := connect(t, a, b)
		start := time.Now()
		near.SetReadDeadline(start.Add(time.Minute))
		_, err := readString(near)
		var timeout net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("read past the deadline: %v", err)
		}
		if got := time.Since(start); got != time.Minute {
			t.Errorf("woken after %v, want 1m", got)
		}
		near.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Minute, func() { near.SetReadDeadline(time.Unix(1, 0)) })
		if _, err := readString(near); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a deadline in the past must wake the reader: %v", err)
		}
		near.SetDeadline(time.Time{})
		far.Write([]byte("still fine"))
		if got, err := readString(near); got != "still fine" || err != nil {
			t.Errorf("after a deadline: %q, %v", got, err)
		}
		near.SetWriteDeadline(time.Now())
		if _, err := near.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write past the deadline: %v", err)
		}
	})
}

func TestStreamPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := duo(Config{})
		near, far := connect(t, a, b)
		n.Partition([]*Host{a}, []*Host{b})
		near.Write([]byte("held "))
		near.SetReadDeadline(time.Now().Add(time.Hour))
		if _, err := readString(near); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a partition must be silent, got %v", err)
		}
		near.Write([]byte("together"))
		n.Heal()
		healed := time.Now()
		got, err := readString(far)
		if took := time.Since(healed); got != "held together" || err != nil || took != there {
			t.Errorf("after Heal read %q, %v after %v", got, err, took)
		}
	})
}

func TestDialRefusedAndSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := duo(Config{})
		start := time.Now()
		if _, err := a.Dial(t.Context(), b.Addr(80)); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("no listener: %v", err)
		}
		if got := time.Since(start); got != there+back {
			t.Errorf("refused after %v, want %v", got, there+back)
		}
		for _, address := range []string{"10.0.0.2", "host:80"} {
			if _, err := a.Dial(t.Context(), address); err == nil {
				t.Errorf("Dial(%q) succeeded", address)
			}
		}
		listen(t, b, 80)
		n.Partition([]*Host{a})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start = time.Now()
		_, err := a.Dial(ctx, b.Addr(80))
		var timeout net.Error
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("dial into a partition: %v", err)
		}
		if got := time.Since(start); got != 10*time.Second {
			t.Errorf("gave up after %v, want 10s", got)
		}
		start = time.Now()
		if _, err = a.Dial(t.Context(), "10.99.0.1:80"); !errors.Is(err, syscall.ETIMEDOUT) {
			t.Errorf("dial nobody: %v", err)
		}
		if got := time.Since(start); got != 127*time.Second {
			t.Errorf("gave up after %v, want 127s", got)
		}
		time.AfterFunc(2*time.Second, n.Heal)
		start = time.Now()
		c, err := a.Dial(t.Context(), b.Addr(80))
		if err != nil {
			t.Fatalf("dial while it heals: %v", err)
		}
		c.Close()
		if got := time.Since(start); got != 3*time.Second+there+back {
			t.Errorf("connected after %v, want the third request after 3s", got)
		}
	})
}

func TestStreamCrashAndRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := duo(Config{})
		near, far := connect(t, a, b)
		n.Crash(b)
		if _, err := readString(far); !errors.Is(err, net.ErrClosed) {
			t.Errorf("read at a crashed host: %v", err)
		}
		near.SetReadDeadline(time.Now().Add(time.Minute))
		near.Write([]byte("x"))
		if _, err := readString(near); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a crash must be silent, got %v", err)
		}
		near.SetReadDeadline(time.Time{})
		if _, err := b.Dial(t.Context(), a.Addr(80)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("dial from a crashed host: %v", err)
		}
		n.Partition([]*Host{b})
		n.Restart(b)
		near.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := readString(near); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a host restarted behind a partition: %v", err)
		}
		near.SetReadDeadline(time.Time{})
		n.Heal()
		healed := time.Now()
		if _, err := readString(near); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("after the restart: %v", err)
		}
		if got := time.Since(healed); got != back {
			t.Errorf("reset after %v, want %v", got, back)
		}
		if _, err := near.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write after a reset: %v", err)
		}
		near, _ = connect(t, a, b)
		if _, err := near.Write([]byte("x")); err != nil {
			t.Errorf("a new connection after the restart: %v", err)
		}
	})
}

func TestListenerCloseResetsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := duo(Config{})
		l := listen(t, b, 80)
		near, err := a.Dial(t.Context(), b.Addr(80))
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		time.AfterFunc(time.Second, func() { l.Close() })
		if _, err := readString(near); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("never accepted: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept after Close: %v", err)
		}
	})
}
