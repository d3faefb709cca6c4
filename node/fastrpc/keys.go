package fastrpc

import (
	"bytes"
	"crypto/hpke"
	"slices"
	"time"

	"zorilla/vicinity"
)

const (
	// keyLasts is how long a key is told to others, and how long these use it.
	keyLasts = time.Minute
	// keyOpens is how long it opens requests: it was told when it was almost too old, used when it
	// was almost too old again, and a packet may be late.
	keyOpens = 3 * keyLasts
	// maxKeys bounds the keys of others that are known.
	maxKeys = 4096
)

// window is the time in which requests are sealed with one of this node's keys.
type window struct {
	key    hpke.PrivateKey
	public []byte
	since  time.Time
}

// windows are those of this node, the current one last.
type windows []window

// current returns the key that others are told, a new one each minute.
func (ws *windows) current(now time.Time) (public []byte, err error) {
	ws.expire(now)
	if n := len(*ws); n > 0 && now.Sub((*ws)[n-1].since) < keyLasts {
		return (*ws)[n-1].public, nil
	}
	kem, _, _ := suite()
	key, err := kem.GenerateKey()
	if err != nil {
		return nil, err
	}
	*ws = append(*ws, window{key: key, public: key.PublicKey().Bytes(), since: now})
	return (*ws)[len(*ws)-1].public, nil
}

// expire forgets old keys: who has recorded packets must not find them in memory later.
func (ws *windows) expire(now time.Time) {
	*ws = slices.DeleteFunc(*ws, func(w window) bool { return now.Sub(w.since) >= keyOpens })
}

// find returns the key that opens requests, or nil.
func (ws *windows) find(now time.Time, of []byte) hpke.PrivateKey {
	ws.expire(now)
	for _, w := range *ws {
		if bytes.Equal(which(w.public), of) {
			return w.key
		}
	}
	return nil
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
