package gpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// machine makes a file system of paths and what is in them.
func machine(files ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for _, f := range files {
		path, text, _ := strings.Cut(f, "=")
		root[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

// two are NVIDIA's, of which the first by its PCI address has the higher minor number, and
// is divided.
var two = machine(
	"proc/driver/nvidia/gpus/0000:01:00.0/information=Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 55\nDevice Minor: \t 1\n",
	"proc/driver/nvidia/gpus/0000:41:00.0/information=Model: \t\t NVIDIA A100-SXM4-40GB\nDevice Minor: \t 0\n",
	"proc/driver/nvidia/capabilities/mig/config=DeviceFileMinor: 1\nDeviceFileMode: 256\n",
	"proc/driver/nvidia/capabilities/gpu1/mig/gi7/access=DeviceFileMinor: 66\nDeviceFileMode: 292\n",
	"proc/driver/nvidia/capabilities/gpu1/mig/gi7/ci0/access=DeviceFileMinor: 67\nDeviceFileMode: 292\n",
	"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access=DeviceFileMinor: 12\n",
	"dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/nvidia-caps/nvidia-cap66", "dev/nvidia-caps-imex-channels/channel0",
)

const shared = " /dev/nvidia-modeset /dev/nvidia-uvm /dev/nvidia-uvm-tools"

func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		root    fstest.MapFS
		count   int
		numbers []int
		devices string
	}{
		"none":            {machine("dev/null"), 0, []int{0}, ""},
		"a display":       {machine("dev/dri/renderD128", "sys/class/drm/renderD128/device/vendor=0x8086\n"), 0, []int{0}, ""},
		"nvidia's files":  {machine("dev/nvidia0", "dev/nvidia10", "dev/nvidia9", "dev/nvidiactl", "dev/nvidia-caps/x"), 3, []int{0, 2}, shared + " /dev/nvidia0 /dev/nvidia10 /dev/nvidiactl"},
		"nvidia's proc":   {machine("proc/driver/nvidia/gpus/0000:01:00.0/information"), 1, []int{0}, shared + " /dev/nvidia0 /dev/nvidiactl"},
		"no such number":  {two, 2, []int{2, -1}, ""},
		"no number":       {two, 2, nil, ""},
		"the divided one": {two, 2, []int{0}, " /dev/nvidia-caps-imex-channels/channel0 /dev/nvidia-caps/nvidia-cap66 /dev/nvidia-caps/nvidia-cap67" + shared + " /dev/nvidia1 /dev/nvidiactl"},
		"the other":       {two, 2, []int{1}, " /dev/nvidia-caps-imex-channels/channel0 /dev/nvidia-caps/nvidia-cap12" + shared + " /dev/nvidia0 /dev/nvidiactl"},
		"amd": {machine("dev/kfd", "dev/dri/renderD128", "sys/class/drm/renderD128/device/vendor=0x1002\n", "dev/dri/renderD129", "sys/class/drm/renderD129/device/vendor=0x8086\n",
			"dev/dri/renderD130", "sys/class/drm/renderD130/device/vendor=0x1002\n"), 2, []int{1}, " /dev/dri/renderD130 /dev/kfd"},
		"amd, not to compute with": {machine("dev/dri/renderD128", "sys/class/drm/renderD128/device/vendor=0x1002\n"), 0, []int{0}, ""},
		"in Windows":               {machine("dev/dxg", "usr/lib/wsl/lib/libcuda.so.1"), 1, []int{0}, " /dev/dxg"},
		"Windows without a driver": {machine("dev/dxg"), 0, []int{0}, ""},
	} {
		m := Find(c.root)
		devices := m.Devices(c.numbers)
		slices.Sort(devices)
		if len(m.GPUs) != c.count || strings.Join(devices, " ") != strings.TrimSpace(c.devices) {
			t.Errorf("%s: %d, %q", name, len(m.GPUs), devices)
		}
	}
}

// Libraries number what they can open: a worker's own are told by their places among those.
func TestVariables(t *testing.T) {
	four := Find(machine("dev/nvidia0", "dev/nvidia1", "dev/nvidia2", "dev/nvidia3"))
	for _, c := range []struct {
		m          *Machine
		own, shown []int
		gpus, cuda string
	}{
		{&four, nil, []int{1}, "", ""},
		{&four, []int{1}, []int{1}, "1", "0"},
		{&four, []int{3}, []int{3, 1}, "3", "1"},
		{&four, []int{3, 0}, []int{0, 1, 2, 3}, "3,0", "3,0"},
		{&four, []int{9}, []int{9}, "9", "9"}, // its owner says there are more
		{nil, []int{1}, []int{1}, "1", "1"},
	} {
		env := c.m.Variables(c.own, c.shown)
		if env["ZORILLA_GPUS"] != c.gpus || env["CUDA_VISIBLE_DEVICES"] != c.cuda || env["ROCR_VISIBLE_DEVICES"] != c.cuda || env["CUDA_DEVICE_ORDER"] != "PCI_BUS_ID" {
			t.Errorf("%v among %v: %v", c.own, c.shown, env)
		}
	}
}

// Where the loader does not know the driver's library, it is told where that is.
func TestDriverElsewhere(t *testing.T) {
	for _, c := range []struct {
		files              []string
		dirs, path, search string
	}{
		{[]string{"etc/ld.so.cache=ld.so-1.7.0\x00libcuda.so.1\x00", "usr/bin/nvidia-smi"}, "", "", ""},
		{[]string{"etc/ld.so.cache=ld.so-1.7.0\x00libcurl.so.4\x00", "usr/local/nvidia/lib64/libcuda.so.1", "usr/local/nvidia/bin/nvidia-smi"},
			"/usr/local/nvidia", "/usr/local/nvidia/bin", "/usr/local/nvidia/lib64"},
		{[]string{"run/opengl-driver/lib/libcuda.so.1", "usr/local/cuda/lib64/libcudart.so"}, "/usr/local/cuda /run/opengl-driver", "", "/run/opengl-driver/lib"},
	} {
		m := Find(machine(append(c.files, "dev/nvidia0")...))
		if dirs, path := strings.Join(m.Libraries(), " "), strings.Join(m.Programs(), " "); dirs != c.dirs || path != c.path {
			t.Errorf("%q: shows %q, PATH %q", c.files, dirs, path)
		}
		if got := m.Variables([]int{0}, []int{0})["LD_LIBRARY_PATH"]; got != c.search {
			t.Errorf("%q: LD_LIBRARY_PATH=%q", c.files, got)
		}
		if got, ok := m.Variables(nil, nil)["LD_LIBRARY_PATH"]; ok {
			t.Errorf("%q: without GPUs LD_LIBRARY_PATH=%q", c.files, got)
		}
		if none := Find(machine(c.files...)); len(none.Libraries()) > 0 {
			t.Errorf("%q: a machine without GPUs shows %q", c.files, none.Libraries())
		}
	}
}

// smiPrints is as nvidia-smi 580 prints it.
const smiPrints = `00000000:41:00.0, NVIDIA A100-SXM4-40GB, 40960, 1, [N/A]
00000000:01:00.0, NVIDIA A100-SXM4-40GB, 40960, 17408, 100
`

func TestUses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, prints, fails := 0, smiPrints, error(nil)
		m := NewMeter(Find(two), 2)
		m.run = func(ctx context.Context, _ string, _ []string, args ...string) ([]byte, error) {
			looks++
			return []byte(prints), fails
		}
		m.machine.root = machine("usr/local/nvidia/bin/nvidia-smi")
		want := func(uses ...Use) {
			t.Helper()
			m.Uses()
			synctest.Wait()
			if got := m.Uses(); !slices.Equal(got, uses) {
				t.Errorf("got %+v\nwant %+v", got, uses)
			}
		}
		const model = "NVIDIA A100-SXM4-40GB"
		if got := m.Uses(); !slices.Equal(got, []Use{{Model: model, Busy: -1}, {Model: model, Busy: -1}}) {
			t.Errorf("at first: %+v", got)
		}
		want(Use{model, 40 << 30, 17 << 30, 100}, Use{model, 40 << 30, 1 << 20, -1})
		for range 5 {
			m.Uses()
		}
		if synctest.Wait(); looks != 1 {
			t.Errorf("it looked %d times at once", looks)
		}
		time.Sleep(lookAgain)
		prints = "00000000:01:00.0, NVIDIA A100-SXM4-40GB, 40960, 99999999999999999999, 101\nnonsense\n"
		want(Use{Model: model, Memory: 40 << 30, Busy: -1}, Use{Model: model, Busy: -1})
		time.Sleep(lookAgain)
		fails = errors.New("no driver")
		want(Use{Model: model, Busy: -1}, Use{Model: model, Busy: -1})
	})
	var none *Meter
	if none.Uses() != nil || NewMeter(Machine{}, 4).Uses() != nil {
		t.Error("there are uses where there are no GPUs")
	}
	synctest.Test(t, func(t *testing.T) {
		amd := NewMeter(Find(machine("dev/kfd", "dev/dri/renderD128", "sys/class/drm/renderD128/device/vendor=0x1002\n", "sys/class/drm/renderD128/device/product_name=MI300X\n",
			"sys/class/drm/renderD128/device/mem_info_vram_total=1000\n", "sys/class/drm/renderD128/device/mem_info_vram_used=10\n", "sys/class/drm/renderD128/device/gpu_busy_percent=7\n")), 1)
		amd.Uses()
		synctest.Wait()
		if got := amd.Uses(); !slices.Equal(got, []Use{{"MI300X", 1000, 10, 7}}) {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSound(t *testing.T) {
	for _, u := range []Use{{Model: "a\x1b[m"}, {Model: strings.Repeat("x", MaxModel+1)}, {Memory: -1}, {Memory: 1, Used: 2}, {Used: -1}, {Busy: 101}, {Busy: -2}} {
		if u.Sound() {
			t.Errorf("%+v is believed", u)
		}
	}
	if u := (Use{"NVIDIA H100", 80 << 30, 80 << 30, 100}); !u.Sound() {
		t.Errorf("%+v is not believed", u)
	}
}
