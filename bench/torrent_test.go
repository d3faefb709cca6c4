package bench

import (
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// pieceSize is that of a torrent: as large as our chunks.
const pieceSize = 1 << 20

// makeTorrent writes the description of a file for BitTorrent.
func makeTorrent(path, file, announce string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var pieces []byte
	size := 0
	buf := make([]byte, pieceSize)
	for {
		n, err := io.ReadFull(f, buf)
		if n > 0 {
			sum := sha1.Sum(buf[:n])
			pieces, size = append(pieces, sum[:]...), size+n
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return err
		}
	}
	text := func(s string) string { return strconv.Itoa(len(s)) + ":" + s }
	return os.WriteFile(path, []byte("d"+text("announce")+text(announce)+text("info")+
		"d"+text("length")+fmt.Sprintf("i%de", size)+text("name")+text(filepath.Base(file))+
		text("piece length")+fmt.Sprintf("i%de", pieceSize)+text("pieces")+text(string(pieces))+"ee"), 0o644)
}

// track is a tracker of one torrent, which tells each who asks of all others, until the
// context ends. It returns its address.
func track(ctx context.Context, host string) (announce string, err error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	var mu sync.Mutex
	var peers []byte // four bytes of address and two of port each
	known := map[string]bool{}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := netip.ParseAddrPort(r.RemoteAddr)
		port, perr := strconv.ParseUint(r.URL.Query().Get("port"), 10, 16)
		if err != nil || perr != nil || !from.Addr().Unmap().Is4() {
			http.Error(w, "who are you?", http.StatusBadRequest)
			return
		}
		ip := from.Addr().Unmap().As4()
		peer := string(ip[:]) + string([]byte{byte(port >> 8), byte(port)})
		mu.Lock()
		defer mu.Unlock()
		if !known[peer] {
			known[peer] = true
			peers = append(peers, peer...)
		}
		fmt.Fprintf(w, "d8:intervali5e12:min intervali2e5:peers%d:%se", len(peers), peers)
	})}
	context.AfterFunc(ctx, func() { _ = srv.Close() })
	go func() { _ = srv.Serve(l) }() // ends when it is closed
	return "http://" + l.Addr().String() + "/announce", nil
}

func TestTorrent(t *testing.T) {
	dir := t.TempDir()
	data, torrent := filepath.Join(dir, "data"), filepath.Join(dir, "t")
	if err := os.WriteFile(data, make([]byte, pieceSize+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := makeTorrent(torrent, data, "http://a/b"); err != nil {
		t.Fatal(err)
	}
	whole, last := sha1.Sum(make([]byte, pieceSize)), sha1.Sum([]byte{0})
	want := "d8:announce10:http://a/b4:infod6:lengthi1048577e4:name4:data12:piece lengthi1048576e6:pieces40:" + string(whole[:]) + string(last[:]) + "ee"
	if got, err := os.ReadFile(torrent); err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	announce, err := track(t.Context(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	for port, want := range map[string]int{"6881": http.StatusOK, "none": http.StatusBadRequest} {
		resp, err := http.Get(announce + "?port=" + port)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || err != nil {
			t.Errorf("port %s: %d, %v", port, resp.StatusCode, err)
		}
		if want == http.StatusOK && string(got) != "d8:intervali5e12:min intervali2e5:peers6:\x7f\x00\x00\x01\x1a\xe1e" {
			t.Errorf("the tracker says %q", got)
		}
	}
}
