package reserved

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhy(t *testing.T) {
	home, elsewhere := Real(t.TempDir()), Real(t.TempDir())
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(elsewhere, "settings"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(elsewhere, "data"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(elsewhere, "states"))
	t.Setenv("ZDOTDIR", filepath.Join(elsewhere, "zsh"))
	for _, dir := range []string{"keys", "state", "state/jobs"} {
		if err := os.Mkdir(filepath.Join(elsewhere, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "state/identity.key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "keys"), filepath.Join(home, ".ssh")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(home, filepath.Join(elsewhere, "home")); err != nil {
		t.Fatal(err)
	}
	p := New()
	for _, path := range []string{
		home + "/.config/zorilla/config.toml", home + "/.bashrc", home + "/.bash_login", home + "/.config/autostart/x.desktop",
		home + "/.config/systemd", home + "/bin/ls", elsewhere + "/home/.profile", elsewhere + "/keys/authorized_keys",
		home + "/.ssh/rc", elsewhere + "/settings/zorilla/config.toml", elsewhere + "/settings/fish/config.fish",
		elsewhere + "/zsh/.zshenv", elsewhere + "/state/secret", elsewhere + "/state/jobs/x/y", "/etc/zorilla/config.toml",
		home + "/.local/state/zorilla/secret", home + "/.ipython/profile_default/startup/00.py", home + "/.docker/config.json",
		home + "/.kube/config", home + "/.aws/config", home + "/.cargo/config.toml", home + "/go/bin/gopls", home + "/.openmpi/mca-params.conf",
		home + "/.bashrc.d/x", home + "/.julia/packages/x", home + "/.procmailrc", home + "/.local/share/nvim/site/plugin/x.lua",
		elsewhere + "/data/jupyter/kernels/x", elsewhere + "/states/zorilla/secret",
	} {
		if p.Why(Real(path)) == "" {
			t.Errorf("%s may be written", path)
		}
	}
	for _, path := range []string{
		home, home + "/results", home + "/.config/other", home + "/.bashrc2", home + "/.local/share/other", elsewhere + "/data/other", home + "/project/.bashrc", home + "/project/bin/prog",
		elsewhere + "/.ssh/rc", elsewhere + "/new", "/tmp",
	} {
		if why := p.Why(Real(path)); why != "" {
			t.Errorf("%s: %s", path, why)
		}
	}
}

func TestReal(t *testing.T) {
	dir := Real(t.TempDir())
	t.Chdir(dir)
	if err := os.Symlink("none", "dangling"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"": dir, "a/b": dir + "/a/b", "dangling/x": dir + "/dangling/x", "/": "/", "/nosuch/x": "/nosuch/x"} {
		if got := Real(path); got != want {
			t.Errorf("%q is %s, want %s", path, got, want)
		}
	}
}
