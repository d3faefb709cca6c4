// Package reserved lists the places of a user where no file of a job may be written, whoever
// asks for it: programs outside of any sandbox run or trust what is there.
package reserved

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
)

// table lists places below a home directory: files, and directories with all that is in
// them. A place below .config is one below $XDG_CONFIG_HOME, too, and so on: see moved.
var table = []string{
	".config/zorilla", ".local/state/zorilla",
	// What is in a user's PATH, or in that of a language.
	"bin", ".local/bin", ".local/lib", "go/bin",
	// Logins, and keys and programs for logins elsewhere.
	".ssh", ".rhosts", ".shosts", ".k5login", ".netrc", ".gnupg", ".git-credentials",
	".aws", ".azure", ".config/gcloud", ".config/gh", ".docker", ".config/containers", ".kube", ".pypirc", ".terraformrc", ".terraform.d",
	// Shells.
	".profile", ".bashrc", ".bashrc.d", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
	".bash_completion", ".local/share/bash-completion", ".inputrc",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".oh-my-zsh", ".login", ".logout", ".cshrc", ".tcshrc", ".kshrc",
	".config/fish", ".local/share/fish", ".config/nushell", ".config/bash", ".config/zsh", ".config/direnv", ".direnvrc",
	// Desktops, services, browsers, mail.
	".config/autostart", ".config/autostart-scripts", ".config/plasma-workspace", ".config/systemd", ".config/environment.d",
	".local/share/systemd", ".local/share/applications", ".local/share/dbus-1", ".local/share/gnome-shell",
	".config/i3", ".i3", ".config/sway", ".mozilla", ".config/google-chrome", ".config/chromium",
	".pam_environment", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".forward", ".procmailrc", ".muttrc", ".mutt", ".mailcap",
	// Editors and tools.
	".gitconfig", ".config/git", ".hgrc", ".config/hg", ".subversion", ".vimrc", ".gvimrc", ".vim", ".config/vim", ".exrc",
	".config/nvim", ".local/share/nvim", ".emacs", ".emacs.d", ".config/emacs", ".nanorc", ".config/nano",
	".vscode", ".vscode-server", ".config/Code", ".cursor", ".cursor-server", ".gdbinit", ".config/gdb", ".lldbinit",
	".valgrindrc", ".tmux.conf", ".config/tmux", ".screenrc", ".lesskey", ".config/lesskey",
	".psqlrc", ".sqliterc", ".curlrc", ".wgetrc", ".ansible.cfg", ".ansible",
	// Languages and their packages.
	".pythonrc", ".pdbrc", ".ipython", ".jupyter", ".local/share/jupyter", ".config/pip", ".config/uv", ".config/matplotlib",
	".pip", ".pydistutils.cfg", ".pyenv", ".condarc", ".conda", ".mambarc",
	".npmrc", ".yarnrc", ".yarnrc.yml", ".nvm", ".cargo", ".rustup", ".config/go", "go/bin", ".m2", ".gradle", ".ivy2", ".sbt",
	".Rprofile", ".Renviron", ".R", ".octaverc", ".julia", ".rootlogon.C", ".rootrc", ".irbrc", ".gemrc",
	".config/irb", ".perldb", ".ghci", ".bazelrc", ".ccache", ".config/ccache",
	// Clusters.
	".openmpi", ".pmix", ".spack", ".modulerc", ".apptainer", ".singularity", ".config/snakemake", ".config/dask",
}

// moved lists the variables that name another directory for a part of the table.
var moved = map[string]string{"XDG_CONFIG_HOME": ".config/", "XDG_DATA_HOME": ".local/share/", "XDG_STATE_HOME": ".local/state/"}

// Places are those of the user of this process. They are for one goroutine.
type Places struct {
	taken map[string]bool // by their real paths
	nodes map[string]bool // of the directories looked at so far, whether they are the state of a node
}

// New returns the places as they are now. It resolves those that are there, which takes
// milliseconds: call it once for many files.
func New() *Places {
	p := &Places{taken: map[string]bool{}, nodes: map[string]bool{}}
	for _, home := range homes() {
		p.addBelow(home)
	}
	for variable, part := range moved {
		dir := os.Getenv(variable)
		for _, name := range table {
			if below, ok := strings.CutPrefix(name, part); ok && filepath.IsAbs(dir) {
				p.add(filepath.Join(dir, below))
			}
		}
	}
	p.add("/etc/zorilla")
	p.add("/var/lib/zorilla")
	for _, variable := range []string{"ZORILLA_CONFIG", "BASH_ENV", "ENV", "PYTHONSTARTUP"} {
		if file := os.Getenv(variable); filepath.IsAbs(file) {
			p.add(file)
		}
	}
	return p
}

// homes lists the home directories in which this process may write files.
func homes() []string {
	list := []string{os.Getenv("HOME"), os.Getenv("ZDOTDIR")}
	if u, err := user.Current(); err == nil { // $HOME may say otherwise
		list = append(list, u.HomeDir)
	}
	if os.Geteuid() == 0 {
		users, _ := os.ReadFile("/etc/passwd") // without one there are no other users
		for line := range strings.Lines(string(users)) {
			if fields := strings.Split(line, ":"); len(fields) > 5 {
				list = append(list, fields[5])
			}
		}
	}
	list = slices.DeleteFunc(list, func(home string) bool { return !filepath.IsAbs(home) })
	slices.Sort(list)
	return slices.Compact(list)
}

// addBelow adds what the table lists below a home directory. Most of that is not there: then it
// is no link either, and root has a home directory for each user to look into.
func (p *Places) addBelow(home string) {
	home = Real(home)
	there := map[string]bool{"": exists(home)}
	for _, name := range table {
		first, _, _ := strings.Cut(name, "/")
		if _, known := there[first]; !known {
			there[first] = there[""] && exists(filepath.Join(home, first))
		}
		if path := filepath.Join(home, name); there[first] {
			p.add(path)
		} else {
			p.taken[path] = true
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func (p *Places) add(path string) { p.taken[Real(path)] = true }

// Real returns a path without links, as far as it exists.
func Real(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if found, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(found, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// Why returns why nothing may be written to a path that Real has returned, or to one below
// such a path; "" = it may be.
func (p *Places) Why(path string) string {
	for at := path; ; at = filepath.Dir(at) {
		switch {
		case p.taken[at]:
			return "is where programs outside of the sandbox look, and is never written"
		case p.node(at):
			return "is in a node's state directory, and is never written"
		case at == filepath.Dir(at):
			return ""
		}
	}
}

// node reports whether a directory is the state directory of a node.
func (p *Places) node(dir string) bool {
	is, known := p.nodes[dir]
	if !known {
		_, err := os.Lstat(filepath.Join(dir, "identity.key"))
		is = err == nil
		p.nodes[dir] = is
	}
	return is
}
