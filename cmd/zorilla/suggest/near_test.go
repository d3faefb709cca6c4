package suggest

import "testing"

func TestMeant(t *testing.T) {
	list := []string{"run", "rerun", "ps", "status", "cancel", "node", "nodes", "c", "n", "replicas", "max-rtt"}
	for word, want := range map[string]string{
		"rnu": "run", "stats": "status", "Status": "status", "replcas": "replicas", "repilcas": "replicas", "canel": "cancel",
		"squeue": "ps", "cpus": "c", "maxrtt": "max-rtt", "nodess": "nodes", "nodez": "node", "pss": "ps",
		"can": "cancel", "rer": "rerun", "nod": "node", "re": "", // what is begun, if that is one
		"N": "n", "p": "", // a letter is not nearly another one
		"fetch": "", // get is none of these
		"x":     "", "": "", "nosuch": "", "frobnicate": "", "ab": "",
	} {
		others := Commands
		if word == "cpus" {
			others = Options
		}
		if got := Meant(word, list, others); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
	if got := UnknownOption("n4", []string{"n", "c"}); got != "unknown option -n4: did you mean -n 4?" {
		t.Errorf("got %s", got)
	}
	options := []string{"n", "np", "c", "strategy", "state-dir", "node"}
	for option, want := range map[string]string{
		"ntasks": "-n", "workers": "-n", "nodes": "-n", "nn": "-n", "N": "-n", "strat": "--strategy", "cpu": "-c", "nod": "--node",
	} {
		if got := UnknownOption(option, options); got != "unknown option "+Dashes(option)+": did you mean "+want+"?" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := UnknownOption("P", options); got != "unknown option -P" {
		t.Errorf("got %s", got)
	}
	if got := UnknownOption("nodes", []string{"n", "limit", "node"}); got != "unknown option --nodes: did you mean --node?" { // of ps, where -n is no number of workers
		t.Errorf("got %s", got)
	}
	for words, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"kitten", "sitting"}: 3, {"ab", "ba"}: 1, {"run", "run"}: 0, {"abcd", "badc"}: 2,
	} {
		if got := distance(words[0], words[1]); got != want {
			t.Errorf("%v: got %d, want %d", words, got, want)
		}
	}
}
