package node

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestFindGPUs(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, c := range map[string]struct {
		root    fstest.MapFS
		count   int
		devices string
	}{
		"none":          {fstest.MapFS{"dev/null": file("")}, 0, ""},
		"a display":     {fstest.MapFS{"dev/dri/renderD128": file(""), "sys/class/drm/renderD128/device/vendor": file("0x8086\n")}, 0, ""},
		"nvidia":        {fstest.MapFS{"dev/nvidia0": file(""), "dev/nvidia1": file(""), "dev/nvidiactl": file(""), "dev/nvidia-uvm": file(""), "dev/nvidia-caps/x": file("")}, 2, "/dev/nvidia-modeset /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia0 /dev/nvidia1 /dev/nvidiactl"},
		"nvidia's proc": {fstest.MapFS{"proc/driver/nvidia/gpus/0000:01:00.0/information": file("")}, 1, "/dev/nvidia-modeset /dev/nvidia-uvm /dev/nvidia-uvm-tools /dev/nvidia0 /dev/nvidiactl"},
		"amd": {fstest.MapFS{"dev/kfd": file(""), "dev/dri/renderD128": file(""), "sys/class/drm/renderD128/device/vendor": file("0x1002\n"),
			"dev/dri/renderD129": file(""), "sys/class/drm/renderD129/device/vendor": file("0x8086\n")}, 1, "/dev/dri/renderD128 /dev/kfd"},
		"amd, not to compute with": {fstest.MapFS{"dev/dri/renderD128": file(""), "sys/class/drm/renderD128/device/vendor": file("0x1002\n")}, 0, ""},
	} {
		count, devices := findGPUs(c.root)
		slices.Sort(devices)
		if count != c.count || strings.Join(devices, " ") != c.devices {
			t.Errorf("%s: %d, %v", name, count, devices)
		}
	}
}

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
