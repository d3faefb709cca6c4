package main

import (
	"strings"
	"testing"

	"zorilla/jobs"
)

// What launchers call, as it was logged.
func TestParseShell(t *testing.T) {
	for line, want := range map[string]shellCall{
		`hostC| orted" -mca ess "env`:                           {host: "hostC", words: ` orted" -mca ess "env`},
		`-x|hostB|"/usr/bin/hydra_pmi_proxy"|--control-port|10`: {host: "hostB", words: `"/usr/bin/hydra_pmi_proxy" --control-port 10`},
		`hostA|--|exec|perl|-X|-e|x`:                            {host: "hostA", words: "exec perl -X -e x"},
		`host|rsync|--server|-lDrRze.iLsfxCIvu|.|./DIR`:         {host: "host", words: "rsync --server -lDrRze.iLsfxCIvu . ./DIR"},
		`-l|bob|host|-n|-T|true`:                                {host: "host", words: "true", stdin: "none"},
		`-o|A=b|-oC=d|-p|22|-q|bob@10.0.0.1|-x|-tt|a|-b|--|c`:   {host: "10.0.0.1", words: "a -b -- c"},
		`-xp|22|--|host|--|a`:                                   {host: "host", words: "-- a"},
		`host`:                                                  {host: "host"},
	} {
		if got, err := parseShell(strings.Split(line, "|")); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"-x", "-p", "--", "host|-l"} {
		if got, err := parseShell(strings.Split(line, "|")); err == nil {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestLaunch(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		kill *bool
		want bool
	}{"unset": {nil, true}, "killed": {&yes, true}, "left waiting": {&no, false}} {
		spec := jobs.Spec{Args: []string{"x"}, Min: 2, Max: 2, Where: "slots > 1 || gpus > 0", Failing: jobs.Failing{KillOnBadExit: c.kill}}
		if err := launch(&spec, "mpirun"); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		if where := `(slots > 1 || gpus > 0) && "namespaces" in enforces && version >= 5`; c.want && spec.Where != where {
			t.Errorf("%s: %s, want %s", name, spec.Where, where)
		}
	}
	if launch(&jobs.Spec{Args: []string{"x"}, Min: 2, Max: 2, Access: jobs.Access{MPI: true}}, "mpirun") == nil {
		t.Error("ranks are started twice: by --mpi, and by a launcher")
	}
}
