package speed_test

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"zorilla/node/speed"
)

// files makes a file system of pairs of a path and what is in that file.
func files(pairs ...string) fstest.MapFS {
	root := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		root[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return root
}

const (
	cpu0     = "sys/devices/system/cpu/cpu0/"
	cpu11    = "sys/devices/system/cpu/cpu11/"
	haswell  = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz\ncpu MHz\t\t: 1200.4\n\nprocessor\t: 1\ncpu MHz\t\t: 3100.1\n"
	virtual  = "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Processor\ncpu MHz\t\t: 2099.998\n"
	neoverse = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n"
)

func TestClock(t *testing.T) {
	for name, c := range map[string]struct {
		root fstest.MapFS
		want int64
	}{
		"nothing":         {files(), 0},
		"in the name":     {files("proc/cpuinfo", haswell, cpu0+"cpufreq/cpuinfo_max_freq", "3200000\n"), 2400},
		"base":            {files("proc/cpuinfo", haswell, cpu0+"cpufreq/base_frequency", "2300000\n"), 2300},
		"of the fastest":  {files(cpu0+"cpufreq/base_frequency", "2000000\n", cpu11+"cpufreq/base_frequency", "2600000\n"), 2600},
		"nominal of AMD":  {files(cpu0+"acpi_cppc/nominal_freq", "2450\n", cpu0+"cpufreq/cpuinfo_max_freq", "3529052\n", "proc/cpuinfo", virtual), 2450},
		"highest":         {files(cpu0+"cpufreq/cpuinfo_max_freq", "1500000\n", cpu11+"cpufreq/cpuinfo_max_freq", "2800000\n", "proc/cpuinfo", virtual), 2800},
		"virtual machine": {files("proc/cpuinfo", virtual), 2100},
		"none":            {files("proc/cpuinfo", neoverse), 0},
		"nonsense":        {files("proc/cpuinfo", "cpu MHz : NaN\nmodel name : x @ manyGHz\n", cpu0+"cpufreq/base_frequency", "-5"), 0},
	} {
		if got := speed.Clock(c.root); got != c.want {
			t.Errorf("%s: %d MHz, want %d", name, got, c.want)
		}
	}
}

func TestModel(t *testing.T) {
	for info, want := range map[string]string{
		haswell: "Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz, 2400 MHz", virtual: "Intel(R) Xeon(R) Processor, 2100 MHz",
		neoverse: "0x41 0x3 0xd0c 1, 0 MHz", "": "unknown, 0 MHz",
	} {
		if got := speed.Model(files("proc/cpuinfo", info)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestBandwidth(t *testing.T) {
	const net = "sys/class/net/"
	root := files(
		net+"eth0/speed", "10000\n", net+"eth0/device/vendor", "x",
		net+"eth1/speed", "1000\n", net+"eth1/device/vendor", "x",
		net+"down/speed", "-1\n", net+"down/device/vendor", "x",
		net+"old/speed", "4294967295\n", net+"old/device/vendor", "x",
		net+"wlan0/speed", "866\n", net+"wlan0/device/vendor", "x", net+"wlan0/wireless/x", "",
		net+"veth0/speed", "10000\n", net+"tun0/speed", "10\n",
		net+"br0/speed", "10000\n", net+"br0/lower_eth1/x", "", net+"br0/lower_veth0/x", "",
		net+"bond0/lower_eth0/x", "", net+"bond0/lower_eth1/x", "", net+"bond0.7/lower_bond0/x", "",
		net+"loop/lower_loop/x", "",
	)
	for name, want := range map[string]int64{
		"eth0": 10000, "eth1": 1000, "down": 0, "old": 0, "wlan0": 0, "veth0": 0, "tun0": 0, "br0": 1000, "bond0": 10000, "bond0.7": 10000,
		"loop": 0, "missing": 0, "": 0, "..": 0, "../net/eth0": 0,
	} {
		if got := speed.Bandwidth(root, name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestFacing(t *testing.T) {
	const head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
	root := files("proc/net/route", head+
		"eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n"+
		"wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"+
		"eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n")
	six := files("proc/net/route", head, "proc/net/ipv6_route", ""+
		"fe800000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 1 0 1 eth5\n"+
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 1 0 200200 lo\n"+
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 1 0 3 eth4\n")
	all := []speed.Interface{
		{"lo", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}},
		{"eth1", []netip.Prefix{netip.MustParsePrefix("10.0.0.5/8"), netip.MustParsePrefix("fd00::5/64")}},
	}
	for _, c := range []struct {
		root   fstest.MapFS
		listen string
		want   string
	}{
		{root, "0.0.0.0:5444", "eth0"}, {root, "[::]:5444", "eth0"}, {root, ":5444", "eth0"}, {root, "10.0.0.5:5444", "eth1"}, {root, "[fd00::5]:0", "eth1"},
		{root, "127.0.0.7:5444", "lo"}, {root, "10.0.0.6:5444", ""}, {six, "0.0.0.0:5444", "eth4"}, {files(), "0.0.0.0:5444", ""},
	} {
		if got := speed.Facing(c.root, c.listen, all); got != c.want {
			t.Errorf("%s: %q, want %q", c.listen, got, c.want)
		}
	}
}

// A machine with work is left alone, the first idle moment is used, and the next start has
// the result, unless the processor is another one.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := files("proc/cpuinfo", virtual, "proc/loadavg", "2.10 1.00 1.00 1/100 1\n")
		start := time.Now()
		busy := func() bool {
			d := time.Since(start)
			if d >= 5*time.Minute {
				root["proc/loadavg"].Data = []byte("0.90 1.00 1.00 1/100 1\n")
			}
			return d < 2*time.Minute || d > 8*time.Minute && d < 9*time.Minute
		}
		measured := 0
		m := &speed.Meter{Root: root, File: filepath.Join(t.TempDir(), "power"), Cores: 8, Busy: busy, Measure: func() int64 {
			measured++
			if time.Since(start) < 10*time.Minute { // a job begins meanwhile
				time.Sleep(8*time.Minute + time.Second - time.Since(start))
			}
			return 1010
		}}
		if m.Kept() != 0 {
			t.Error("there is a result already")
		}
		power, err := m.Await(t.Context())
		if took := time.Since(start); power != 1010 || err != nil || measured != 2 || took < 9*time.Minute || took > 10*time.Minute {
			t.Errorf("%d, %v after %v, measured %d times", power, err, took, measured)
		}
		if again := (&speed.Meter{Root: root, File: m.File}).Kept(); again != 1010 {
			t.Errorf("the next start finds %d", again)
		}
		other := files("proc/cpuinfo", strings.Replace(virtual, "2099", "2599", 1))
		if again := (&speed.Meter{Root: other, File: m.File}).Kept(); again != 0 {
			t.Errorf("another processor has %d", again)
		}
		for _, text := range []string{"", "x", `{"model": "Intel(R) Xeon(R) Processor, 2100 MHz", "power": -5}`} {
			if err := os.WriteFile(m.File, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if again := m.Kept(); again != 0 {
				t.Errorf("%q is taken for %d", text, again)
			}
		}
	})
}

// A result that cannot be kept is one all the same; without an idle moment there is none.
func TestMeterWithoutLuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &speed.Meter{Root: files(), File: filepath.Join(t.TempDir(), "missing", "power"), Cores: 1, Busy: func() bool { return false }, Measure: func() int64 { return 900 }}
		if power, err := m.Await(t.Context()); power != 900 || err == nil {
			t.Errorf("%d, %v", power, err)
		}
		m.Busy = func() bool { return true }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if power, err := m.Await(ctx); power != 0 || err != nil {
			t.Errorf("a busy machine has %d, %v", power, err)
		}
	})
}

// Power is in inverse proportion to the time, and that of the best part.
func TestPower(t *testing.T) {
	at, looks := time.Time{}, 0
	part := func(base time.Duration) func() time.Time {
		at, looks = time.Time{}, 0
		return func() time.Time {
			if looks++; looks%2 == 0 {
				at = at.Add(base)
				if looks != 4 { // the second is the best
					at = at.Add(base)
				}
			}
			return at
		}
	}
	if p := speed.Power(part(16384 * time.Microsecond)); p != 1000 {
		t.Errorf("%d, want 1000", p)
	}
	if p := speed.Power(part(4 * 16384 * time.Microsecond)); p != 250 {
		t.Errorf("%d, want 250", p)
	}
	if p := speed.Measure(); p <= 0 {
		t.Errorf("this machine has a power of %d", p)
	}
	if p := speed.Power(func() time.Time { return time.Time{} }); p != 0 {
		t.Errorf("a clock that stands still: %d", p)
	}
}
