package speed

import (
	"bufio"
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"path"
	"strconv"
	"strings"
)

const (
	maxMHz  = 1e6
	maxMbit = 1e6
)

// Clock returns the clock of the fastest processor in MHz: the nominal one, which does not
// change, else the highest that the system reports; 0 = it reports none.
func Clock(root fs.FS) int64 {
	const cpus = "sys/devices/system/cpu/cpu[0-9]*/"
	nominal := cmp.Or(highest(root, cpus+"cpufreq/base_frequency")/1000, highest(root, cpus+"acpi_cppc/nominal_freq"))
	info := cpuinfo(root)
	if _, text, found := strings.Cut(info["model name"], "@ "); found && nominal == 0 { // Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz
		if ghz, err := strconv.ParseFloat(strings.TrimSuffix(text, "GHz"), 64); err == nil && ghz > 0 {
			nominal = ghz * 1000
		}
	}
	// Of a virtual machine the last of these is the nominal one, and often the only one.
	current, _ := strconv.ParseFloat(info["cpu MHz"], 64)
	mhz := math.Round(cmp.Or(nominal, highest(root, cpus+"cpufreq/cpuinfo_max_freq")/1000, current))
	if !(mhz >= 1 && mhz <= maxMHz) {
		return 0
	}
	return int64(mhz)
}

// highest returns the highest number in those files; 0 = there is none.
func highest(root fs.FS, pattern string) (most float64) {
	files, _ := fs.Glob(root, pattern) // the pattern is a good one
	for _, file := range files {
		most = max(most, number(root, file))
	}
	return most
}

// number reads a file with a whole number; 0 = there is none, or a negative one.
func number(root fs.FS, file string) float64 {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return 0
	}
	return float64(max(n, 0))
}

// Model names the kind of processor, with its clock, since virtual machines name many kinds alike.
func Model(root fs.FS) string {
	info := cpuinfo(root)
	arm := strings.TrimSpace(info["CPU implementer"] + " " + info["CPU variant"] + " " + info["CPU part"] + " " + info["CPU revision"])
	return fmt.Sprintf("%s, %d MHz", cmp.Or(info["model name"], info["cpu model"], arm, info["cpu"], "unknown"), Clock(root))
}

// cpuinfo returns what is said of the first processor, and the highest of the clocks.
func cpuinfo(root fs.FS) map[string]string {
	info := map[string]string{}
	f, err := root.Open("proc/cpuinfo")
	if err != nil {
		return info
	}
	defer f.Close()
	most := 0.0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if info[key] == "" {
			info[key] = value
		}
		if mhz, err := strconv.ParseFloat(value, 64); err == nil && key == "cpu MHz" && mhz > most {
			most, info[key] = mhz, value
		}
	}
	return info
}

// Bandwidth returns what an interface can carry in Mbit/s, of one that has others below it,
// such as a bridge, the fastest of these. It is 0 for those that are not of any hardware
// that reports it, as of virtual machines, of containers, and wireless ones.
func Bandwidth(root fs.FS, name string) int64 { return bandwidth(root, name, 4) }

func bandwidth(root fs.FS, name string, depth int) (most int64) {
	if name == "" || name != path.Base(name) || depth == 0 {
		return 0
	}
	dir := path.Join("sys/class/net", name)
	if _, err := fs.Stat(root, path.Join(dir, "device")); err == nil {
		if _, err := fs.Stat(root, path.Join(dir, "wireless")); err == nil {
			return 0
		}
		if n := number(root, path.Join(dir, "speed")); n <= maxMbit {
			return int64(n)
		}
		return 0
	}
	below, _ := fs.ReadDir(root, dir) // none are there if it cannot be read
	for _, e := range below {
		if lower, ok := strings.CutPrefix(e.Name(), "lower_"); ok {
			most = max(most, bandwidth(root, lower, depth-1))
		}
	}
	return most
}

// Interface is one of the machine's, with its addresses.
type Interface struct {
	Name  string
	Addrs []netip.Prefix
}

// Facing returns the name of the interface that reaches other nodes: the one with the address
// that the node listens at, if that is one, else that of the default route; "" = there is none.
func Facing(root fs.FS, listen string, all []Interface) string {
	if at, err := netip.ParseAddrPort(listen); err == nil && !at.Addr().IsUnspecified() {
		for _, i := range all {
			for _, p := range i.Addrs {
				if p.Addr() == at.Addr() || at.Addr().IsLoopback() && p.Contains(at.Addr()) {
					return i.Name
				}
			}
		}
		return ""
	}
	return cmp.Or(defaultRoute(root, "proc/net/route", 0, 1, 7, 6, 10), defaultRoute(root, "proc/net/ipv6_route", 9, 0, 1, 5, 16))
}

// defaultRoute returns the interface of the route to everywhere with the lowest metric, in a
// table with these columns and numbers to this base.
func defaultRoute(root fs.FS, file string, device, to, mask, metric, base int) (name string) {
	f, err := root.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	best := uint64(math.MaxUint64)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		w := strings.Fields(lines.Text())
		if len(w) <= max(device, mask, metric) || strings.Trim(w[to], "0") != "" || strings.Trim(w[mask], "0") != "" {
			continue
		}
		if n, err := strconv.ParseUint(w[metric], base, 64); err == nil && n < best && w[device] != "lo" {
			best, name = n, w[device]
		}
	}
	return name
}
