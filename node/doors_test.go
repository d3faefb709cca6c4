package node

import (
	"bytes"
	stdlog "log"
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
