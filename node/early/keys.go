package early

import (
	"bytes"
	"crypto/hpke"
	"time"

	"zorilla/vicinity"
)

const (
	// keyLasts is how long a key is told to others, and how long these use it.
	keyLasts = time.Minute
	// keyOpens is how long it opens requests: it was told when it was almost too old, used when it
	// was almost too old again, and a packet may be late.
	keyOpens = 3 * keyLasts
	// maxSeen bounds the requests that are remembered of a key; packets beyond it are dropped.
	maxSeen = 8192
	// maxKeys bounds the keys of others that are known.
	maxKeys = 4096
)

// window is the time in which requests are sealed with one of this node's keys.
type window struct {
	key    hpke.PrivateKey
	public []byte
	since  time.Time
	seen   map[sent]*done
}

// sent names a request of another node.
type sent struct {
	from   vicinity.ID
	number number
}

// done is what has become of a request that came as a packet; nil if it came over a connection.
type done struct {
	ended  chan struct{} // is closed when answer is set
	answer answer        // Status 0: it was too long for a packet, and is not kept
}

// windows are those of this node, the current one last.
type windows []*window

// current returns the window whose key others are told, and drops old ones.
func (ws *windows) current(now time.Time) (*window, error) {
	for len(*ws) > 0 && now.Sub((*ws)[0].since) >= keyOpens {
		*ws = (*ws)[1:]
	}
	if n := len(*ws); n > 0 && now.Sub((*ws)[n-1].since) < keyLasts {
		return (*ws)[n-1], nil
	}
	kem, _, _ := suite()
	key, err := kem.GenerateKey()
	if err != nil {
		return nil, err
	}
	w := &window{key: key, public: key.PublicKey().Bytes(), since: now, seen: map[sent]*done{}}
	*ws = append(*ws, w)
	return w, nil
}

// find returns the window of a key that still opens requests, or nil.
func (ws windows) find(now time.Time, of []byte) *window {
	for _, w := range ws {
		if bytes.Equal(which(w.public), of) && now.Sub(w.since) < keyOpens {
			return w
		}
	}
	return nil
}

// lookup reports whether a request has come, and what has become of it.
func (ws windows) lookup(s sent) (d *done, came bool) {
	for _, w := range ws {
		if d, came = w.seen[s]; came {
			return d, true
		}
	}
	return nil, false
}

// theirs are keys of others.
type theirs map[vicinity.ID]their

type their struct {
	key   []byte
	since time.Time
}

func (t theirs) learn(now time.Time, from vicinity.ID, key []byte) {
	if len(t) >= maxKeys && t[from].key == nil {
		for id, k := range t {
			if now.Sub(k.since) >= keyLasts {
				delete(t, id)
			}
		}
		if len(t) >= maxKeys {
			return
		}
	}
	t[from] = their{bytes.Clone(key), now}
}

// find returns a key that its owner still accepts, or nil.
func (t theirs) find(now time.Time, id vicinity.ID) []byte {
	if k := t[id]; now.Sub(k.since) < keyLasts {
		return k.key
	}
	return nil
}
