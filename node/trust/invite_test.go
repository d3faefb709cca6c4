package trust

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"zorilla/internal/codec"
)

func TestInvite(t *testing.T) {
	inv := Invite{Secret: testSecret(t, 5), Addrs: []string{"192.168.1.20:5444", "[fe80::1]:5444", "node.example.org:1"}}
	token := inv.Token()
	if !IsInvite(token) || strings.ContainsAny(token, " \n=+/") {
		t.Fatalf("token %q", token)
	}
	got, err := ParseInvite(" " + token + "\n")
	if err != nil || !got.Secret.Equal(inv.Secret) || !slices.Equal(got.Addrs, inv.Addrs) {
		t.Fatalf("got %v, %v", got, err)
	}
	few := Invite{Secret: inv.Secret, Addrs: append(slices.Repeat([]string{"10.0.0.1:5444"}, 40), "junk")}
	if got, err := ParseInvite(few.Token()); err != nil || len(got.Addrs) != maxInviteAddrs {
		t.Fatalf("many addresses: %v, %v", got, err)
	}
}

func TestDamagedInvites(t *testing.T) {
	token := Invite{Secret: testSecret(t, 5), Addrs: []string{"192.168.1.20:5444"}}.Token()
	for n := len(invitePrefix); n < len(token); n++ {
		_, err := ParseInvite(token[:n])
		if !errors.Is(err, ErrInvite) || !strings.Contains(err.Error(), "cut off") {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	for i := len(invitePrefix); i < len(token); i++ {
		c := byte('A')
		if token[i] == c {
			c = 'Q'
		}
		if _, err := ParseInvite(token[:i] + string(c) + token[i+1:]); err == nil && i < len(token)-1 { // the last digit has unused bits
			t.Fatalf("mistyped at %d: accepted", i)
		}
	}
	for _, bad := range []string{"", "zor1", "zor2.abc", "zor1." + strings.Repeat("A", maxInvite), "zor1.a b", "zor1.äöü", token + "A", token + "AAAAAAAA", token[5:]} {
		if _, err := ParseInvite(bad); !errors.Is(err, ErrInvite) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// craft seals any value as Token would.
func craft(v any) string {
	body := codec.MustMarshal(v)
	b := append(binary.BigEndian.AppendUint16(nil, uint16(len(body))), body...)
	return invitePrefix + base64.RawURLEncoding.EncodeToString(addSum(b))
}

func TestHostileInvites(t *testing.T) {
	key := make([]byte, secretSize)
	for name, v := range map[string]any{
		"no map":         7,
		"no secret":      wireInvite{},
		"short secret":   wireInvite{Secret: key[1:]},
		"many addresses": wireInvite{Secret: key, Addrs: slices.Repeat([]string{"10.0.0.1:1"}, maxInviteAddrs+1)},
		"port 0":         wireInvite{Secret: key, Addrs: []string{"10.0.0.1:0"}},
		"port too high":  wireInvite{Secret: key, Addrs: []string{"10.0.0.1:65536"}},
		"no port":        wireInvite{Secret: key, Addrs: []string{"10.0.0.1"}},
		"no host":        wireInvite{Secret: key, Addrs: []string{":5444"}},
		"escape codes":   wireInvite{Secret: key, Addrs: []string{"\x1b[31mred:5444"}},
		"long":           wireInvite{Secret: key, Addrs: []string{strings.Repeat("a", 400) + ":5444"}},
	} {
		if _, err := ParseInvite(craft(v)); !errors.Is(err, ErrInvite) {
			t.Errorf("%s: %v", name, err)
		} else if strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("%s: error passes control characters: %q", name, err)
		}
	}
}

func FuzzParseInvite(f *testing.F) {
	f.Add(Invite{Secret: testSecret(f, 5), Addrs: []string{"192.168.1.20:5444"}}.Token())
	f.Add(Invite{Secret: testSecret(f, 6)}.Token())
	f.Add(craft(wireInvite{Secret: make([]byte, 32), Addrs: []string{"a:0"}}))
	f.Add("zor1.")
	f.Fuzz(func(t *testing.T, s string) {
		inv, err := ParseInvite(s)
		if err != nil {
			if !errors.Is(err, ErrInvite) {
				t.Fatalf("%v does not wrap ErrInvite", err)
			}
			return
		}
		again, err := ParseInvite(inv.Token())
		if err != nil || !again.Secret.Equal(inv.Secret) || fmt.Sprint(again.Addrs) != fmt.Sprint(inv.Addrs) {
			t.Fatalf("%v changes to %v, %v", inv, again, err)
		}
	})
}
