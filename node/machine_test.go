package node

import (
	"os"
	"testing"
	"testing/fstest"
)

func TestFindMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"MemTotal:        8131576 kB\nMemFree:          250000 kB\n": 8131576 << 10,
		"MemFree: 1 kB\n": 0,
		"":                0,
	} {
		if got := findMemory(fstest.MapFS{"proc/meminfo": {Data: []byte(text)}}); got != want {
			t.Errorf("%q: %d bytes, want %d", text, got, want)
		}
	}
	if got := findMemory(fstest.MapFS{}); got != 0 {
		t.Errorf("without the file: %d bytes", got)
	}
	if got := findMemory(os.DirFS("/")); got < 16<<20 {
		t.Errorf("this machine has %d bytes", got)
	}
}
