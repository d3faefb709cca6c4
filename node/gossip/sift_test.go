package gossip

import (
	"bytes"
	"compress/lzw"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/internal/codec"
)

// frameOf seals a message for a stream.
func frameOf(s *sifter, m string) []byte {
	n := s.keys[0].NonceSize()
	head := binary.BigEndian.AppendUint32([]byte{messageSealed}, uint32(1+n+len(m)+s.keys[0].Overhead()))
	b := append(append([]byte{}, head...), 1)
	b = append(b, make([]byte, n)...)
	return s.keys[0].Seal(b, b[len(b)-n:], []byte(m), head)
}

func testSifter(t *testing.T) *sifter {
	t.Helper()
	s, err := newSifter([][]byte{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func together(parts ...string) string {
	head, rest := []byte{messageCompound, byte(len(parts))}, ""
	for _, p := range parts {
		head = binary.BigEndian.AppendUint16(head, uint16(len(p)))
		rest += p
	}
	return string(head) + rest
}

func checked(m string) string {
	return string(binary.BigEndian.AppendUint32([]byte{messageChecked}, crc32.ChecksumIEEE([]byte(m)))) + m
}

// growing is a compressed message of memberlist's.
func growing(t *testing.T, size int) string {
	var b bytes.Buffer
	w := lzw.NewWriter(&b, lzw.LSB, 8)
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return "\x09" + string(codec.MustMarshal(struct {
		Algo uint8
		Buf  []byte
	}{0, b.Bytes()}))
}

// What no node sends does not get to memberlist, which would let a packet grow to gigabytes.
func TestWhatNoNodeSends(t *testing.T) {
	s := testSifter(t)
	large := growing(t, 39<<20)
	const ack, user = "\x02\x82\xa5SeqNo\x01\xa7Payload\xc0", "\x08hello"
	for _, m := range []string{
		large, checked(large), together(user, large), checked(together(ack, large)), together(together(user)), "\x06", "\x0a", "\x0d", "\xf4", "\x0c", checked(checked(user)),
		"\x02", "\x02\x82", "\x02\x82\xa5SeqNo", "\x02\x82\xa5SeqNo\xd0\x81", "\x02\x82\xa5SeqNo\xcf\x01\x02\x03\x04\x05\x06\x07\x08", "\x02\x82\xa5SeqN0\x01", "\x0b\x80",
		// Two numbers, a list, something nested, something behind it: what counts for memberlist must be what is looked at.
		"\x02\x82\xa5SeqNo\x01\xa5SeqNo\x02", "\x02\x92\xc0\x01", "\x02\x82\xa5SeqNo\x01\xa7Payload\x81\xa5SeqNo\x02", ack + "\xa5SeqNo\x02", "\x02\x82\xc4\x05SeqNo\x01\xa5SeqNo\x02",
		"\x07", "\x07\x01", "\x07\x01\x00\x02a", "\x07\x01\x00\x00", "\x07\x00"[:1],
	} {
		if got, err := s.in(s.seal([]byte(m))); !errors.Is(err, errOdd) {
			t.Errorf("%.40q got through: %.40q, %v", m, got, err)
		}
	}
	for _, m := range []string{user, checked(user), together(user, "\x00ping", "\x04alive", "\x03suspect", "\x05dead", "\x01indirect")} {
		sealed := s.seal([]byte(m))
		if got, err := s.in(sealed); err != nil || !bytes.Equal(got, sealed) {
			t.Errorf("%q did not get through: %v", m, err)
		}
	}
	for _, b := range [][]byte{nil, []byte("packet"), make([]byte, 100), s.seal([]byte(user))[:20], (&sifter{keys: s.keys}).seal(nil)} {
		if _, err := s.in(b); !errors.Is(err, errSealed) {
			t.Errorf("%q: %v", b, err)
		}
	}
	old := &sifter{keys: s.keys[1:]} // of a node that seals with the other key
	if _, err := s.in(old.seal([]byte(user))); err != nil {
		t.Error(err)
	}
}

// The numbers of pings are others on the way, and come back as they were.
func TestNumbersOfPings(t *testing.T) {
	s := testSifter(t)
	seen := map[uint32]bool{}
	for _, n := range []uint32{0, 1, 2, 127, 128, 255, 256, 65535, 65536, 1<<32 - 1} {
		hidden := s.mask.hide(n)
		if hidden == n || seen[hidden] || s.mask.show(hidden) != n {
			t.Errorf("%d is hidden as %d, and shown as %d", n, hidden, s.mask.show(hidden))
		}
		seen[hidden] = true
		number := string(codec.MustMarshal(n))
		for _, wrap := range []func(string) string{strings.Clone, checked, func(m string) string { return checked(together(m, "\x04news")) }} {
			ping := wrap("\x00\x84\xa4Node\xa1x\xa5SeqNo" + number + "\xaaSourceAddr\xa4abcd\xaaSourcePort\xcd\x15\x44")
			b, isPing := s.out(s.seal([]byte(ping)))
			plain, err := s.open(b, nil)
			if err != nil || !isPing {
				t.Fatalf("%q: ping %t, %v", ping, isPing, err)
			}
			want := wrap("\x00\x84\xa4Node\xa1x\xa5SeqNo\xce" + string(binary.BigEndian.AppendUint32(nil, hidden)) + "\xaaSourceAddr\xa4abcd\xaaSourcePort\xcd\x15\x44")
			if string(plain) != want {
				t.Errorf("%q is sent as %q, want %q", ping, plain, want)
			}
			ack := wrap("\x02\x82\xa5SeqNo\xce" + string(binary.BigEndian.AppendUint32(nil, hidden)) + "\xa7Payload\xc0")
			if b, err = s.in(s.seal([]byte(ack))); err != nil {
				t.Fatal(err)
			}
			want = wrap("\x02\x82\xa5SeqNo\xce" + string(binary.BigEndian.AppendUint32(nil, n)) + "\xa7Payload\xc0")
			if plain, err = s.open(b, nil); err != nil || string(plain) != want {
				t.Errorf("%q is taken for %q, want %q, %v", ack, plain, want, err)
			}
		}
	}
}

// On streams, too, nothing grows, and no room is made for what does not come.
func TestStates(t *testing.T) {
	s := testSifter(t)
	state := func(nodes, user, rest string) string {
		return "\x06\x83\xa4Join\xc2\xa5Nodes" + nodes + "\xacUserStateLen" + user + rest
	}
	for _, m := range []string{
		growing(t, 39<<20), state("\xce\x00\x10\x00\x00", "\x00", ""), state("\xd2\x00\x10\x00\x00", "\x00", ""), state("\x00", "\xce\x01\x00\x00\x00", ""),
		state("\xff", "\x00", ""), state("\xd1\xff\xff", "\x00", ""), state("\x02", "\x00", ""), "\x06", "\x06\x83\xa5Nodes", "\x06\x83\xa5Nodes\xce\x00", "\x06\x80", "\x06\x93\xc2\xce\x00\x10\x00\x00\x00", "\x08user", "\x0a",
	} {
		if _, err := s.frame(bytes.NewReader(frameOf(s, m))); !errors.Is(err, errOdd) {
			t.Errorf("%.40q: %v", m, err)
		}
	}
	good := frameOf(s, state("\x02", "\x00", strings.Repeat("x", 2*leastMember)))
	if got, err := s.frame(bytes.NewReader(good)); err != nil || !bytes.Equal(got, good) {
		t.Errorf("a state did not get through: %v", err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x80
		if _, err := s.frame(bytes.NewReader(bad)); err == nil {
			t.Errorf("damaged at %d it got through", i)
		}
	}
	if _, err := s.frame(io.MultiReader(strings.NewReader("\x0a\x01\x00\x00\x00"), endlessZeros{})); !errors.Is(err, errOdd) {
		t.Errorf("16 MiB: %v", err)
	}
}

type endlessZeros struct{}

// Read implements io.Reader.
func (endlessZeros) Read(p []byte) (int, error) { return len(p), nil }

// A member that answers pings in the name of another one, by guessing their numbers, does not keep
// it alive.
func TestForgedAnswersToPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFabric(time.Millisecond)
		nodes := startMany(t, f, 3)
		for _, n := range nodes {
			n.knows(t, 2, time.Minute)
		}
		f.host(2).crash()
		crashed := nodes[2]
		evil, err := f.host(9).ListenPacket(t.Context(), "10.0.0.10:5444")
		if err != nil {
			t.Fatal(err)
		}
		key := nodes[0].transport.sift
		for range 300 { // a minute
			for _, n := range nodes[:2] {
				to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(n.Addr()))
				for i := 0; i < 200; i += 10 {
					var acks []string
					for j := range 10 {
						acks = append(acks, fmt.Sprintf("\x02\x82\xa5SeqNo\xce%s\xa7Payload\xc0", binary.BigEndian.AppendUint32(nil, uint32(i+j))))
					}
					if _, err := evil.WriteTo(key.seal([]byte(together(acks...))), to); err != nil {
						t.Fatal(err)
					}
				}
			}
			time.Sleep(200 * time.Millisecond)
		}
		for _, n := range nodes[:2] {
			n.rmu.Lock()
			if n.left[crashed.ID()] != 1 || len(n.members) != 1 {
				t.Errorf("a node that is gone is a member, since somebody answers for it: %d members", len(n.members))
			}
			n.rmu.Unlock()
		}
		evil.Close()
		endAll(t, nodes)
	})
}
