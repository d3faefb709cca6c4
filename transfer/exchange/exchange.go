package exchange

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"zorilla/internal/uplink"
	"zorilla/transfer"
	"zorilla/transfer/swarm"
	"zorilla/vicinity"
)

// Source asks one holder for one blob. It honours ctx, also while the body is
// read, and returns ErrNotFound if the holder says that it has no such blob.
// What it gives is verified by the caller.
type Source func(ctx context.Context, holder vicinity.ID, h transfer.Hash) (io.ReadCloser, error)

// Trees asks holders of a tree, by the hash of its manifest. Both methods honour ctx and
// return ErrNotFound if the holder knows no such tree, or has none of those chunks any
// more, and ErrOlder if it does not know what is asked.
type Trees interface {
	// State returns what a holder has, as soon as that is not what since names.
	State(ctx context.Context, holder vicinity.ID, tree transfer.Hash, since uint64) (swarm.State, error)
	// Chunk returns one of the chunks that are wanted, which the holder chooses, and its
	// index; or, if it chose none, a *GivenError.
	Chunk(ctx context.Context, holder vicinity.ID, tree transfer.Hash, want Want) (int, io.ReadCloser, error)
}

// Want is which chunks of a tree are wanted.
type Want struct {
	Chunks swarm.Set `msgpack:"w"` // words of the set
	From   int       `msgpack:"f"` // the number of the first
	Insist bool      `msgpack:"i"` // also what others were given
}

// GivenError is the answer of a holder that gave all that is wanted to others.
type GivenError struct{ To []string }

// Error names nobody: there may be many.
func (e *GivenError) Error() string { return "others were given what is wanted" }

// ErrOlder: the holder is of a version that does not know what it was asked.
var ErrOlder = errors.New("the node does not know that request")

// Config says how an Exchange works. Zero values mean the defaults.
type Config struct {
	Self   vicinity.ID                              // is not asked
	Store  transfer.PinStore                        // required
	Source Source                                   // required for Fetch
	Bulk   Source                                   // for chunks of large trees; nil = Source
	Trees  Trees                                    // nil = holders are asked for one chunk or another
	PeerID func(*http.Request) (vicinity.ID, error) // who asks; required for requests about trees
	Rand   *rand.Rand                               // used by nobody else; nil = seeded at random
	Uplink *uplink.Uplink                           // what others are sent with; nil = without a limit

	Patience time.Duration // how long nothing may arrive before Fetch gives up; 30 s
	Stall    time.Duration // how long a holder may send nothing, or of a large chunk less than 32 KiB, once it has begun; 10 s
}

// Exchange brings trees of other nodes into a store and serves what is there. All
// methods may be called from any goroutine.
type Exchange struct {
	cfg     Config
	trees   trees
	buffers sync.Pool

	mu      sync.Mutex // guards what follows
	rnd     *rand.Rand
	flights map[transfer.Hash]chan struct{} // blobs being fetched; closed at the end
}

// New returns an Exchange. It starts nothing.
func New(cfg Config) *Exchange {
	cfg.Patience = cmp.Or(cfg.Patience, 30*time.Second)
	cfg.Stall = cmp.Or(cfg.Stall, 10*time.Second)
	if cfg.Bulk == nil {
		cfg.Bulk = cfg.Source
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	x := &Exchange{cfg: cfg, rnd: cfg.Rand, flights: make(map[transfer.Hash]chan struct{})}
	x.buffers.New = func() any { return new(buffer) }
	x.trees = trees{of: make(map[transfer.Hash]*tree), more: make(chan struct{})}
	return x
}

// buffer has the bytes of a chunk. Who receives and who serves chunks takes them from one
// pool, which lets go of them when they are not needed for a while.
type buffer struct{ bytes []byte }

// maxKept is how much of memory a buffer keeps: that of a chunk, as it is allocated.
const maxKept = transfer.ChunkSize * 5 / 4

// split returns a source of chance of its own.
func (x *Exchange) split() *rand.Rand {
	x.mu.Lock()
	defer x.mu.Unlock()
	return rand.New(rand.NewPCG(x.rnd.Uint64(), x.rnd.Uint64()))
}

// join returns nil if the caller is now the one who fetches the blob, else
// what is closed when the one who does has ended.
func (x *Exchange) join(h transfer.Hash) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if other := x.flights[h]; other != nil {
		return other
	}
	x.flights[h] = make(chan struct{})
	return nil
}

func (x *Exchange) land(h transfer.Hash) {
	x.mu.Lock()
	defer x.mu.Unlock()
	close(x.flights[h])
	delete(x.flights, h)
}

// here reports whether the store has a blob, for good.
func (x *Exchange) here(h transfer.Hash) bool {
	return x.cfg.Store.Has(h) || x.cfg.Store.Keep(h, false)
}
