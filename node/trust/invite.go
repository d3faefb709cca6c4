package trust

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"zorilla/internal/codec"
)

const (
	invitePrefix   = "zor1."
	maxInvite      = 4096
	maxInviteAddrs = 16
	lengthSize     = 2
)

// ErrInvite is wrapped by every error of ParseInvite.
var ErrInvite = errors.New("bad invite token")

// Invite is what another machine needs to join: the secret and addresses of
// members, which may be none on one local network.
type Invite struct {
	Secret Secret
	Addrs  []string // "host:port"
}

type wireInvite struct {
	Secret []byte   `json:"s"`
	Addrs  []string `json:"a,omitempty"`
}

// Token returns the invite as one word: "zor1." and base64url. It holds the
// secret. Addresses beyond the first 16 and malformed ones are left out. An
// invite without a secret has the token "".
func (inv Invite) Token() string {
	if inv.Secret.IsZero() {
		return ""
	}
	w := wireInvite{Secret: inv.Secret.bytes()}
	for _, a := range inv.Addrs {
		if checkAddr(a) == nil && len(w.Addrs) < maxInviteAddrs {
			w.Addrs = append(w.Addrs, a)
		}
	}
	body := codec.MustMarshal(w)
	b := append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...)
	return invitePrefix + base64.RawURLEncoding.EncodeToString(addSum(b))
}

// String names the addresses only.
func (inv Invite) String() string { return "invite to " + strings.Join(inv.Addrs, ", ") }

// Format keeps the secret out of every verb.
func (inv Invite) Format(f fmt.State, _ rune) { io.WriteString(f, inv.String()) }

// IsInvite reports whether s looks like an invite token, as opposed to an
// address.
func IsInvite(s string) bool { return strings.HasPrefix(s, invitePrefix) }

// ParseInvite reads what Token writes. Its errors wrap ErrInvite and show
// nothing of the token.
func ParseInvite(s string) (Invite, error) {
	bad := func(format string, args ...any) (Invite, error) {
		return Invite{}, fmt.Errorf("%w: %s", ErrInvite, fmt.Sprintf(format, args...))
	}
	s = strings.TrimSpace(s)
	digits, ok := strings.CutPrefix(s, invitePrefix)
	if !ok {
		return bad("it does not begin with %q: 'zorilla invite' prints one", invitePrefix)
	}
	if len(s) > maxInvite {
		return bad("%d characters, at most %d", len(s), maxInvite)
	}
	if bad1 := strings.Trim(digits, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"); bad1 != "" {
		return bad("it holds %.20q: copy it again", bad1)
	}
	// A cut may leave a last digit that stands for no whole byte.
	b, err := base64.RawURLEncoding.DecodeString(digits[:len(digits)-boolInt(len(digits)%4 == 1)])
	if err != nil {
		return bad("not base64: copy it again")
	}
	want := lengthSize + sumSize
	if len(b) >= lengthSize {
		want += int(binary.BigEndian.Uint16(b))
	}
	total := len(invitePrefix) + base64.RawURLEncoding.EncodedLen(want)
	switch {
	case total > maxInvite:
		return bad("its length is wrong: copy it again")
	case len(b) < want:
		return bad("it is cut off after %d of %d characters: copy all of it", len(s), total)
	case len(s) > total:
		return bad("%d characters too many: copy it again", len(s)-total)
	}
	body, ok := checkSum(b)
	if !ok {
		return bad("its checksum does not match: copy it again")
	}
	return decodeInvite(body[lengthSize:])
}

func decodeInvite(body []byte) (Invite, error) {
	var w wireInvite
	if err := codec.Unmarshal(body, &w); err != nil {
		return Invite{}, fmt.Errorf("%w: %w", ErrInvite, err)
	}
	if len(w.Secret) != secretSize {
		return Invite{}, fmt.Errorf("%w: a secret of %d bytes, want %d", ErrInvite, len(w.Secret), secretSize)
	}
	if len(w.Addrs) > maxInviteAddrs {
		return Invite{}, fmt.Errorf("%w: %d addresses, at most %d", ErrInvite, len(w.Addrs), maxInviteAddrs)
	}
	for _, a := range w.Addrs {
		if err := checkAddr(a); err != nil {
			return Invite{}, fmt.Errorf("%w: %w", ErrInvite, err)
		}
	}
	return Invite{Secret: Secret{hide([secretSize]byte(w.Secret))}, Addrs: w.Addrs}, nil
}

// checkAddr accepts host:port with a port that is not 0 and a host that is an
// IP address or could be a name.
func checkAddr(a string) error {
	if len(a) > 300 {
		return fmt.Errorf("address %.40q: too long", a)
	}
	host, port, err := net.SplitHostPort(a)
	if err != nil {
		return fmt.Errorf("address %.80q: want HOST:PORT", a)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("address %.80q: want a port from 1 to 65535", a)
	}
	if host == "" || strings.Trim(host, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._:%") != "" {
		return fmt.Errorf("address %.80q: want HOST:PORT", a)
	}
	return nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
