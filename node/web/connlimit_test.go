package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"zorilla/jobs"
)

// Whoever has no cookie can hold 64 connections, and keeps no owner out.
func TestGuestsOfThePageAreFew(t *testing.T) {
	f := scene()
	page := newPage(t, f)
	srv := httptest.NewUnstartedServer(page)
	srv.Listener, srv.Config.ConnContext = page.Listen(srv.Listener), page.ConnContext
	srv.Start()
	defer srv.Close()
	defer srv.CloseClientConnections()

	owner := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	look := func(path string, cookie *http.Cookie) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if cookie != nil {
			req.AddCookie(cookie)
		}
		return owner.Do(req)
	}
	res, err := look("/?token="+testToken, nil)
	if err != nil {
		t.Fatal(err)
	}
	cookie := res.Cookies()[0]
	res.Body.Close()
	events, err := look("/events", cookie)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()

	var conns []net.Conn
	for range 5 * maxUnproven {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprint(c, "GET / HTTP/1.1\r\nX: ")
		conns = append(conns, c)
	}
	for i, c := range conns[:4*maxUnproven] { // the oldest had to go
		c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(c); err != nil && err.(net.Error).Timeout() {
			t.Fatalf("connection %d of %d is still there", i, len(conns))
		}
	}
	if n := page.connLimit.Len(); n > maxUnproven {
		t.Errorf("%d connections are there", n)
	}
	if res, err := look("/", cookie); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("the owner sees %v, %v", res, err)
	}
	f.put(sample("later@zaaaa", jobs.Running, f.nodes, 1, time.Minute, "x"))
	for stream, line := bufio.NewReader(events.Body), ""; !strings.Contains(line, "later@zaaaa"); {
		if line, err = stream.ReadString('\n'); err != nil {
			t.Fatalf("a page that was open: %v", err)
		}
	}
}
