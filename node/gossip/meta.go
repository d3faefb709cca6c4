package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"

	"zorilla/internal/codec"
	"zorilla/vicinity"
)

// Limits of what a member says of itself.
const (
	maxMeta     = memberlist.MetaMaxSize
	maxLabel    = 64
	maxPlatform = 32
	maxEnforces = 16
	maxSlots    = 1 << 20
	maxMemory   = 1 << 60
	maxVersion  = 1 << 16
	maxGPUs     = 1 << 16
)

var errMeta = errors.New("bad description")

// meta is a vicinity.Member without what memberlist carries itself.
type meta struct {
	Name     string   `json:"n,omitempty"`
	Site     string   `json:"s,omitempty"`
	Addrs    []string `json:"a,omitempty"` // without the first
	Slots    int      `json:"c,omitempty"`
	Memory   int64    `json:"m,omitempty"`
	Platform string   `json:"p,omitempty"`
	Enforces []string `json:"e,omitempty"`
	Version  int      `json:"v"`
	GPUs     int      `json:"g,omitempty"`

	Labels map[string]string `json:"l,omitempty"`

	Clock     int64 `json:"f,omitempty"`
	Power     int64 `json:"w,omitempty"`
	Bandwidth int64 `json:"b,omitempty"`
}

// tidy returns the member as others will see it: labels are cut to size, what
// cannot be shown is left out, and so are speeds, the last addresses and sandbox
// names if the whole would not fit. It fails for a member that nobody would accept.
func tidy(m vicinity.Member) (vicinity.Member, []byte, error) {
	m.Name, m.Site, m.Platform = label(m.Name, maxLabel), label(m.Site, maxLabel), label(m.Platform, maxPlatform)
	m.Slots, m.Memory = max(m.Slots, 0), max(m.Memory, 0)
	m.Addrs = slices.Clone(m.Addrs[:min(len(m.Addrs), maxAddrs)])
	m.Enforces = slices.DeleteFunc(slices.Clone(m.Enforces), func(e string) bool { return label(e, maxPlatform) != e })
	m.Enforces = m.Enforces[:min(len(m.Enforces), maxEnforces)]
	for {
		b, err := encodeMeta(m)
		if err != nil {
			return m, nil, err
		}
		switch {
		case len(b) <= maxMeta:
			return m, b, nil
		case m.Speeds != vicinity.Speeds{}:
			m.Speeds = vicinity.Speeds{}
		case len(m.Addrs) > 1:
			m.Addrs = m.Addrs[:len(m.Addrs)-1]
		case len(m.Enforces) > 0:
			m.Enforces = m.Enforces[:len(m.Enforces)-1]
		default:
			return m, nil, fmt.Errorf("%w: %d bytes, at most %d", errMeta, len(b), maxMeta)
		}
	}
}

// encodeMeta checks the member and returns its metadata, of any length.
func encodeMeta(m vicinity.Member) ([]byte, error) {
	if len(m.Addrs) == 0 {
		return nil, fmt.Errorf("%w: no address", errMeta)
	}
	first, err := netip.ParseAddrPort(m.Addrs[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMeta, err)
	}
	w := meta{
		m.Name, m.Site, m.Addrs[1:], m.Slots, m.Memory, m.Platform, m.Enforces, m.Version, m.GPUs, m.Labels,
		m.Speeds.Clock, m.Speeds.Power, m.Speeds.Bandwidth,
	}
	if _, err := w.member(m.ID, first); err != nil {
		return nil, err
	}
	return codec.Marshal(w)
}

// decodeMember reads what memberlist tells of a node. Its errors show nothing
// that could harm a terminal.
func decodeMember(n *memberlist.Node) (vicinity.Member, error) {
	ip, ok := netip.AddrFromSlice(n.Addr)
	if !ok {
		return vicinity.Member{}, fmt.Errorf("%w: an IP address of %d bytes", errMeta, len(n.Addr))
	}
	if len(n.Meta) > maxMeta {
		return vicinity.Member{}, fmt.Errorf("%w: %d bytes, at most %d", errMeta, len(n.Meta), maxMeta)
	}
	var w meta
	if err := codec.Unmarshal(n.Meta, &w); err != nil {
		return vicinity.Member{}, fmt.Errorf("%w: not what this version understands", errMeta)
	}
	return w.member(vicinity.ID(n.Name), netip.AddrPortFrom(ip.Unmap(), n.Port))
}

// member checks everything and puts the member together.
func (w *meta) member(id vicinity.ID, first netip.AddrPort) (vicinity.Member, error) {
	bad := func(format string, args ...any) (vicinity.Member, error) {
		return vicinity.Member{}, fmt.Errorf("%w: %s", errMeta, fmt.Sprintf(format, args...))
	}
	if !id.Valid() {
		return bad("ID %.30q", string(id))
	}
	for what, s := range map[string]string{"name": w.Name, "site": w.Site} {
		if label(s, maxLabel) != s {
			return bad("%s %.80q", what, s)
		}
	}
	if label(w.Platform, maxPlatform) != w.Platform {
		return bad("platform %.80q", w.Platform)
	}
	if len(w.Enforces) > maxEnforces || slices.ContainsFunc(w.Enforces, func(e string) bool { return label(e, maxPlatform) != e }) {
		return bad("sandbox %.200q", w.Enforces)
	}
	if w.Slots < 0 || w.Slots > maxSlots || w.Memory < 0 || w.Memory > maxMemory || w.Version < 0 || w.Version > maxVersion {
		return bad("%d slots, %d bytes, version %d", w.Slots, w.Memory, w.Version)
	}
	if w.GPUs < 0 || w.GPUs > maxGPUs {
		return bad("%d GPUs", w.GPUs)
	}
	speeds := vicinity.Speeds{Clock: w.Clock, Power: w.Power, Bandwidth: w.Bandwidth}
	if !speeds.Valid() {
		return bad("%d MHz, power %d, %d Mbit/s", w.Clock, w.Power, w.Bandwidth)
	}
	if err := vicinity.CheckLabels(w.Labels); err != nil {
		return bad("%v", err)
	}
	if len(w.Addrs) >= maxAddrs {
		return bad("%d addresses, at most %d", len(w.Addrs)+1, maxAddrs)
	}
	addrs := make([]string, 0, 1+len(w.Addrs))
	for _, s := range append([]string{first.String()}, w.Addrs...) {
		a, err := netip.ParseAddrPort(s)
		if err != nil || a.Port() == 0 || a.Addr().IsUnspecified() || a.Addr().IsMulticast() || len(a.Addr().Zone()) > 16 || label(s, 80) != s {
			return bad("address %.80q", s)
		}
		addrs = append(addrs, a.String())
	}
	return vicinity.Member{
		ID: id, Name: w.Name, Site: w.Site, Addrs: addrs, Slots: w.Slots, Memory: w.Memory,
		Platform: w.Platform, Enforces: w.Enforces, Version: w.Version, GPUs: w.GPUs, Labels: w.Labels, Speeds: speeds,
	}, nil
}

// label returns s without what cannot be printed, cut to size bytes.
func label(s string, size int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, s)
	for len(s) > size {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// updateTimeout bounds how long a change waits for members that hear of it at once.
const updateTimeout = 2 * time.Second

// Said is what a node says of itself, which its owner may change while the Overlay runs that
// was made with it. The zero Said is ready for one.
type Said struct {
	mu   sync.Mutex // guards what follows
	desc description
	ml   *memberlist.Memberlist // nil before Run
}

// description is a member, and the same for memberlist.
type description struct {
	member vicinity.Member
	meta   []byte
}

// SetSpeeds changes the speeds, after Listen. If there is no room for them none are said. It
// waits until some member has heard of them, two seconds at most; others hear of it from that one.
func (s *Said) SetSpeeds(speeds vicinity.Speeds) error {
	m := s.get().member
	m.Speeds = speeds
	if err := s.describe(m); err != nil {
		return err
	}
	s.mu.Lock()
	ml := s.ml
	s.mu.Unlock()
	if ml != nil {
		announce(ml)
	}
	return nil
}

// announce has members hear what has changed. An error says only that none has within the time:
// memberlist goes on to announce it.
func announce(ml *memberlist.Memberlist) { _ = ml.UpdateNode(updateTimeout) }

func (s *Said) get() description {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.desc
}

func (s *Said) describe(m vicinity.Member) error {
	m, meta, err := tidy(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.desc = description{m, meta}
	return nil
}

// run has memberlist hear of changes from now on, and of those since it asked.
func (s *Said) run(ml *memberlist.Memberlist) {
	s.mu.Lock()
	s.ml = ml
	changed := !bytes.Equal(s.desc.meta, ml.LocalNode().Meta)
	s.mu.Unlock()
	if changed {
		announce(ml)
	}
}
