package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"zorilla/node/api"
	"zorilla/node/trust"
	"zorilla/transfer"
)

// memberOf returns what a member may ask of a node: the caller speaks with the
// key of another node of the same network.
func memberOf(t *testing.T, as, to *realNode) (*api.Client, *http.Client, string) {
	t.Helper()
	id, err := trust.LoadIdentity(filepath.Join(as.state, "identity.key"))
	if err != nil {
		t.Fatal(err)
	}
	secret, err := trust.LoadSecret(filepath.Join(as.state, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	network, err := trust.NewNetwork(secret)
	if err != nil {
		t.Fatal(err)
	}
	creds, err := trust.NewCredentials(id, network)
	if err != nil {
		t.Fatal(err)
	}
	info, err := to.client.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	tr := &http.Transport{Protocols: protocols, ForceAttemptHTTP2: true, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := tls.Dialer{Config: creds.ClientTLS(info.ID, "h2")}
		return d.DialContext(ctx, "tcp", to.listen)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	base := "https://" + string(info.ID) + "/api"
	return api.NewClient(tr, base), &http.Client{Transport: tr}, base
}

// A member may ask how a node is and have it measure, and not much else.
func TestWhatMembersMayAsk(t *testing.T) {
	t.Parallel()
	network := realNet(t, 3, "--slots", "1")
	asks, plain, base := memberOf(t, network.nodes[2], network.nodes[1])
	var ids []string
	for k := 1; k <= 3; k++ {
		info, err := network.nodes[k].client.Node(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(info.ID))
	}
	info, err := asks.Node(t.Context())
	if err != nil || string(info.ID) != ids[0] || len(info.Links) != 2 || info.Told.IsZero() {
		t.Errorf("the node says of itself %+v, %v", info, err)
	}
	if info.StateDir != "" || len(info.Traffic) != 0 {
		t.Errorf("another node learns of %q and %d counters", info.StateDir, len(info.Traffic))
	}
	if m, err := asks.Measure(t.Context(), "self", ids[2], 2); err != nil || m.Sent != 2 || m.Min <= 0 {
		t.Errorf("it measures %+v, %v", m, err)
	}
	for m := range reflect.TypeFor[api.Service]().Methods() {
		err := askAnything(t, asks, m.Name)
		_, may := reflect.TypeFor[api.Peer]().MethodByName(m.Name)
		refused := errors.Is(err, api.ErrRefused)
		if m.Name == "Enter" { // what has no length is not even read
			refused = err != nil && strings.Contains(err.Error(), http.StatusText(http.StatusLengthRequired))
		}
		if refused == may {
			t.Errorf("a member asks for %s: %v, want refused: %t", m.Name, err, !may)
		}
	}

	absent := "z" + strings.Repeat("a", 26)
	for _, c := range []struct {
		from, to, pings string
		want            int
	}{
		{ids[1], ids[2], "1", 400}, // from another node
		{"node1", ids[2], "1", 400},
		{"self", "node3", "1", 400}, // whole IDs only
		{"self", ids[2][:8], "1", 400},
		{"self", ids[0], "1", 400}, // itself
		{"self", "self", "1", 400},
		{"self", "", "1", 400},
		{"self", "../" + ids[2], "1", 400},
		{"self", strings.Repeat("z", 5000), "1", 400},
		{"self", absent, "1", 404},
		{"self", ids[2], "101", 400},
		{"self", ids[2], "-1", 400},
		{"self", ids[2], "1e3", 400},
	} {
		q := url.Values{"from": {c.from}, "to": {c.to}, "pings": {c.pings}}
		resp, err := plain.Get(base + "/v1/rtt?" + q.Encode())
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("from %.40q to %.40q, %s pings: %d, want %d", c.from, c.to, c.pings, resp.StatusCode, c.want)
		}
	}
}

// askAnything calls a method of a service with arguments that the client lets
// through, and returns the error. Changes, which has none, is refused if it
// ends at once.
func askAnything(t *testing.T, s api.Service, method string) error {
	f := reflect.ValueOf(s).MethodByName(method)
	var args []reflect.Value
	for in := range f.Type().Ins() {
		switch in {
		case reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(t.Context()))
		case reflect.TypeFor[string]():
			args = append(args, reflect.ValueOf("zzzzz"))
		case reflect.TypeFor[[]transfer.Hash]():
			args = append(args, reflect.ValueOf([]transfer.Hash{transfer.HashOf(nil)}))
		case reflect.TypeFor[transfer.Hash]():
			args = append(args, reflect.ValueOf(transfer.HashOf(nil)))
		case reflect.TypeFor[io.Reader]():
			args = append(args, reflect.ValueOf(strings.NewReader("")))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	results := f.Call(args)
	last := results[len(results)-1].Interface()
	if changed, ok := last.(<-chan struct{}); ok {
		select {
		case <-changed:
			return api.ErrRefused
		case <-time.After(3 * time.Second):
			return nil
		}
	}
	err, _ := last.(error)
	return err
}

// One measurement for one member at a time.
func TestMembersCannotMakeANodePingOnAndOn(t *testing.T) {
	t.Parallel()
	network := realNet(t, 2, "--slots", "1")
	asks, _, _ := memberOf(t, network.nodes[2], network.nodes[1])
	to, err := network.nodes[2].client.Node(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := asks.Measure(ctx, "self", string(to.ID), api.MaxPings)
			ended <- err
		}()
	}
	if err := <-ended; !errors.Is(err, api.ErrRefused) {
		t.Errorf("one of two ended with %v, want a refusal", err)
	}
	if _, err := network.nodes[1].client.Measure(t.Context(), "self", string(to.ID), 1); err != nil {
		t.Errorf("the node's own client: %v", err)
	}
	cancel() // who does not wait for the answer any more is not measured for
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the other ended with %v", err)
	}
	if err := network.nodes[1].until("measure again", func(ctx context.Context) bool {
		_, err := asks.Measure(ctx, "self", string(to.ID), 1)
		return err == nil
	}); err != nil {
		t.Error(err)
	}
}
