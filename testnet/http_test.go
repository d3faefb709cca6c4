package testnet

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// selfSigned makes a certificate that is valid on the date of a bubble.
func selfSigned(t *testing.T, ip net.IP) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		IPAddresses:  []net.IP{ip},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// serveHTTP2 serves at b and returns a client at a. Everything ends with the test.
func serveHTTP2(t *testing.T, a, b *Host, h http.Handler) *http.Client {
	t.Helper()
	cert := selfSigned(t, b.IP().AsSlice())
	server := &http.Server{Handler: h, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}}
	l := listen(t, b, 443)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return a.Dial(ctx, address)
		},
		TLSClientConfig:   &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		serving.Wait()
		time.Sleep(time.Minute) // past the timers of net/http
	})
	return &http.Client{Transport: transport}
}

func TestHTTP2OverTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := duo(Config{})
		body := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB, more than any window
		client := serveHTTP2(t, a, b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				http.Error(w, r.Proto, http.StatusHTTPVersionNotSupported)
				return
			}
			got, err := io.ReadAll(r.Body)
			if err != nil || !bytes.Equal(got, body) {
				http.Error(w, fmt.Sprintf("%d bytes, %v", len(got), err), http.StatusBadRequest)
				return
			}
			time.Sleep(time.Hour)
			w.Write(got)
		}))
		start := time.Now()
		res, err := client.Post("https://"+b.Addr(443), "text/plain", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || !bytes.Equal(got, body) {
			t.Errorf("%s, %d bytes, %v", res.Status, len(got), err)
		}
		if took := time.Since(start); took < time.Hour || took > time.Hour+time.Second {
			t.Errorf("took %v, want little more than an hour", took)
		}
	})
}

func TestHTTP2ThroughPartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, a, b := duo(Config{})
		client := serveHTTP2(t, a, b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(w, r.Body)
		}))
		get := func(timeout time.Duration) (string, error) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, "POST", "https://"+b.Addr(443), bytes.NewReader([]byte("echo")))
			res, err := client.Do(req)
			if err != nil {
				return "", err
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			return string(got), err
		}
		if got, err := get(time.Second); got != "echo" || err != nil {
			t.Fatalf("before: %q, %v", got, err)
		}
		n.Partition([]*Host{a})
		if _, err := get(30 * time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cut off: %v", err)
		}
		n.Heal()
		if got, err := get(time.Second); got != "echo" || err != nil {
			t.Errorf("healed: %q, %v", got, err)
		}
	})
}

func TestHundredConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(Config{})
		hub := n.Host("10.0.0.1")
		l := listen(t, hub, 80)
		var all sync.WaitGroup
		all.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				all.Go(func() {
					defer c.Close()
					io.Copy(c, c)
				})
			}
		})
		var clients sync.WaitGroup
		for i := range 100 {
			h := n.Host(fmt.Sprintf("10.0.1.%d", i+1))
			clients.Go(func() {
				c, err := h.Dial(t.Context(), hub.Addr(80))
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(time.Minute))
				buf := make([]byte, 1000)
				for k := range 20 {
					want := bytes.Repeat([]byte{byte(i), byte(k)}, 500)
					c.Write(want)
					if _, err := io.ReadFull(c, buf); err != nil || !bytes.Equal(buf, want) {
						t.Errorf("connection %d, round %d: %v", i, k, err)
						return
					}
				}
			})
		}
		clients.Wait()
		l.Close()
		all.Wait()
		if c := n.Counters(); c.Streams.Count != 100 || c.Streams.Bytes != 100*20*1000*2 {
			t.Errorf("counters: %+v", c)
		}
	})
}

// TestRealTime shows that nothing depends on the bubble.
func TestRealTime(t *testing.T) {
	_, a, b := duo(Config{})
	near, far := connect(t, a, b)
	near.SetReadDeadline(time.Now().Add(time.Millisecond))
	if _, err := readString(near); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	near.Write([]byte("x"))
	if got, err := readString(far); got != "x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
