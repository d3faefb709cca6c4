package peers

import (
	"errors"
	"net/http"
	"net/url"
	"time"
)

// Saved is a checkpoint that the node has taken. What it has, and which nodes keep it, is known
// only to who has waited.
type Saved struct {
	Number  int
	Bytes   int64
	Files   int
	Keepers []string // names of nodes
}

// ErrNoCheckpoints is that of a node that is asked for a checkpoint and cannot take one.
var ErrNoCheckpoints = errors.New("this node takes no checkpoints")

// saveWithin is longer than other questions take, for files are copied to other nodes.
const saveWithin = 5 * time.Minute

// Checkpoint has the node take what is in a directory of the work directory, which must not
// change until it returns. The next attempt of this rank begins with the newest one in the same
// place. With wait it returns when other nodes have it, too.
func (p Place) Checkpoint(dir string, wait bool) (saved Saved, err error) {
	if p.socket == "" {
		return saved, ErrNoCheckpoints
	}
	q := url.Values{"dir": {dir}, "wait": {"0"}}
	if wait {
		q.Set("wait", "1")
	}
	status, err := p.ask(http.MethodPost, "/v1/checkpoint", q, saveWithin, &saved)
	if status == http.StatusNotFound {
		return saved, ErrNoCheckpoints
	}
	return saved, err
}
