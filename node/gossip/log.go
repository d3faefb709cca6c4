package gossip

import (
	"bytes"
	"sync"

	"github.com/rs/zerolog"
)

// once remembers what has been logged. It is bounded: when it is full, nothing
// is new any more.
type once struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

const maxOnce = 256

func newOnce() *once { return &once{seen: map[string]struct{}{}} }

// first reports whether the key has not been seen before.
func (o *once) first(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.seen[key]; ok || len(o.seen) >= maxOnce {
		return false
	}
	o.seen[key] = struct{}{}
	return true
}

// memberlistLog takes memberlist's log lines. What it calls an error is mostly
// life on a network, so nothing of it is above debug; what people should know
// the overlay says itself.
type memberlistLog struct{ log zerolog.Logger }

// Write takes one line.
func (l memberlistLog) Write(line []byte) (int, error) {
	text := bytes.TrimSpace(line)
	level := zerolog.DebugLevel
	if bytes.HasPrefix(text, []byte("[DEBUG]")) {
		level = zerolog.TraceLevel
	}
	if e := l.log.WithLevel(level); e.Enabled() {
		if _, rest, ok := bytes.Cut(text, []byte("memberlist: ")); ok {
			text = rest
		}
		e.Msg("memberlist: " + label(string(text), 500)) // it quotes what others sent
	}
	return len(line), nil
}
