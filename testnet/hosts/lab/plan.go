package lab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// GatewayHost is the number of a site's way to the other sites.
const GatewayHost = 254

// Plan is a network of at most 253 hosts at each site.
type Plan struct {
	Sites []Site
	RTT   [][]float64 // between sites, in ms; symmetric
}

// Site is a local network. Its hosts are called NAME-1, NAME-2, ...
type Site struct {
	Name  string
	Hosts int
}

// Host is one host of a Plan.
type Host struct {
	Name string
	Site int // index in Plan.Sites
	Addr netip.Addr
	MAC  net.HardwareAddr
}

// Plans names the networks that can be built.
const Plans = "grid5000 or room or small or lans or towns or remote or campus or lines or qoscosgrid or spares or clusters"

// PlanOf returns the network of that name: six sites with the distances of
// Grid'5000, the same sites in one room, three with five hosts, two local networks
// of three hosts each, four towns of which two are close to each other, four sites
// that are far from the only host of a fifth, one host that three sites of four fetch
// from, one with two others at a distance, the three sites of the QosCosGrid paper, three
// with twelve hosts and as many again that take the place of those, or one host with two clusters
// of ten, as many as checkpoints need that are to be kept in their cluster.
func PlanOf(name string) (*Plan, error) {
	switch name {
	case "grid5000":
		return &Plan{
			Sites: []Site{{"nancy", 2}, {"lyon", 2}, {"rennes", 2}, {"bordeaux", 2}, {"grenoble", 2}, {"sophia", 2}},
			RTT: [][]float64{
				{0, 10.5, 11.6, 12.6, 13.2, 17.1},
				{10.5, 0, 12.1, 11.0, 10.2, 11.3},
				{11.6, 12.1, 0, 10.8, 15.6, 19.4},
				{12.6, 11.0, 10.8, 0, 15.9, 10.9},
				{13.2, 10.2, 15.6, 15.9, 0, 10.4},
				{17.1, 11.3, 19.4, 10.9, 10.4, 0},
			},
		}, nil
	case "room": // what there is of delay is the router's own
		p, err := PlanOf("grid5000")
		for a, row := range p.RTT {
			for b := range row {
				if a != b {
					p.RTT[a][b] = 0.1
				}
			}
		}
		return p, err
	case "small":
		return &Plan{Sites: []Site{{"east", 2}, {"west", 2}, {"north", 1}}, RTT: [][]float64{{0, 6, 9}, {6, 0, 8}, {9, 8, 0}}}, nil
	case "lans":
		return &Plan{Sites: []Site{{"lan", 3}, {"other", 3}}, RTT: [][]float64{{0, 5}, {5, 0}}}, nil
	case "towns":
		return &Plan{
			Sites: []Site{{"oslo", 3}, {"porto", 2}, {"quito", 3}, {"riga", 3}},
			RTT: [][]float64{
				{0, 41, 160, 9},
				{41, 0, 150, 48},
				{160, 150, 0, 170},
				{9, 48, 170, 0},
			},
		}, nil
	case "remote":
		return &Plan{
			Sites: []Site{{"home", 2}, {"west", 3}, {"hub", 2}, {"metro", 2}, {"south", 2}, {"far", 1}},
			RTT: [][]float64{
				{0, 8, 9, 60, 31, 155},
				{8, 0, 1.5, 54, 37, 150},
				{9, 1.5, 0, 55, 38, 151},
				{60, 54, 55, 0, 92, 96},
				{31, 37, 38, 92, 0, 188},
				{155, 150, 151, 96, 188, 0},
			},
		}, nil
	case "campus":
		return &Plan{
			Sites: []Site{{"home", 1}, {"east", 4}, {"north", 4}, {"west", 4}},
			RTT:   [][]float64{{0, 20, 30, 40}, {20, 0, 25, 35}, {30, 25, 0, 30}, {40, 35, 30, 0}},
		}, nil
	case "lines":
		return &Plan{Sites: []Site{{"home", 1}, {"near", 1}, {"far", 1}}, RTT: [][]float64{{0, 50, 200}, {50, 0, 200}, {200, 200, 0}}}, nil
	case "qoscosgrid": // the last distance is that of Grid'5000
		return &Plan{Sites: []Site{{"orsay", 6}, {"bordeaux", 3}, {"rennes", 2}}, RTT: [][]float64{{0, 9, 8}, {9, 0, 10.8}, {8, 10.8, 0}}}, nil
	case "spares":
		return &Plan{Sites: []Site{{"east", 8}, {"north", 8}, {"west", 8}}, RTT: [][]float64{{0, 25, 35}, {25, 0, 30}, {35, 30, 0}}}, nil
	case "clusters":
		return &Plan{Sites: []Site{{"home", 1}, {"north", 10}, {"west", 10}}, RTT: [][]float64{{0, 25, 35}, {25, 0, 30}, {35, 30, 0}}}, nil
	}
	return nil, fmt.Errorf("network %.40q: want %s", name, Plans)
}

// First returns the same network with at most so many hosts at each site, the first ones.
func (p *Plan) First(hosts int) *Plan {
	first := &Plan{slices.Clone(p.Sites), p.RTT}
	for i := range first.Sites {
		first.Sites[i].Hosts = min(hosts, first.Sites[i].Hosts)
	}
	return first
}

// OneWay returns the delay from one site to another.
func (p *Plan) OneWay(from, to int) time.Duration {
	return time.Duration(p.RTT[from][to] / 2 * float64(time.Millisecond))
}

// Hosts returns all hosts, in the order of the sites.
func (p *Plan) Hosts() []Host {
	var all []Host
	for s, site := range p.Sites {
		for i := range site.Hosts {
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
