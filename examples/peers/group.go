package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

const (
	dialTimeout = 2 * time.Second
	// silence is after which a peer counts as lost whose machine does not say so. Both ends
	// of a connection must be heard more often.
	silence = 10 * time.Second
	// lookEvery is how soon a changed epoch is seen, and lookAgain how often those are looked
	// for that are not found: who was just started does not listen yet.
	lookEvery = 100 * time.Millisecond
	lookAgain = time.Second
	// gap is how many ports in a row have nobody before the rest is not looked at.
	gap = 8
)

// hello is the first thing that both ends of a connection say.
type hello struct {
	Job     string
	Rank    int
	Attempt int
}

// Conn is a connection to another rank. Send may be called from any goroutine, Receive
// from one.
type Conn struct {
	Rank, Attempt int
	Addr          string
	conn          net.Conn
	read          *json.Decoder
	mu            sync.Mutex // of writing
}

// Send sends a message.
func (c *Conn) Send(m any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	_, err = c.conn.Write(append(b, '\n'))
	return err
}

// Receive waits for a message. After an error the peer is lost.
func (c *Conn) Receive(m any) error {
	if err := c.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	return c.read.Decode(m)
}

// Close closes the connection, so that both ends notice.
func (c *Conn) Close() { _ = c.conn.Close() }

// Group is the ranks of a job as one of them sees them.
type Group struct {
	place  Place
	listen net.Listener

	mu    sync.Mutex
	known map[int]*Conn // that this rank has made, by rank
	all   map[*Conn]bool
	over  bool
}

// Join has this rank be found. accept is called, in a goroutine, with each connection that
// another one makes, and may use it until it returns.
func Join(p Place, accept func(*Conn)) (*Group, error) {
	g := &Group{place: p, known: map[int]*Conn{}, all: map[*Conn]bool{}}
	for _, port := range p.ports() {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		g.listen = l
		go g.serve(accept)
		return g, nil
	}
	return nil, errors.New("no port of this job is free here")
}

// Addr is where this rank listens.
func (g *Group) Addr() string { return g.listen.Addr().String() }

// Leave ends all connections.
func (g *Group) Leave() {
	_ = g.listen.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	for c := range g.all {
		c.Close()
	}
}

func (g *Group) serve(accept func(*Conn)) {
	for {
		conn, err := g.listen.Accept()
		if err != nil {
			return
		}
		go func() {
			if c, err := g.greet(conn); err == nil {
				accept(c)
				g.drop(c)
			}
		}()
	}
}

// greet finds out who is at the other end, and refuses strangers.
func (g *Group) greet(conn net.Conn) (*Conn, error) {
	c := &Conn{conn: conn, read: json.NewDecoder(conn), Addr: conn.RemoteAddr().String()}
	var h hello
	err := c.Send(hello{g.place.Job, g.place.Rank, g.place.Attempt})
	if err == nil {
		err = c.conn.SetReadDeadline(time.Now().Add(dialTimeout))
	}
	if err == nil {
		err = c.read.Decode(&h)
	}
	if err == nil && (h.Job != g.place.Job || h.Rank < 0 || h.Rank >= g.place.Max || h.Rank == g.place.Rank) {
		err = fmt.Errorf("rank %d of %q is no peer", h.Rank, h.Job)
	}
	c.Rank, c.Attempt = h.Rank, h.Attempt
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || g.over {
		conn.Close()
		return nil, errors.Join(err, net.ErrClosed)
	}
	g.all[c] = true
	return c, nil
}

func (g *Group) drop(c *Conn) {
	c.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, c)
	if g.known[c.Rank] == c {
		delete(g.known, c.Rank)
	}
}

// Watch looks for the other ranks until ctx ends: at once, whenever the host file changes,
// and for those that should be there and are not. use is called, in a goroutine, with each
// connection that it makes, and may use it until it returns.
func (g *Group) Watch(ctx context.Context, use func(*Conn)) {
	var epoch int64 = -1
	var looked time.Time
	for tick := time.NewTicker(lookEvery); ; {
		g.mu.Lock()
		complete := len(g.known) == g.place.Max-1
		g.mu.Unlock()
		now := g.place.Epoch() // before the hosts: what is read of them then is at least as new
		if !complete && (now != epoch || time.Since(looked) > lookAgain) {
			epoch, looked = now, time.Now()
			g.look(ctx, use)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// look tries all ports of all hosts at which a rank may be that is not known.
func (g *Group) look(ctx context.Context, use func(*Conn)) {
	var all sync.WaitGroup
	for _, host := range g.place.Hosts() {
		all.Go(func() {
			for i, missed := 0, 0; i < len(g.place.ports()) && missed < gap && ctx.Err() == nil; i++ {
				if g.try(net.JoinHostPort(host, strconv.Itoa(g.place.ports()[i])), use) {
					missed = 0
				} else {
					missed++
				}
			}
		})
	}
	all.Wait()
}

// try reports whether somebody listens at an address. Who is known already, at this or
// another attempt that lives, is not taken again.
func (g *Group) try(addr string, use func(*Conn)) bool {
	g.mu.Lock()
	for _, c := range g.known {
		if c.Addr == addr {
			g.mu.Unlock()
			return true
		}
	}
	g.mu.Unlock()
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return false
	}
	c, err := g.greet(conn)
	if err != nil {
		return true
	}
	g.mu.Lock()
	known := g.known[c.Rank]
	if known == nil || known.Attempt < c.Attempt {
		g.known[c.Rank] = c
	}
	mine := g.known[c.Rank] == c
	g.mu.Unlock()
	if !mine {
		g.drop(c)
		return true
	}
	if known != nil {
		known.Close() // its place was taken
	}
	go func() {
		use(c)
		g.drop(c)
	}()
	return true
}
