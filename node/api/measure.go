package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

const (
	// MaxPings bounds one measurement.
	MaxPings = 100
	// MaxRTT is what a measurement believes.
	MaxRTT = codec.Duration(10 * time.Second)

	defaultPings = 5
	maxNodeName  = 64
)

// Bandwidth is how fast files came between the node that is asked and another one.
type Bandwidth struct {
	To   Speed `json:"to,omitzero"` // that one, as it has measured it
	From Speed `json:"from,omitzero"`
}

// Speed is one that was measured; zero = none was.
type Speed struct {
	Rate  int64          `json:"rate"`            // bytes per second
	Least bool           `json:"least,omitempty"` // it is that much at least
	Age   codec.Duration `json:"age"`             // since it was measured last
}

// Endpoint is one end of a measurement.
type Endpoint struct {
	ID   vicinity.ID `json:"id"`
	Name string      `json:"name,omitempty"`
	Site string      `json:"site,omitempty"`
}

// Measurement is the round trip between two nodes, as the first has measured
// it just now, and whether the first can connect to the second.
type Measurement struct {
	From     Endpoint         `json:"from"`
	To       Endpoint         `json:"to"`
	Sent     int              `json:"sent"`               // pings
	Answered []codec.Duration `json:"answered"`           // their round trips, in order
	Min      codec.Duration   `json:"min,omitempty"`      // 0 = none was answered
	Median   codec.Duration   `json:"median,omitempty"`   // of an even number the lower middle one
	Estimate codec.Duration   `json:"estimate,omitempty"` // predicted from network coordinates; 0 = not known
	Stream   *Stream          `json:"stream,omitempty"`   // a connection that was made; nil = the node is too old to say
}

// Stream is what came of a new connection (TCP) beside pings (UDP).
type Stream struct {
	Error string `json:"error,omitempty"` // why there was none
	Small bool   `json:"small,omitempty"` // large packets do not get through: it has small ones
}

// maxStreamError bounds the text of an error that another node tells.
const maxStreamError = 300

// Bounded returns s as another node has told it, with a text of at most 300 bytes.
func (s *Stream) Bounded() *Stream {
	if s == nil || len(s.Error) <= maxStreamError {
		return s
	}
	return &Stream{Error: strings.ToValidUTF8(s.Error[:maxStreamError], ""), Small: s.Small}
}

// NewMeasurement returns what the answered ones of sent pings amount to. Round
// trips that cannot be, and more than were sent, are left out.
func NewMeasurement(sent int, answered []codec.Duration) Measurement {
	m := Measurement{Sent: sent, Answered: []codec.Duration{}}
	for _, rtt := range answered[:min(len(answered), sent)] {
		if rtt > 0 && rtt <= MaxRTT {
			m.Answered = append(m.Answered, rtt)
		}
	}
	if n := len(m.Answered); n > 0 {
		sorted := slices.Sorted(slices.Values(m.Answered))
		m.Min, m.Median = sorted[0], sorted[(n-1)/2]
	}
	return m
}

// CheckPings refuses a number of pings that no node would send.
func CheckPings(n int) error {
	if n < 1 || n > MaxPings {
		return fmt.Errorf("%w: %d pings: want 1 to %d", ErrInvalid, n, MaxPings)
	}
	return nil
}

// CheckNode refuses what cannot name a node: its name, the beginning of its
// ID, or "self".
func CheckNode(name string) error {
	if name == "" || len(name) > maxNodeName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("%w: %.80q does not name a node: want its name, the first characters of its ID, or self", ErrInvalid, name)
	}
	return nil
}

func (h handler) nodes(r *http.Request) ([]NodeInfo, error) {
	ask, err := boolean(r, "ask")
	if err != nil {
		return nil, err
	}
	if ask {
		return h.Survey(r.Context())
	}
	return h.Nodes(r.Context())
}

func (h peerHandler) rtt(r *http.Request) (any, error) {
	from, to := or(r.FormValue("from"), "self"), r.FormValue("to")
	pings, err := strconv.Atoi(or(r.FormValue("pings"), strconv.Itoa(defaultPings)))
	if err != nil {
		return nil, fmt.Errorf("%w: pings=%.40q: want 1 to %d", ErrInvalid, r.FormValue("pings"), MaxPings)
	}
	for _, err := range []error{CheckPings(pings), CheckNode(from), CheckNode(to)} {
		if err != nil {
			return nil, err
		}
	}
	m, err := h.Measure(r.Context(), from, to, pings)
	if m.Answered == nil {
		m.Answered = []codec.Duration{}
	}
	return m, err
}

// Survey implements Service.
func (c *Client) Survey(ctx context.Context) ([]NodeInfo, error) {
	return getList[NodeInfo](ctx, c, "/v1/nodes?ask=true")
}

// Measure implements Service.
func (c *Client) Measure(ctx context.Context, from, to string, pings int) (m Measurement, err error) {
	q := url.Values{"from": {from}, "to": {to}, "pings": {strconv.Itoa(pings)}}
	return m, c.get(ctx, "/v1/rtt?"+q.Encode(), &m)
}
