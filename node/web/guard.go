package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"zorilla/internal/connlimit"
)

// policy lets the page load its own files, talk to its own node and send forms to it, nothing
// else; trusted types make the browser refuse every script that would parse
// HTML from a string.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guard lets requests through that may see the page.
type guard struct {
	token   string
	reader  string   // the token of who may only look
	hosts   []string // further values of the Host header
	pages   *pages
	guarded http.Handler
	acts    *http.ServeMux // what changes something; nil = nobody can
	api     http.Handler   // for the command line; it asks for the token itself; nil = not here
}

// ServeHTTP answers a request that may see the page, and tells the others why not.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")

	switch {
	case g.api != nil && strings.HasPrefix(r.URL.Path, "/v1/"):
		g.client(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !g.isAct(r):
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "this address only shows: use GET or HEAD", http.StatusMethodNotAllowed)
	case !g.ownHost(r):
		http.Error(w, "this page answers only under its own address, or as localhost; zorilla web prints it", http.StatusForbidden)
	case foreign(r):
		http.Error(w, "this page answers only to itself, not to a link or script of another page; type or paste its address", http.StatusForbidden)
	case r.Method == http.MethodPost:
		g.act(w, r)
	case strings.HasPrefix(r.URL.Path, "/assets/"):
		g.guarded.ServeHTTP(w, r)
	case r.URL.Path == "/" && r.URL.Query().Has("token"):
		g.signIn(w, r)
	case g.signedIn(r, g.token):
		known(r)
		if g.acts != nil {
			r = r.WithContext(context.WithValue(r.Context(), mayKey{}, true))
		}
		g.guarded.ServeHTTP(w, r)
	case g.signedIn(r, g.reader):
		known(r)
		g.guarded.ServeHTTP(w, r)
	default:
		g.wantToken(w)
	}
}

// client serves a command line that was given the address of the page, as the node's socket
// would. It has the owner's token in a header; no browser is served here, whatever it sends.
func (g *guard) client(w http.ResponseWriter, r *http.Request) {
	if !g.ownHost(r) || r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		http.Error(w, "this is for the command line, under the page's own address: zorilla web prints it", http.StatusForbidden)
		return
	}
	if same(r.Header.Get("Authorization"), "Bearer "+g.token) {
		known(r)
	}
	g.api.ServeHTTP(w, r)
}

// isAct reports whether a request asks for a change that there is.
func (g *guard) isAct(r *http.Request) bool {
	if g.acts == nil || r.Method != http.MethodPost {
		return false
	}
	_, pattern := g.acts.Handler(r)
	return pattern != ""
}

// act lets a change be made if it comes from the page itself, of who opened it with the
// owner's token: with that cookie, and the key of a session, which only scripts of this very
// origin have and no form of another page can send.
func (g *guard) act(w http.ResponseWriter, r *http.Request) {
	switch {
	case !g.signedIn(r, g.token):
		http.Error(w, "only who opened this page with the address of 'zorilla web' may change anything", http.StatusForbidden)
	case len(r.Header["Origin"]) != 1: // browsers send it with each POST; whose it is was looked at
		http.Error(w, "changes are made by this page alone", http.StatusForbidden)
	case !opens(r.Header.Get(keyHeader), g.token, time.Now()):
		http.Error(w, "this page's session is over: open the address again that 'zorilla web' prints", http.StatusForbidden)
	default:
		known(r)
		g.acts.ServeHTTP(w, r)
	}
}

// ownHost reports whether the Host header names this listener: one of the configured hosts,
// the address the connection came in at, or a loopback name. The latter may have any port:
// that of a tunnel's near end. A page elsewhere cannot have its own name led here all the same:
// these are no names that a name server is asked for.
func (g *guard) ownHost(r *http.Request) bool {
	if slices.ContainsFunc(g.hosts, func(s string) bool { return strings.EqualFold(s, r.Host) }) {
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	ownIP, ownPort, err := net.SplitHostPort(local.String())
	if err != nil {
		return false
	}
	name, port, err := net.SplitHostPort(r.Host)
	if err != nil { // browsers leave out port 80
		name, port = strings.Trim(r.Host, "[]"), "80"
	}
	switch strings.ToLower(name) {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	ip, own := net.ParseIP(name), net.ParseIP(ownIP)
	return port == ownPort && ip != nil && own != nil && ip.Equal(own)
}

// foreign reports whether a browser says that another page made the request.
// "same-site" is foreign too: another port of localhost is another program.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return true
	}
	origin, ok := r.Header["Origin"]
	if !ok {
		return false
	}
	return len(origin) != 1 || !strings.EqualFold(origin[0], "http://"+r.Host) && !strings.EqualFold(origin[0], "https://"+r.Host)
}

// cookie returns the name and the value of the cookie that lets who has a token in. The name
// holds the port, because browsers send cookies to all ports of a host and a
// machine may run several nodes. The value is not the token itself, so that
// who catches it there can look at the page and do nothing else.
func (g *guard) cookie(r *http.Request, token string) (name, value string) {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "80"
	}
	sum := sha256.Sum256([]byte("zorilla page " + port + " " + token))
	return "zorilla-" + port, hex.EncodeToString(sum[:])
}

func (g *guard) signedIn(r *http.Request, token string) bool {
	name, want := g.cookie(r, token)
	return slices.ContainsFunc(r.CookiesNamed(name), func(c *http.Cookie) bool { return same(c.Value, want) })
}

// same compares in a time that does not depend on where a and b differ, nor on
// their lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func (g *guard) signIn(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	owner, reader := same(token, g.token), same(token, g.reader)
	if !owner && !reader {
		g.wantToken(w)
		return
	}
	known(r)
	name, value := g.cookie(r, token)
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, MaxAge: int(sessionLength / time.Second)})
	key := &http.Cookie{Name: name + "-key", Path: "/", SameSite: http.SameSiteStrictMode, MaxAge: -1}
	if owner && g.acts != nil { // a script takes it at once, and keeps it where no other port sees it
		key.Value, key.MaxAge = newKey(g.token, time.Now()), int(keyDelivery/time.Second)
	}
	http.SetCookie(w, key)
	// The next address in the bar and the history holds no secret.
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (g *guard) wantToken(w http.ResponseWriter) {
	w.Header().Set("WWW-Authenticate", `Zorilla realm="zorilla web"`)
	g.pages.render(w, http.StatusUnauthorized, "message", page{Title: "Who is there?", View: message{
		Title:   "Who is there?",
		Text:    "This page shows itself to the owner of the node only. Run this on the node’s machine and open the address that it prints:",
		Command: "zorilla web",
	}})
}

// maxUnproven bounds the connections of whoever has not shown the cookie: a
// browser opens six. The oldest has to go if there are more.
const maxUnproven = 64

// connKey marks the connection of a request.
type connKey struct{}

// known says that the connection of a request belongs to the owner.
func known(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
		c.limited.Done()
	}
}

type limitedListener struct {
	net.Listener
	limit *connlimit.Limiter
}

// Accept implements net.Listener.
func (l limitedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// Everybody comes from one machine: a count for each address tells nothing.
	g := &limitedConn{Conn: c}
	g.limited = l.limit.Add(netip.Addr{}, func() { c.Close() })
	return g, nil
}

type limitedConn struct {
	net.Conn
	limited *connlimit.Conn
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.limited.Done()
	return c.Conn.Close()
}
