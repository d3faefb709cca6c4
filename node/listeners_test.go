package node

import (
	"bytes"
	"context"
	"errors"
	stdlog "log"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestServersTellOnlyOfPanics(t *testing.T) {
	var out bytes.Buffer
	log := stdlog.New(serverLog{zerolog.New(&out).Level(zerolog.InfoLevel)}, "", 0)
	log.Print("timeout waiting for PING response")
	if out.Len() > 0 {
		t.Errorf("a peer that went away is logged: %s", out.String())
	}
	log.Print("http2: panic serving 10.0.0.1:5444: oops")
	if !strings.Contains(out.String(), `"level":"error"`) {
		t.Errorf("a panic is logged as %q", out.String())
	}
}

// A server whose listener somebody closes leaves it to them to say why.
func TestServersDoNotHideWhyAListenerWasClosed(t *testing.T) {
	for range 50 {
		g, why := newGroup(t.Context()), errors.New("why")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serve(g, server(http.NotFoundHandler(), zerolog.Nop()), l)
		g.run(func(context.Context) error {
			l.Close()
			runtime.Gosched()
			return why
		})
		<-g.ctx.Done()
		if err := g.stop(nil); err != why {
			t.Fatalf("got %v", err)
		}
	}
}
