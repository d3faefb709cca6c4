package vicinity

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/serf/coordinate"
)

const (
	dimensions = 8
	// coordinateLength is what a coordinate has on the wire: the vector, then
	// error, adjustment and height.
	coordinateLength = dimensions + 3
	// maxPlace bounds every length in a coordinate, in seconds. Nothing on
	// earth is farther; what claims to be would drag others along.
	maxPlace = 5
)

// Coordinate is a position in network space: the predicted round trip between
// two nodes is the distance of their coordinates. All lengths are in seconds.
type Coordinate struct {
	Vec        [dimensions]float32
	Error      float32 // confidence: 1.5 knows nothing, 0 is certain
	Adjustment float32
	Height     float32
}

// Valid reports whether every number is finite and within what can be true.
func (c Coordinate) Valid() bool {
	for _, v := range c.Vec {
		if !(v >= -maxPlace && v <= maxPlace) {
			return false
		}
	}
	return c.Error >= 0 && c.Error <= 1.5 &&
		c.Adjustment >= -maxPlace && c.Adjustment <= maxPlace &&
		c.Height >= 0 && c.Height <= maxPlace
}

// Distance returns the predicted round trip between two valid coordinates.
func (c Coordinate) Distance(d Coordinate) time.Duration {
	return max(c.serf().DistanceTo(d.serf()), minRTT)
}

// Position returns the vector in milliseconds, for maps.
func (c Coordinate) Position() []float64 {
	p := make([]float64, dimensions)
	for i, v := range c.Vec {
		p[i] = float64(v) * 1000
	}
	return p
}

func (c Coordinate) serf() *coordinate.Coordinate {
	s := &coordinate.Coordinate{Vec: make([]float64, dimensions), Error: float64(c.Error), Adjustment: float64(c.Adjustment), Height: float64(c.Height)}
	for i, v := range c.Vec {
		s.Vec[i] = float64(v)
	}
	return s
}

func (c Coordinate) wire() []float32 {
	return append(c.Vec[:], c.Error, c.Adjustment, c.Height)
}

func coordinateFromWire(f []float32) (Coordinate, bool) {
	if len(f) != coordinateLength {
		return Coordinate{}, false
	}
	c := Coordinate{Error: f[dimensions], Adjustment: f[dimensions+1], Height: f[dimensions+2]}
	copy(c.Vec[:], f)
	return c, c.Valid()
}

// place is a node's own coordinate, moved by every measurement.
type place struct {
	client *coordinate.Client
	here   Coordinate
	rnd    *rand.Rand
}

func newPlace(rnd *rand.Rand) *place {
	cfg := coordinate.DefaultConfig()
	// The measurements that come here are filtered already; a filter of one
	// keeps the client from holding a record of every node it ever met.
	cfg.LatencyFilterSize = 1
	client, err := coordinate.NewClient(cfg)
	if err != nil {
		panic(err) // only for zero dimensions
	}
	p := &place{client: client, rnd: rnd}
	p.reset()
	return p
}

// reset starts at a random place near the origin. Two nodes at the very same
// place would be pushed apart by serf's global random source, and a simulation
// would not repeat.
func (p *place) reset() {
	c := Coordinate{Error: 1.5, Height: 1e-5}
	for i := range c.Vec {
		c.Vec[i] = float32((p.rnd.Float64() - 0.5) * 1e-3)
	}
	if err := p.client.SetCoordinate(c.serf()); err != nil {
		panic(err) // c is valid
	}
	p.here = c
}

// move learns that the node at other is rtt away.
func (p *place) move(other Coordinate, rtt time.Duration) {
	moved, err := p.client.Update("", other.serf(), rtt)
	if err != nil {
		return
	}
	c := Coordinate{Error: float32(math.Min(moved.Error, 1.5)), Adjustment: float32(moved.Adjustment), Height: float32(moved.Height)}
	for i, v := range moved.Vec {
		c.Vec[i] = float32(v)
	}
	if !c.Valid() {
		p.reset()
		return
	}
	p.here = c
}
