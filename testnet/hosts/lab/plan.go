package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	maxSites        = 32 // every ordered pair of them may get a thread
	maxHostsPerSite = 200
	maxHosts        = 400
	maxRTT          = 10 * time.Second

	// GatewayHost is the number of a site's way to the other sites.
	GatewayHost = 254
)

// Plan describes a network. Its file is JSON with these fields, others are
// errors:
//
//	{"sites": [{"name": "rennes", "hosts": 2}, {"name": "nancy", "hosts": 2}],
//	 "rtt_ms": [[0, 11.6], [11.6, 0]]}
type Plan struct {
	Sites []Site      `json:"sites"`
	RTT   [][]float64 `json:"rtt_ms"` // between sites, 0 to 10000 ms; symmetric
}

// Site is a local network. Its hosts are called NAME-1, NAME-2, ...
type Site struct {
	Name  string `json:"name"`
	Hosts int    `json:"hosts"`
}

// Host is one host of a Plan.
type Host struct {
	Name string
	Site int // index in Plan.Sites
	Addr netip.Addr
	MAC  net.HardwareAddr
}

// ReadPlan reads a Plan from a file.
func ReadPlan(file string) (*Plan, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%w: start me in the root of the repository", err)
	}
	p, err := ParsePlan(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// ParsePlan reads a Plan and checks all of it.
func ParsePlan(b []byte) (*Plan, error) {
	var p Plan
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return nil, where(b, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("something follows the network's description: remove it")
	}
	if err := p.checkSites(); err != nil {
		return nil, err
	}
	if err := p.checkRTT(); err != nil {
		return nil, err
	}
	return &p, nil
}

// where adds the line to an error of the JSON decoder.
func where(b []byte, err error) error {
	offset := int64(len(b))
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		err = fmt.Errorf("%s: want %s, not %s", kind.Field, kind.Type, kind.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the description ends too early")
	default:
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(b[:min(offset, int64(len(b)))], []byte("\n")), err)
}

func (p *Plan) checkSites() error {
	valid := regexp.MustCompile(`^[a-z]([a-z0-9-]{0,29}[a-z0-9])?$`)
	if len(p.Sites) == 0 || len(p.Sites) > maxSites {
		return fmt.Errorf("sites: %d, want 1 to %d", len(p.Sites), maxSites)
	}
	seen := map[string]bool{}
	for _, s := range p.Sites {
		switch {
		case !valid.MatchString(s.Name):
			return fmt.Errorf("site %.40q: want a name of at most 31 small letters, digits and hyphens", s.Name)
		case seen[s.Name]:
			return fmt.Errorf("site %s: is there twice", s.Name)
		case s.Hosts < 1 || s.Hosts > maxHostsPerSite:
			return fmt.Errorf("site %s: %d hosts, want 1 to %d", s.Name, s.Hosts, maxHostsPerSite)
		}
		seen[s.Name] = true
	}
	names := map[string]bool{} // sites a and a-1 can both have an a-1-1
	for _, h := range p.Hosts() {
		if names[h.Name] || seen[h.Name] {
			return fmt.Errorf("host %s: another host or site has this name: rename its site", h.Name)
		}
		names[h.Name] = true
	}
	if len(names) > maxHosts {
		return fmt.Errorf("%d hosts in all, want at most %d", len(names), maxHosts)
	}
	return nil
}

func (p *Plan) checkRTT() error {
	if len(p.RTT) != len(p.Sites) {
		return fmt.Errorf("rtt_ms: %d rows for %d sites", len(p.RTT), len(p.Sites))
	}
	for a, row := range p.RTT {
		if len(row) != len(p.Sites) {
			return fmt.Errorf("rtt_ms: the row of %s has %d numbers for %d sites", p.Sites[a].Name, len(row), len(p.Sites))
		}
	}
	for a, row := range p.RTT {
		for b, ms := range row {
			switch most := maxRTT.Seconds() * 1000; {
			case a == b && ms != 0:
				return fmt.Errorf("rtt_ms: %s to itself is %v, want 0", p.Sites[a].Name, ms)
			case !(ms >= 0 && ms <= most):
				return fmt.Errorf("rtt_ms: %s to %s is %v, want 0 to %v", p.Sites[a].Name, p.Sites[b].Name, ms, most)
			case ms != p.RTT[b][a]:
				return fmt.Errorf("rtt_ms: %s to %s is %v, but back it is %v: want the same", p.Sites[a].Name, p.Sites[b].Name, ms, p.RTT[b][a])
			}
		}
	}
	return nil
}

// OneWay returns the delay from one site to another.
func (p *Plan) OneWay(from, to int) time.Duration {
	return time.Duration(p.RTT[from][to] / 2 * float64(time.Millisecond))
}

// Hosts returns all hosts, in the order of the sites.
func (p *Plan) Hosts() []Host {
	var all []Host
	for s, site := range p.Sites {
		for i := range min(site.Hosts, maxHostsPerSite) {
			all = append(all, Host{Name: site.Name + "-" + strconv.Itoa(i+1), Site: s, Addr: Address(s, i+1), MAC: MAC(s, i+1)})
		}
	}
	return all
}

// Names returns the names of all hosts, in the order of the sites.
func (p *Plan) Names() []string {
	var all []string
	for _, h := range p.Hosts() {
		all = append(all, h.Name)
	}
	return all
}

// Address returns the address of a host, from 1 on, of a site, from 0 on.
func Address(site, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(site + 1), byte(host)})
}

// MAC returns the hardware address of a site's host: it tells the same as the IP
// address, so nothing has to be looked up.
func MAC(site, host int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, 0, byte(site + 1), byte(host)}
}

// PlaceOf is the inverse of Address; ok is false for what is no host's address.
func (p *Plan) PlaceOf(a [4]byte) (site, host int, ok bool) {
	site, host = int(a[2])-1, int(a[3])
	ok = a[0] == 10 && a[1] == 0 && site >= 0 && site < len(p.Sites) && host >= 1 && host <= p.Sites[site].Hosts
	return site, host, ok
}

// SiteOf returns the index of a host's site, -1 if there is no such host.
func (p *Plan) SiteOf(host string) int {
	if i := p.HostIndex(host); i >= 0 {
		return p.Hosts()[i].Site
	}
	return -1
}

// SiteIndex returns the index of the site with this name, -1 if there is none.
func (p *Plan) SiteIndex(name string) int {
	return slices.IndexFunc(p.Sites, func(s Site) bool { return s.Name == name })
}

// HostIndex returns the index of the host with this name, in the order of Hosts, -1
// if there is none.
func (p *Plan) HostIndex(name string) int { return slices.Index(p.Names(), name) }
