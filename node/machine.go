package node

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// findGPUs counts the GPUs that programs can compute with, and lists the device
// files that they need for it, in a file system that begins at the root: those
// of NVIDIA by their device files, else those of AMD by their render nodes,
// where the driver for computing is there. Displays alone do not count.
func findGPUs(root fs.FS) (count int, devices []string) {
	glob := func(pattern string) []string {
		found, _ := fs.Glob(root, pattern) // the patterns are good
		return found
	}
	exists := func(name string) bool {
		_, err := fs.Stat(root, name)
		return err == nil
	}
	for _, d := range glob("dev/nvidia*") {
		if number := strings.TrimPrefix(d, "dev/nvidia"); number != "" && strings.Trim(number, "0123456789") == "" {
			count++
			devices = append(devices, "/"+d)
		}
	}
	count = max(count, len(glob("proc/driver/nvidia/gpus/*")))
	if count > 0 { // some of them are made when the first program outside begins to compute
		for i := range count {
			if d := "/dev/nvidia" + strconv.Itoa(i); !slices.Contains(devices, d) {
				devices = append(devices, d)
			}
		}
		return count, append(devices, "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
	}
	if !exists("dev/kfd") {
		return 0, nil
	}
	for _, d := range glob("dev/dri/renderD*") {
		vendor, err := fs.ReadFile(root, path.Join("sys/class/drm", path.Base(d), "device/vendor"))
		if err == nil && strings.TrimSpace(string(vendor)) == "0x1002" {
			count++
			devices = append(devices, "/"+d)
		}
	}
	if count == 0 {
		return 0, nil
	}
	return count, append(devices, "/dev/kfd")
}

// findProcesses returns how many processes and threads workers may have together, so
// that some of the machine's remain; 0 = it is not told.
func findProcesses(root fs.FS) int {
	least := 0
	for _, name := range []string{"pid_max", "threads-max"} {
		b, err := fs.ReadFile(root, "proc/sys/kernel/"+name)
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && (least == 0 || n < least) {
			least = n
		}
	}
	return least / 4 * 3
}

// findMemory returns how many bytes of memory the machine has, in a file system
// that begins at the root; 0 = it is not told. sysinfo(2) would not do: a
// container that is given less than its host tells so in this file only.
func findMemory(root fs.FS) int64 {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	var kilobytes int64
	if _, err := fmt.Fscanf(f, "MemTotal: %d kB\n", &kilobytes); err != nil {
		return 0
	}
	return kilobytes << 10
}

// coresOf lists the processors that this process may use, if workers are to be given some.
func coresOf(pin bool, slots int) (cores []int, err error) {
	if !pin {
		return nil, nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("--pin: %w", err)
	}
	for i := 0; len(cores) < set.Count(); i++ {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	if slots > len(cores) {
		return nil, fmt.Errorf("--pin: %d slots and %d processors: give the node fewer slots", slots, len(cores))
	}
	return cores, nil
}
