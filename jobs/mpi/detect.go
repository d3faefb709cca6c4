package mpi

import (
	"cmp"
	"debug/elf"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Kind is an MPI library.
type Kind string

// The libraries that Detect knows. None also stands for programs that load one
// later, as scripts do.
const (
	None    Kind = ""
	MPICH   Kind = "mpich"
	OpenMPI Kind = "open mpi"
)

// Found is what a program is linked with.
type Found struct {
	Kind    Kind
	Library string // the path of its MPI; "" = it is needed, but was not found
	Version string // of the MPI, as "4.1.4"; "" = not told

	foreign  string // of another kind of machine than this one: which
	flux     bool   // Open MPI has its flux component
	launcher string // it is no MPI program, but starts them: its name
}

// What is looked at, at most: programs are files of strangers.
const (
	maxObjects = 512  // files that are read
	maxOpens   = 1024 // files that are looked for
)

// Detect reports which MPI a program is linked with, directly or through other
// libraries, as the dynamic loader would find them in dirs (those of its
// LD_LIBRARY_PATH), in what the files themselves name, and where the system has them.
// All files are opened by open. The error says that the program itself cannot be read.
// What is no ELF file, or a broken one, is of Kind None.
func Detect(open Open, program string, dirs ...string) (Found, error) {
	path, err := filepath.Abs(program)
	if err != nil {
		return Found{}, err
	}
	o, err := readObject(open, path)
	if err != nil {
		return Found{}, fmt.Errorf("find the mpi of %s: %w", program, err)
	}
	if o == nil {
		return Found{}, nil
	}
	if name := launcherOf(path); name != "" {
		return Found{launcher: name}, nil
	}
	l := loader{open: open, dirs: dirs, program: o, opens: maxOpens}
	return l.mpi(), nil
}

// launcherOf returns the name of a program that starts ranks itself, or "". Debian has
// one for each MPI, as mpirun.openmpi.
func launcherOf(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	switch name {
	case "mpirun", "mpiexec", "orterun", "prterun":
		return name
	}
	return ""
}

// LauncherKind reports which MPI a launcher is, by the name of the file that its path leads to:
// Debian has one for each. Of what is no launcher it is None.
func LauncherKind(path string) Kind {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || launcherOf(path) == "" && launcherOf(real) == "" {
		return None
	}
	name := filepath.Base(real)
	switch {
	case strings.Contains(name, "openmpi"), name == "orterun", name == "prterun", name == "prte":
		return OpenMPI
	case strings.Contains(name, "mpich"), strings.Contains(name, "hydra"):
		return MPICH
	}
	return None
}

// Served reports whether the node can serve the program, and if not why, in a line for
// its user.
func (f *Found) Served() error {
	if f.launcher != "" {
		return fmt.Errorf("%s would start ranks of its own in each rank: leave it out, or start it with --launcher mpirun", f.launcher)
	}
	if f.Kind != OpenMPI {
		return nil // speaks PMI-1 by itself, or is no MPI
	}
	const way = ": start it with --launcher mpirun"
	switch {
	case len(client) == 0:
		return fmt.Errorf("%w%s", ErrNoLibrary, way)
	case f.foreign != "":
		return fmt.Errorf("open mpi cannot be served for programs of %s on %s%s", f.foreign, runtime.GOARCH, way)
	case f.Library != "" && !f.flux:
		return fmt.Errorf("%s cannot be served: it has no component flux, which open mpi 3 and 4 can have%s", f.name(), way)
	}
	return nil
}

func (f *Found) name() string {
	if f.Version == "" {
		return "open mpi (" + f.Library + ")"
	}
	return "open mpi " + f.Version
}

// kindOf tells an MPI library by its name. The numbers are those of the interface to
// programs: 12 is what MPICH and its relatives have agreed upon.
func kindOf(name string) Kind {
	switch {
	case strings.HasPrefix(name, "libmpich.so."), name == "libmpi.so.12":
		return MPICH
	case strings.HasPrefix(name, "libmpi.so."):
		return OpenMPI
	}
	return None
}

// mpi looks through the program and the libraries that it needs, nearest first.
func (l *loader) mpi() Found {
	var f Found
	seen := map[string]bool{}
	for queue := []*object{l.program}; len(queue) > 0 && len(seen) < maxObjects; queue = queue[1:] {
		o := queue[0]
		for _, name := range o.needed {
			if f.Kind = kindOf(name); f.Kind != None {
				f.look(l, l.find(o, name))
				return f
			}
		}
		for _, name := range o.needed {
			if seen[name] || len(seen) >= maxObjects {
				continue
			}
			seen[name] = true
			if next := l.find(o, name); next != nil {
				queue = append(queue, next)
			}
		}
	}
	return f
}

// look tells more of the MPI library.
func (f *Found) look(l *loader, lib *object) {
	if p := l.program; p.class != elf.ELFCLASS64 || p.machine != machines[runtime.GOARCH] {
		f.foreign = strings.ToLower(strings.TrimPrefix(p.machine.String(), "EM_"))
		if p.class != elf.ELFCLASS64 {
			f.foreign = "32 bits"
		}
	}
	if lib == nil {
		return
	}
	f.Library = lib.path
	symbol := "MPII_Version_string"
	if f.Kind == OpenMPI {
		symbol = "ompi_version_string"
		f.flux = l.hasFlux(lib)
	}
	f.Version = version(lib.text(symbol))
}

// machines are the processors for which there are libraries.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// version keeps what can be one.
func version(text string) string {
	if text == "" || len(text) > 32 || strings.Trim(text, "0123456789abcrv.") != "" {
		return ""
	}
	return text
}

// hasFlux reports whether an Open MPI has the component that speaks PMI-1: a file of
// its own, or a part of one of its libraries.
func (l *loader) hasFlux(lib *object) bool {
	for _, path := range []string{lib.path, cmp.Or(lib.real, lib.path)} {
		for _, dir := range []string{"openmpi", "openmpi3", "openmpi/lib/openmpi3", "openmpi/lib/openmpi"} {
			if l.exists(filepath.Join(filepath.Dir(path), dir, "mca_pmix_flux.so")) {
				return true
			}
		}
	}
	const component = "mca_pmix_flux_component"
	if lib.defines(component) {
		return true
	}
	for _, name := range lib.needed {
		if strings.HasPrefix(name, "libopen-pal.so.") {
			pal := l.find(lib, name)
			return pal != nil && pal.defines(component)
		}
	}
	return false
}
