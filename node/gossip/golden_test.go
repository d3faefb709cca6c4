package gossip

import (
	"net"
	"testing"

	"github.com/hashicorp/memberlist"

	"zorilla/internal/golden"
	"zorilla/vicinity"
)

// TestGoldenMessages reads what earlier versions say of themselves, their user
// packets and their beacons.
func TestGoldenMessages(t *testing.T) {
	creds := testCreds(t, 1, 1)
	member := vicinity.Member{ID: creds.ID(), Name: "desk", Site: "Amsterdam", Addrs: []string{"10.0.0.1:5444", "[fd00::1]:5444"},
		Slots: 16, Memory: 64 << 30, Platform: "linux/amd64", Enforces: []string{"landlock", "memory"}, Version: 2, GPUs: 2, Labels: map[string]string{"rack": "b7"}}
	_, meta, err := tidy(member)
	if err != nil {
		t.Fatal(err)
	}
	member.Speeds = vicinity.Speeds{Clock: 2400, Power: 1010, Bandwidth: 1000}
	_, speeds, err := tidy(member)
	if err != nil {
		t.Fatal(err)
	}
	decode := func(b []byte) (any, error) {
		return decodeMember(&memberlist.Node{Name: string(creds.ID()), Addr: net.IP{10, 0, 0, 1}, Port: 5444, Meta: b})
	}
	sealed, err := sealBeacon(creds.Networks()[0], beacon{creds.ID(), []string{"10.0.0.1:5444"}})
	if err != nil {
		t.Fatal(err)
	}
	golden.Messages(t, "messages", map[string]golden.Message{
		"meta":        {Bytes: meta, Decode: decode},
		"meta-speeds": {Bytes: speeds, Decode: decode},
		"packet": {Bytes: encodePacket(creds.ID(), 3, []byte("answer")), Decode: func(b []byte) (any, error) {
			from, kind, payload, err := decodePacket(b)
			return map[string]any{"from": from, "kind": kind, "payload": string(payload)}, err
		}},
		"beacon": {Bytes: sealed, Varies: true, Decode: func(b []byte) (any, error) { return openBeacon(creds.Networks(), b) }},
	})
}
