// Package gpu finds the GPUs of a machine, what programs need there to compute with them,
// and how they are used.
package gpu

import (
	"bytes"
	"cmp"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// GPU is one that programs can compute with.
type GPU struct {
	Model  string // as its driver calls it; "" = not known
	device string // its file in /dev
	minor  int    // of NVIDIA: the number in the name of that
	bus    string // of NVIDIA: its PCI address; of AMD: its directory in /sys
}

// Machine is what a machine has. The zero value has no GPU.
type Machine struct {
	GPUs   []GPU // by number
	kind   kind
	root   fs.FS
	shared []string // device files that all GPUs need
}

type kind int

const (
	nvidia kind = iota + 1
	amd
	windows // NVIDIA's, or another's, of the Windows that Linux runs in
)

// Find looks for GPUs in a file system that begins at the root: those of NVIDIA, else those
// of AMD where the driver for computing is there. Displays alone do not count.
func Find(root fs.FS) Machine {
	for _, find := range []func(fs.FS) Machine{findNVIDIA, findAMD, findWindows} {
		if m := find(root); len(m.GPUs) > 0 {
			m.root = root
			return m
		}
	}
	return Machine{}
}

// findNVIDIA numbers GPUs by their PCI addresses, as CUDA is told to.
func findNVIDIA(root fs.FS) Machine {
	m := Machine{kind: nvidia, shared: []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}}
	for i, dir := range glob(root, "proc/driver/nvidia/gpus/*") {
		g := GPU{bus: strings.ToLower(path.Base(dir)), minor: i}
		b, _ := fs.ReadFile(root, path.Join(dir, "information"))
		for line := range strings.Lines(string(b)) {
			name, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); name {
			case "Model":
				g.Model = value
			case "Device Minor":
				if n, err := strconv.Atoi(value); err == nil && n >= 0 {
					g.minor = n
				}
			}
		}
		m.GPUs = append(m.GPUs, g)
	}
	if len(m.GPUs) == 0 { // a container may have the device files without the driver's /proc
		for _, d := range glob(root, "dev/nvidia*") {
			if minor, err := strconv.Atoi(strings.TrimPrefix(d, "dev/nvidia")); err == nil && minor >= 0 {
				m.GPUs = append(m.GPUs, GPU{minor: minor})
			}
		}
		slices.SortFunc(m.GPUs, func(a, b GPU) int { return cmp.Compare(a.minor, b.minor) })
	}
	for i := range m.GPUs {
		m.GPUs[i].device = "/dev/nvidia" + strconv.Itoa(m.GPUs[i].minor)
	}
	return m
}

func findAMD(root fs.FS) Machine {
	m := Machine{kind: amd, shared: []string{"/dev/kfd"}}
	if !exists(root, "dev/kfd") {
		return Machine{}
	}
	for _, d := range glob(root, "dev/dri/renderD*") {
		sys := path.Join("sys/class/drm", path.Base(d), "device")
		if line(root, path.Join(sys, "vendor")) != "0x1002" {
			continue
		}
		minor, _ := strconv.Atoi(strings.TrimPrefix(path.Base(d), "renderD"))
		m.GPUs = append(m.GPUs, GPU{Model: line(root, path.Join(sys, "product_name")), device: "/" + d, minor: minor, bus: sys})
	}
	slices.SortFunc(m.GPUs, func(a, b GPU) int { return cmp.Compare(a.minor, b.minor) })
	return m
}

// findWindows counts one: all there are have one file.
func findWindows(root fs.FS) Machine {
	if !exists(root, "dev/dxg") || !exists(root, "usr/lib/wsl/lib/libcuda.so.1") {
		return Machine{}
	}
	return Machine{kind: windows, GPUs: []GPU{{device: "/dev/dxg"}}}
}

// Devices lists the device files that programs need for some GPUs, by number. They need not
// exist: some are made when the first program computes. A number without a GPU has none.
func (m *Machine) Devices(numbers []int) []string {
	if m == nil || len(numbers) == 0 {
		return nil
	}
	var all []string
	for _, g := range m.of(numbers) {
		all = append(all, g.device)
		if m.kind == nvidia {
			all = append(all, m.instances(g.minor)...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	all = append(all, m.shared...)
	if m.kind == nvidia { // memory that several machines share (NVLink)
		for _, d := range glob(m.root, "dev/nvidia-caps-imex-channels/*") {
			all = append(all, "/"+d)
		}
	}
	return all
}

// of returns the GPUs of some numbers, as far as there are such.
func (m *Machine) of(numbers []int) []GPU {
	var all []GPU
	for _, i := range numbers {
		if i >= 0 && i < len(m.GPUs) {
			all = append(all, m.GPUs[i])
		}
	}
	return all
}

// instances lists the files that open the parts of a GPU that is divided (MIG).
func (m *Machine) instances(minor int) []string {
	dir := "proc/driver/nvidia/capabilities/gpu" + strconv.Itoa(minor) + "/mig"
	var all []string
	for _, pattern := range []string{"/gi*/access", "/gi*/ci*/access"} {
		for _, f := range glob(m.root, dir+pattern) {
			b, _ := fs.ReadFile(m.root, f)
			for line := range strings.Lines(string(b)) {
				number, ok := strings.CutPrefix(strings.TrimSpace(line), "DeviceFileMinor: ")
				if ok && number != "" && strings.Trim(number, "0123456789") == "" {
					all = append(all, "/dev/nvidia-caps/nvidia-cap"+number)
				}
			}
		}
	}
	return all
}

// Variables are those by which the usual libraries find the GPUs of a worker, which are its
// own, among those of whose device files it is shown some; both are numbers of GPUs of this
// machine. The libraries count what they can open.
func (m *Machine) Variables(own, shown []int) map[string]string {
	numbers, places := []string{}, []string{}
	shown = slices.Sorted(slices.Values(shown))
	if m == nil {
		m = new(Machine)
	}
	for _, i := range own {
		numbers = append(numbers, strconv.Itoa(i))
		place := i
		if len(m.of([]int{i})) > 0 {
			place = max(slices.Index(shown, i), 0)
		}
		places = append(places, strconv.Itoa(place))
	}
	list := strings.Join(places, ",")
	env := map[string]string{"ZORILLA_GPUS": strings.Join(numbers, ","), "CUDA_VISIBLE_DEVICES": list,
		"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "ROCR_VISIBLE_DEVICES": list}
	if len(own) > 0 {
		maps.Copy(env, m.search())
	}
	return env
}

// elsewhere is where drivers and their libraries lie on systems that keep them apart from
// others, such as containers, NixOS and the Linux of Windows.
var elsewhere = []string{"/usr/local/nvidia", "/usr/local/cuda", "/run/opengl-driver", "/usr/lib/wsl"}

// Libraries lists the directories that programs which compute with GPUs look into, besides
// those of all programs; there are none without a GPU.
func (m *Machine) Libraries() []string {
	if m == nil || len(m.GPUs) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(elsewhere), func(dir string) bool { return !exists(m.root, dir[1:]) })
}

// cudaLibrary is the library of NVIDIA's driver, and smi its program.
const (
	cudaLibrary = "libcuda.so.1"
	smi         = "nvidia-smi"
)

// search is where a program is to look for what the loader does not know of.
func (m *Machine) search() map[string]string {
	if len(m.GPUs) == 0 {
		return nil
	}
	if cache, err := fs.ReadFile(m.root, "etc/ld.so.cache"); m.kind == amd || err == nil && bytes.Contains(cache, []byte(cudaLibrary+"\x00")) {
		return nil
	}
	if dirs := m.holding(cudaLibrary); len(dirs) > 0 {
		return map[string]string{"LD_LIBRARY_PATH": strings.Join(dirs, ":")}
	}
	return nil
}

// Programs lists directories of the driver's programs that no PATH has.
func (m *Machine) Programs() []string {
	if m == nil || m.kind == amd || len(m.GPUs) == 0 || exists(m.root, "usr/bin/"+smi) {
		return nil
	}
	return m.holding(smi)
}

// holding returns the directories of the driver that have a file.
func (m *Machine) holding(name string) []string {
	var all []string
	for _, top := range elsewhere {
		for _, below := range []string{"lib64", "lib", "bin"} {
			if dir := path.Join(top, below); exists(m.root, path.Join(dir, name)[1:]) {
				all = append(all, dir)
			}
		}
	}
	return all
}

func glob(root fs.FS, pattern string) []string {
	found, _ := fs.Glob(root, pattern) // the patterns are good
	return found
}

func exists(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// line is the text of a file that has one line, or "".
func line(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil || bytes.IndexByte(bytes.TrimSpace(b), '\n') >= 0 {
		return ""
	}
	return strings.TrimSpace(string(b))
}
