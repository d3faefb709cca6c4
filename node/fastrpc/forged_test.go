package fastrpc

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"zorilla/node/trust"
	"zorilla/vicinity"
)

// A request that was recorded is not done again, however late: its key is forgotten before its number is.
func TestRecordedRequests(t *testing.T) {
	for _, tells := range []bool{true, false} { // new keys meanwhile
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			p.near.Learn(p.farID, p.far.Key())
			time.Sleep(keyLasts - 1) // the last moment for the key
			p.ask(t, "/early", "once")
			recorded := p.packets[0]
			for range 20 {
				time.Sleep(keyLasts / 5)
				if tells {
					p.far.Key()
				}
				p.far.Receive(p.nearID, recorded)
				synctest.Wait()
			}
			p.once(t)
			if s := p.far.Stats(); s.Received != 1 || s.Left == 0 || s.Late == 0 || s.Left+s.Late != 20 {
				t.Errorf("counted %+v", s)
			}
			if len(p.far.own) > 4 {
				t.Errorf("%d keys are kept", len(p.far.own))
			}
			time.Sleep(2 * lasts)
		})
	}
}

// Packets that were changed, or are not by the member that they seem to be from, do nothing.
func TestForgedPackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.carry = func(vicinity.ID, []byte) []after { return nil }
		p.near.Learn(p.farID, p.far.Key())
		p.ask(t, "/early", "words")
		clear(p.handled)
		p.far.seen = seen{senders: map[vicinity.ID]*sender{}}
		request := p.packets[0]
		for i := range request {
			forged := bytes.Clone(request)
			forged[i] ^= 1
			p.far.Receive(p.nearID, forged)
			p.far.Receive(p.nearID, request[:i])
		}
		p.far.Receive(identity(t, 3).ID(), request)
		p.far.Receive(identity(t, 3).ID(), append(append([]byte{kindRequest}, identity(t, 3).Sign(domain, request[1+trust.SignatureSize:])...), request[1+trust.SignatureSize:]...)) // another's words
		p.near.Receive(p.nearID, request)                                                                                                                                            // which it is not for
		synctest.Wait()
		if len(p.handled) > 0 {
			t.Errorf("done: %v", p.handled)
		}
		if s := p.far.Stats(); s.Forged+s.Malformed != int64(2*len(request)+2) || s.Received > 0 {
			t.Errorf("of %d: counted %+v", 2*len(request)+2, s)
		}
		if s := p.near.Stats(); s.Forged != 1 {
			t.Errorf("whom it is not for counted %+v", s)
		}
		p.far.Receive(p.nearID, request)
		synctest.Wait()
		if p.handled["words"] != 1 {
			t.Error("the request itself is refused")
		}
		time.Sleep(2 * lasts)
	})
}

// What a member of bad will can send: a request that no node sends does nothing.
func TestRequestsThatNobodySends(t *testing.T) {
	key := bytes.Repeat([]byte{1}, keyLen)
	for name, c := range map[string]struct {
		request
		done int
	}{
		"a good one":     {request{Path: "/early", Body: []byte("a"), Key: key}, 1},
		"another path":   {request{Path: "/other", Body: []byte("a"), Key: key}, 0},
		"a query":        {request{Path: "/early?a", Body: []byte("a"), Key: key}, 0},
		"too long":       {request{Path: "/early", Body: make([]byte, MaxBody+1), Key: key}, 0},
		"a short key":    {request{Path: "/early", Body: []byte("a"), Key: key[1:]}, 0},
		"without a path": {request{Body: []byte("a"), Key: key}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t)
			msg, _, err := seal(p.nearID, p.farID, p.far.Key(), number{1}, c.request)
			if err != nil {
				t.Fatal(err)
			}
			p.far.Receive(p.nearID, append(append([]byte{kindRequest}, p.near.cfg.Sign(domain, msg)...), msg...))
			synctest.Wait()
			if s := p.far.Stats(); len(p.handled) != c.done || s.Received != int64(c.done) || s.Malformed+s.Forged != int64(1-c.done) {
				t.Errorf("%s: done %v, counted %+v", name, p.handled, s)
			}
			if known := p.far.theirs.find(time.Now(), p.nearID) != nil; known != (c.done == 1) {
				t.Errorf("%s: learned a key: %v", name, known)
			}
			time.Sleep(lasts)
		})
	}
}

// An answer that was changed, or is not by whom was asked, is none.
func TestForgedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.near.Learn(p.farID, p.far.Key())
		p.carry = func(to vicinity.ID, packet []byte) []after {
			if to == p.farID {
				return []after{after(rtt / 2)}
			}
			go func() {
				for i := range packet {
					forged := bytes.Clone(packet)
					forged[i] ^= 1
					p.near.Receive(p.farID, forged)
					p.near.Receive(p.farID, packet[:i])
				}
				p.near.Receive(identity(t, 3).ID(), packet)
			}()
			return nil
		}
		if got, took := p.ask(t, "/early", "words"); got != "409 heard words" || took != 3*rtt {
			t.Errorf("got %q after %v", got, took)
		}
		if s := p.near.Stats(); s.Answered > 0 || s.Forged == 0 {
			t.Errorf("counted %+v", s)
		}
		time.Sleep(2 * lasts)
	})
}

// An answer that is none of HTTP is none: the connection's counts.
func TestAnswersThatNobodyGives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.near.Learn(p.farID, p.far.Key())
		p.answer = func(string) (int, string) { return 99, "words" }
		if _, took := p.ask(t, "/early", "a"); took != 3*rtt {
			t.Errorf("taken after %v", took)
		}
		if s := p.near.Stats(); s.Answered != 0 || s.Forged != 1 {
			t.Errorf("counted %+v", s)
		}
		time.Sleep(2 * lasts)
	})
}
