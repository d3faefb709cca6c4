package main

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
	"strconv"
	"time"
)

const (
	maxSites        = 32 // every ordered pair of them may get a thread
	maxHostsPerSite = 200
	maxHosts        = 400
	maxRTT          = 10 * time.Second
	maxMbit         = 100_000
	gatewayHost     = 254
)

// Plan describes a network. Its file is JSON with these fields, others are
// errors:
//
//	{"sites": [{"name": "rennes", "hosts": 2}, {"name": "nancy", "hosts": 2}],
//	 "rtt_ms": [[0, 11.6], [11.6, 0]],
//	 "loss_percent": 0, "mbit_between_sites": 0, "mbit_of_hosts": 0}
type Plan struct {
	Sites []Site      `json:"sites"`
	RTT   [][]float64 `json:"rtt_ms"` // between sites, 0 to 10000 ms; symmetric

	Loss      float64 `json:"loss_percent"`       // of the packets between sites, 0 to 100
	SitesMbit float64 `json:"mbit_between_sites"` // of each pair of sites and direction; 0: no limit
	HostMbit  float64 `json:"mbit_of_hosts"`      // of each host and direction; 0: no limit
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
		return nil, err
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
	if err := checkLoss(p.Loss); err != nil {
		return nil, fmt.Errorf("loss_percent: %w", err)
	}
	if err := checkRate(p.SitesMbit); err != nil {
		return nil, fmt.Errorf("mbit_between_sites: %w", err)
	}
	if err := checkRate(p.HostMbit); err != nil {
		return nil, fmt.Errorf("mbit_of_hosts: %w", err)
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

func checkLoss(percent float64) error {
	if !(percent >= 0 && percent <= 100) {
		return fmt.Errorf("%v percent, want 0 to 100", percent)
	}
	return nil
}

func checkRate(mbit float64) error {
	if !(mbit == 0 || mbit >= 0.01 && mbit <= maxMbit) {
		return fmt.Errorf("%v Mbit/s, want 0.01 to %d, or 0 for no limit", mbit, maxMbit)
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
			all = append(all, Host{Name: site.Name + "-" + strconv.Itoa(i+1), Site: s, Addr: addrOf(s, i+1), MAC: macOf(s, i+1)})
		}
	}
	return all
}

// addrOf returns the address of a site's host, which counts from 1.
func addrOf(site, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(site + 1), byte(host)})
}

// macOf returns the hardware address of a site's host: it tells the same as
// the IP address, so nothing has to be looked up.
func macOf(site, host int) net.HardwareAddr {
	return net.HardwareAddr{2, 0, 0, 0, byte(site + 1), byte(host)}
}

// placeOf is the inverse of addrOf; ok is false for what is no host's address.
func (p *Plan) placeOf(a [4]byte) (site, host int, ok bool) {
	site, host = int(a[2])-1, int(a[3])
	ok = a[0] == 10 && a[1] == 0 && site >= 0 && site < len(p.Sites) && host >= 1 && host <= p.Sites[site].Hosts
	return site, host, ok
}

// site returns the index of the site with this name.
func (p *Plan) site(name string) (int, error) {
	for i, s := range p.Sites {
		if s.Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("site %.40q: there is no such site: 'lab show' lists them", name)
}

// host returns the index of the host with this name, in the order of Hosts.
func (p *Plan) host(name string) (int, error) {
	for i, h := range p.Hosts() {
		if h.Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("host %.40q: there is no such host: 'lab show' lists them", name)
}
