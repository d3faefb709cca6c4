package bench

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// BenchmarkConnections is the processor time of this process, not how long it takes, to move 512
// answers of a megabyte over TLS on loopback, at most four at a time: over HTTP/1.1, HTTP/2, and
// as nothing but streams of bytes. Nothing is hashed or kept.
func BenchmarkConnections(b *testing.B) {
	const answers, size, together = 512, 1 << 20, 4
	cert, err := certificate()
	if err != nil {
		b.Fatal(err)
	}
	answer := make([]byte, size)
	_, _ = random().Read(answer) // never fails
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	srv := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(size))
			_, _ = w.Write(answer) // who asks notices
		}),
	}
	go srv.ServeTLS(l, "", "")
	defer srv.Close()
	// all has each of some goroutines take its part of the answers.
	all := func(take func(n int) error) error {
		var wg sync.WaitGroup
		errs := make([]error, together)
		for i := range errs {
			wg.Go(func() { errs[i] = take(answers / together) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	over := func(http2 bool) func() error {
		return func() error {
			protocols := new(http.Protocols)
			protocols.SetHTTP1(!http2)
			protocols.SetHTTP2(http2)
			tr := &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: together, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
				HTTP2: &http.HTTP2Config{MaxReadFrameSize: 4*16<<10 - 9}} // as between nodes
			defer tr.CloseIdleConnections()
			return all(func(n int) error {
				buf := make([]byte, size)
				for range n {
					resp, err := (&http.Client{Transport: tr}).Get("https://" + l.Addr().String())
					if err != nil {
						return err
					}
					_, err = io.ReadFull(resp.Body, buf)
					_, rest := io.Copy(io.Discard, resp.Body)
					if err := errors.Join(err, rest, resp.Body.Close()); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	streams := func() error {
		return all(func(n int) error {
			return copyPlain(cert, n*size, answer)
		})
	}
	compete(b, 5, rival{"http1", burned(over(false))}, rival{"http2", burned(over(true))}, rival{"streams", burned(streams)})
}

// burned is timed by the processor time of this process.
func burned(f func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		before := ownCPU()
		err := f()
		return ownCPU() - before, err
	}
}

// copyPlain moves so many bytes over a connection of TLS, in pieces like one.
func copyPlain(cert tls.Certificate, total int, piece []byte) error {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		return err
	}
	defer l.Close()
	sent := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			sent <- err
			return
		}
		for n := 0; n < total && err == nil; n += len(piece) {
			_, err = c.Write(piece)
		}
		sent <- errors.Join(err, c.Close())
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return errors.Join(err, l.Close(), <-sent)
	}
	defer c.Close()
	buf := make([]byte, len(piece))
	for n := 0; n < total; n += len(buf) {
		if _, err := io.ReadFull(c, buf); err != nil {
			return err
		}
	}
	return <-sent
}
