package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// input sends standard input as chunks.
type input struct {
	conn *net.UnixConn

	mu    sync.Mutex // held for the whole of a chunk
	ended bool
}

// Offset waits for the supervisor to say how far it has come, which it does
// when it does not write for an earlier connection any more.
func (in *input) Offset() (int64, error) {
	m, err := readMessage(in.conn)
	switch {
	case err != nil:
		return 0, fmt.Errorf("worker's standard input: %w", err)
	case m.Kind != kindProgress:
		return 0, fmt.Errorf("worker's standard input: %s: %s", m.Kind, m.Text)
	}
	return m.Stdin, nil
}

// Write blocks while the worker does not read, and fails once it never will.
func (in *input) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended {
		return 0, os.ErrClosed
	}
	sent := 0
	for sent < len(p) {
		part := p[sent:min(len(p), sent+maxChunk)]
		bufs := net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(part))), part}
		n, err := bufs.WriteTo(in.conn)
		sent += max(int(n)-4, 0)
		if err != nil {
			return sent, fmt.Errorf("worker's standard input: %w", err)
		}
	}
	return sent, nil
}

// Close tells the worker that its input is complete. It waits for a Write in
// progress.
func (in *input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended {
		return nil
	}
	in.ended = true
	_, err := in.conn.Write(make([]byte, 4))
	if errors.Is(err, net.ErrClosed) || errors.Is(err, unix.EPIPE) {
		return nil // the worker has ended: it needs no end of its input
	}
	return err
}
