package ports

import (
	"net"
	"strconv"
	"testing"
)

func TestTwoNodesOfAMachine(t *testing.T) {
	var one, two Book
	defer one.Close()
	defer two.Close()
	p := one.Take("a", 23456)
	if p < 23456 || p > Last || one.Take("a", 25000) != p || one.Of("a") != p {
		t.Fatalf("a has %d and then %d", p, one.Of("a"))
	}
	for _, other := range []*Book{&one, &two} {
		if q := other.Take("b", p); q <= p {
			t.Errorf("b has %d, a has %d", q, p)
		}
	}
	one.Free("a")
	one.Free("a")
	if two.Free("b"); two.Take("c", p) != p {
		t.Error("what is free again is not given")
	}
}

func TestPortsInUse(t *testing.T) {
	var b Book
	defer b.Close()
	for _, at := range []string{"127.0.0.1:", "[::1]:", ":"} {
		p := b.Take("x", 21000)
		b.Free("x")
		l, err := net.Listen("tcp", at+strconv.Itoa(p))
		if err != nil {
			t.Logf("%s is not tried: %v", at, err)
			continue
		}
		if q := b.Take("y", p); q == p || q == 0 {
			t.Errorf("%d is given, at which %s listens", q, at)
		}
		b.Free("y")
		l.Close()
	}
}

func TestKept(t *testing.T) {
	var old, b, other Book
	defer b.Close()
	defer other.Close()
	p := old.Take("a", 22222)
	old.Close() // the node ends, its worker goes on
	b.Keep("a", p)
	b.Keep("a", p+1)
	if b.Of("a") != p || other.Take("b", p) == p {
		t.Errorf("a has %d, want %d alone", b.Of("a"), p)
	}
	for _, bad := range []int{0, 22, First - 1, Last + 1, 1 << 20} {
		if b.Keep("bad", bad); b.Of("bad") != 0 {
			t.Errorf("%d is kept", bad)
		}
	}
}

func TestWanted(t *testing.T) {
	var b Book
	defer b.Close()
	for i, want := range []int{-1, 0, First, Last, Last + 1, 1 << 30} {
		if p := b.Take(strconv.Itoa(i), want); p < First || p > Last {
			t.Errorf("want %d: %d", want, p)
		}
	}
	var none *Book
	none.Keep("a", First)
	none.Free("a")
	none.Close()
	if none.Take("a", First) != 0 || none.Of("a") != 0 {
		t.Error("a nil Book gives ports")
	}
}

func BenchmarkTakeAndFree(b *testing.B) {
	var book Book
	defer book.Close()
	for b.Loop() {
		book.Take("a", 24000)
		book.Free("a")
	}
}

// Addresses of nodes are free for both protocols, and not given twice in a row.
func TestAddressesOfNodes(t *testing.T) {
	var a Addresses
	one, err := a.Free("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	host, text, err := net.SplitHostPort(one)
	port, _ := strconv.Atoi(text)
	if err != nil || host != "127.0.0.1" || port < firstOfNodes || port > lastOfNodes {
		t.Fatalf("got %s", one)
	}
	if two, err := a.Free("127.0.0.1"); err != nil || two == one {
		t.Fatalf("then %s, %v", two, err)
	}
	for network, listen := range map[string]func(string) (func() error, error){
		"tcp": func(at string) (func() error, error) {
			l, err := net.Listen("tcp", at)
			if err != nil {
				return nil, err
			}
			return l.Close, nil
		},
		"udp": func(at string) (func() error, error) {
			l, err := net.ListenPacket("udp", at)
			if err != nil {
				return nil, err
			}
			return l.Close, nil
		},
	} {
		// The one that it would give next.
		taken, err := a.Free("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		_ = a.given[len(a.given)-1].Close()
		a.last--
		end, err := listen(taken)
		if err != nil {
			t.Fatalf("%s is not free for %s: %v", taken, network, err)
		}
		if next, err := a.Free("127.0.0.1"); err != nil || next == taken {
			t.Errorf("%s is in use, of %s, and given: %v", next, network, err)
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if none, err := a.Free("192.0.2.1"); err == nil {
		t.Errorf("%s is not of this machine", none)
	}
}

// What is given to one is given to no other, at whatever host, although its node is down.
func TestAddressesOfTwoProcesses(t *testing.T) {
	var one, two Addresses
	given := map[string]bool{}
	for range 300 { // more than they begin apart
		for host, a := range map[string]*Addresses{"127.0.0.1": &one, "127.0.0.2": &two} {
			at, err := a.Free(host)
			if err != nil {
				t.Fatal(err)
			}
			if _, port, _ := net.SplitHostPort(at); given[port] {
				t.Fatalf("port %s is given twice", port)
			} else {
				given[port] = true
			}
		}
	}
}
