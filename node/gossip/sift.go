package gossip

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
)

// The first bytes of memberlist's messages.
const (
	messagePing     = 0
	messageIndirect = 1
	messageAck      = 2
	messageSuspect  = 3
	messageAlive    = 4
	messageDead     = 5
	messageState    = 6 // all members, on streams
	messageCompound = 7 // count, a length of two bytes for each message, and these
	messageUser     = 8
	messageSealed   = 10 // a length of four bytes and a sealed message, on streams
	messageNack     = 11
	messageChecked  = 12 // a checksum of four bytes, and the message
	messageError    = 13
)

const (
	// maxState bounds what comes on a stream, in bytes: members take some 250 each.
	maxState = 8 << 20
	// leastMember is less than a member takes there.
	leastMember = 32
)

var (
	errSealed = errors.New("sealed with another network's key, or damaged")
	errOdd    = errors.New("nothing that a node sends")
)

// sifter filters what memberlist sends and receives. memberlist accepts messages that no node sends,
// such as compressed ones, which may grow a thousandfold; and it accepts as the answer to a ping any
// message with the ping's sequence number, which it counts up from 1. So these numbers are masked on
// the wire: only the node that was pinged knows a valid one.
type sifter struct {
	keys  []cipher.AEAD // the first one seals
	mask  mask
	alive func(m []byte) bool // whether memberlist may have the announcement of a node; nil = it may
}

// newSifter makes a sifter with the keys of memberlist's keyring.
func newSifter(keys [][]byte) (*sifter, error) {
	s := &sifter{}
	for _, key := range keys {
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		s.keys = append(s.keys, aead)
	}
	var key [16]byte
	rand.Read(key[:])
	var err error
	s.mask.block, err = aes.NewCipher(key[:])
	return s, err
}

// in returns a packet of another node as memberlist is to get it; nil = nothing of it is left.
func (s *sifter) in(b []byte) ([]byte, error) {
	plain, err := s.open(b, nil)
	if err != nil {
		return nil, err
	}
	changed, err := rewrite(plain, func(m []byte) ([]byte, error) {
		switch m[0] {
		case messageAck, messageNack:
			return renumber(m, s.mask.show)
		case messageAlive:
			if s.alive != nil && !s.alive(m) {
				return nil, nil
			}
			return m, nil
		case messagePing, messageIndirect, messageSuspect, messageDead, messageUser:
			return m, nil
		}
		return nil, errOdd
	})
	if err != nil {
		return nil, err
	}
	switch {
	case changed == nil:
		return bytes.Clone(b), nil
	case len(changed) == 0:
		return nil, nil
	}
	return s.seal(changed), nil
}

// out returns a packet of memberlist as others are to get it, and whether it has a ping, alone
// or with news behind it.
func (s *sifter) out(b []byte) (_ []byte, ping bool) {
	plain, err := s.open(b, nil)
	if err != nil {
		return b, false
	}
	changed, err := rewrite(plain, func(m []byte) ([]byte, error) {
		if m[0] != messagePing && m[0] != messageIndirect {
			return m, nil
		}
		ping = ping || m[0] == messagePing
		return renumber(m, s.mask.hide)
	})
	if err != nil || changed == nil {
		return b, false
	}
	return s.seal(changed), ping
}

// open opens what is sealed: version (1 byte, 1) | nonce | sealed message. It refuses other
// versions.
func (s *sifter) open(b, beside []byte) ([]byte, error) {
	for _, key := range s.keys {
		n := key.NonceSize()
		if len(b) < 1+n || b[0] != 1 {
			break
		}
		if plain, err := key.Open(nil, b[1:1+n], b[1+n:], beside); err == nil && len(plain) > 0 {
			return plain, nil
		}
	}
	return nil, errSealed
}

func (s *sifter) seal(plain []byte) []byte {
	n := s.keys[0].NonceSize()
	b := make([]byte, 1+n, 1+n+len(plain)+s.keys[0].Overhead())
	b[0] = 1
	rand.Read(b[1:])
	return s.keys[0].Seal(b, b[1:], plain, nil)
}

// rewrite calls f for each message of a packet and returns the packet with what f returns in its
// place; a message for which that is nil is left out. It returns nil if nothing changes, and no
// bytes if nothing is left.
func rewrite(plain []byte, f func(m []byte) ([]byte, error)) ([]byte, error) {
	b, head := plain, 0
	if b[0] == messageChecked && len(b) > 5 {
		b, head = b[5:], 5
	}
	parts := [][]byte{b}
	if b[0] == messageCompound {
		if parts = split(b); parts == nil {
			return nil, errOdd
		}
	}
	same, kept := true, parts[:0]
	for _, m := range parts {
		changed, err := f(m)
		if err != nil {
			return nil, err
		}
		same = same && len(changed) > 0 && &changed[0] == &m[0]
		if len(changed) > 0 {
			kept = append(kept, changed)
		}
	}
	switch parts = kept; {
	case same:
		return nil, nil
	case len(parts) == 0:
		return []byte{}, nil
	}
	out := make([]byte, head, len(plain)+16)
	if b[0] == messageCompound {
		out = append(out, messageCompound, byte(len(parts)))
		for _, m := range parts {
			out = binary.BigEndian.AppendUint16(out, uint16(len(m)))
		}
	}
	out = append(out, bytes.Join(parts, nil)...)
	if head > 0 {
		out[0] = messageChecked
		binary.BigEndian.PutUint32(out[1:], crc32.ChecksumIEEE(out[head:]))
	}
	return out, nil
}

// split returns the messages of a compound one; nil = it is malformed.
func split(b []byte) (parts [][]byte) {
	if len(b) < 2 || len(b) < 2+2*int(b[1]) {
		return nil
	}
	rest := b[2+2*int(b[1]):]
	for i := range int(b[1]) {
		n := int(binary.BigEndian.Uint16(b[2+2*i:]))
		if n == 0 || n > len(rest) {
			return nil
		}
		parts, rest = append(parts, rest[:n:n]), rest[n:]
	}
	return parts
}

// renumber returns a message with f applied to its sequence number.
func renumber(m []byte, f func(uint32) uint32) ([]byte, error) {
	at, end := fields(m[1:])
	from := at["SeqNo"]
	if from == 0 || end != len(m)-1 {
		return nil, errOdd
	}
	n, size := integer(m[1+from:])
	if size == 0 || n > 1<<32-1 {
		return nil, errOdd
	}
	out := append(bytes.Clone(m[:1+from]), 0xce)
	out = binary.BigEndian.AppendUint32(out, f(uint32(n)))
	return append(out, m[1+from+size:]...), nil
}

// fields returns where the values of a msgpack map begin and where the map ends. It accepts what
// memberlist writes: at most 15 fields with distinct names and nothing nested; else at is nil.
func fields(m []byte) (at map[string]int, end int) {
	if len(m) == 0 || m[0]&0xf0 != 0x80 {
		return nil, 0
	}
	at, end = map[string]int{}, 1
	for range m[0] & 0x0f {
		rest := m[end:]
		if len(rest) == 0 || rest[0]&0xe0 != 0xa0 || len(rest) < 1+int(rest[0]&0x1f) {
			return nil, 0
		}
		value := 1 + int(rest[0]&0x1f)
		size := scalar(rest[value:])
		name := string(rest[1:value])
		if size == 0 || at[name] > 0 {
			return nil, 0
		}
		at[name] = end + value
		end += value + size
	}
	return at, end
}

// scalar returns how many bytes a scalar of msgpack takes, 0 if b does not begin with one.
func scalar(b []byte) (size int) {
	_, size = integer(b)
	switch {
	case size > 0 || len(b) == 0:
		return size
	case b[0] == 0xc0, b[0] == 0xc2, b[0] == 0xc3: // nil, false, true
		return 1
	case b[0]&0xe0 == 0xa0: // a short text
		size = 1 + int(b[0]&0x1f)
	case b[0] == 0xd9 && len(b) > 1:
		size = 2 + int(b[1])
	case b[0] == 0xda && len(b) > 2:
		size = 3 + int(binary.BigEndian.Uint16(b[1:]))
	}
	if size > len(b) {
		return 0
	}
	return size
}

// integer reads a non-negative integer of msgpack, and returns how many bytes it takes, 0 if b does
// not begin with one.
func integer(b []byte) (n uint64, size int) {
	switch {
	case len(b) == 0, b[0] > 0x7f && b[0] < 0xcc, b[0] > 0xd3:
		return 0, 0
	case b[0] <= 0x7f:
		return uint64(b[0]), 1
	}
	// Of 1, 2, 4 and 8 bytes, without and with a sign.
	size = 1 << ((b[0] - 0xcc) % 4)
	if len(b) < 1+size || b[0] >= 0xd0 && b[1] >= 0x80 {
		return 0, 0
	}
	for _, c := range b[1 : 1+size] {
		n = n<<8 | uint64(c)
	}
	return n, 1 + size
}

// mask hides numbers with a secret permutation, a Feistel network.
type mask struct{ block cipher.Block }

const maskRounds = 6

func (m mask) hide(n uint32) uint32 {
	l, r := uint16(n>>16), uint16(n)
	for i := range maskRounds {
		l, r = r, l^m.round(i, r)
	}
	return uint32(l)<<16 | uint32(r)
}

func (m mask) show(n uint32) uint32 {
	l, r := uint16(n>>16), uint16(n)
	for i := maskRounds - 1; i >= 0; i-- {
		l, r = r^m.round(i, l), l
	}
	return uint32(l)<<16 | uint32(r)
}

func (m mask) round(i int, half uint16) uint16 {
	b := [aes.BlockSize]byte{byte(i), byte(half >> 8), byte(half)}
	m.block.Encrypt(b[:], b[:])
	return binary.BigEndian.Uint16(b[:])
}

// sifted is a stream of memberlist. The one message on it is checked before memberlist reads it.
type sifted struct {
	net.Conn
	s     *sifter
	odd   func() // called if no node sends such a message
	frame io.Reader
}

// Read implements net.Conn.
func (c *sifted) Read(b []byte) (int, error) {
	if c.frame == nil {
		frame, err := c.s.frame(c.Conn)
		if err != nil {
			if errors.Is(err, errOdd) || errors.Is(err, errSealed) {
				c.odd()
			}
			return 0, err
		}
		c.frame = io.MultiReader(bytes.NewReader(frame), c.Conn)
	}
	return c.frame.Read(b)
}

// frame reads and checks the message of a stream.
func (s *sifter) frame(r io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if head[0] != messageSealed || size > maxState {
		return nil, errOdd
	}
	frame := bytes.NewBuffer(head[:])
	if _, err := io.CopyN(frame, r, int64(size)); err != nil {
		return nil, err
	}
	m, err := s.open(frame.Bytes()[len(head):], head[:])
	if err != nil {
		return nil, err
	}
	switch m[0] {
	case messageState:
		return frame.Bytes(), checkState(m[1:])
	case messagePing, messageAck, messageError:
		return frame.Bytes(), nil
	}
	return nil, errOdd
}

// checkState refuses a state whose head announces more than can follow: memberlist allocates memory
// for that before it reads it.
func checkState(m []byte) error {
	at, _ := fields(m)
	for _, name := range []string{"Nodes", "UserStateLen"} {
		n, size := integer(m[at[name]:])
		if at[name] == 0 || size == 0 || n > uint64(len(m)/leastMember) {
			return fmt.Errorf("%w: a state with %s %d in %d bytes", errOdd, name, n, len(m))
		}
	}
	return nil
}
