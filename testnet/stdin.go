package testnet

import (
	"io"
	"os"
	"sync"
	"syscall"
)

const pipeSize = 64 << 10

// pipe is the standard input of a worker, whose Programs read it. Its fields are
// guarded by supervisor.mu.
type pipe struct {
	mu      *sync.Mutex
	changed sync.Cond
	data    []byte
	passed  int64 // bytes written so far
	eof     bool  // nothing more is written
	broken  bool  // nothing more is read
}

func newPipe(mu *sync.Mutex) *pipe { return &pipe{mu: mu, changed: sync.Cond{L: mu}} }

// input is a process.Input: what one node writes to a pipe.
type input struct {
	*pipe
	w *worker
}

// Offset implements process.Input.
func (in input) Offset() (int64, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.passed, nil
}

// Write waits while the pipe is full. It fails once nobody reads any more, or the
// node has left, after which another one may go on.
func (in input) Write(b []byte) (int, error) {
	p := in.pipe
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := 0; ; {
		switch room := min(pipeSize-len(p.data), len(b)-n); {
		case p.eof || in.w.left:
			return n, os.ErrClosed
		case p.broken:
			return n, syscall.EPIPE
		case n == len(b):
			return n, nil
		case room > 0:
			p.data = append(p.data, b[n:n+room]...)
			p.passed += int64(room)
			n += room
			p.changed.Broadcast()
		default:
			p.changed.Wait()
		}
	}
}

// Close ends the input after what was written.
func (in input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.eof = in.eof || !in.w.left
	in.changed.Broadcast()
	return nil
}

// Read implements io.Reader.
func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.broken:
			return 0, os.ErrClosed
		case len(p.data) > 0:
			n := copy(b, p.data)
			p.data = p.data[n:]
			p.changed.Broadcast()
			return n, nil
		case p.eof:
			return 0, io.EOF
		}
		p.changed.Wait()
	}
}
