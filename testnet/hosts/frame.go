package main

import (
	"encoding/binary"

	"zorilla/testnet/hosts/lab"
)

const (
	ethernetHeader = 14
	ipv4Header     = 20
	typeIPv4       = 0x0800
)

// route decides about an Ethernet frame that a site's bridge handed to the
// router: if it is a packet from a host of this site to one of another, it
// writes the hardware addresses of the next link into it and returns the
// other site. All else that a bridge floods to its ports is none of ours.
func route(p *lab.Plan, site int, frame []byte) (to int, ok bool) {
	if len(frame) < ethernetHeader+ipv4Header || string(frame[:6]) != string(lab.MAC(site, lab.GatewayHost)) ||
		binary.BigEndian.Uint16(frame[12:]) != typeIPv4 || frame[ethernetHeader]>>4 != 4 {
		return 0, false
	}
	from, _, ok := p.PlaceOf([4]byte(frame[ethernetHeader+12:]))
	if !ok || from != site { // forged
		return 0, false
	}
	to, host, ok := p.PlaceOf([4]byte(frame[ethernetHeader+16:]))
	if !ok || to == site {
		return 0, false
	}
	copy(frame, lab.MAC(to, host))
	copy(frame[6:], lab.MAC(to, lab.GatewayHost))
	return to, true
}
