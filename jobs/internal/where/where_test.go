package where

import (
	"strings"
	"testing"

	"zorilla/jobs/internal/jobtest"
	"zorilla/vicinity"
)

func aNode() Properties {
	p := PropertiesOf(vicinity.Member{
		ID: jobtest.Node(3), Name: "n3", Site: "rennes", Platform: "linux/amd64", Slots: 4, Memory: 8 << 30, GPUs: 2,
		Labels: map[string]string{"rack": "b7", "fast": ""}, Enforces: []string{"landlock", "memory"}, Version: 1,
		Speeds: vicinity.Speeds{Clock: 2400, Bandwidth: 1000},
	})
	p.Disk = 100 << 30
	return p
}

func TestWhere(t *testing.T) {
	for text, want := range map[string]bool{
		`true`: true, `slots >= 4`: true, `slots > 4`: false,
		`mem >= 8G && os == "linux" && site == "rennes"`: true,
		`mem >= 8.5G`: false, `mem > 7.9GiB && mem < 9000MB`: true, `disk > 1T or disk>=100G`: true, `mem in [8G, 16G]`: true,
		`labels["rack"] == "b7"`: true, `labels.rack == "b8"`: false, `labels["none"] == ""`: true, `"rack" in labels`: true, `"none" in labels`: false,
		`"landlock" in enforces`: true, `not ("cgroup" in enforces)`: true, `"cgroup" not in enforces`: true,
		`name startsWith "n" and site contains "enn"`: true, `name matches "^n[0-9]+$"`: true,
		`name == "8G"`: false, `site != '8G\'9G' && slots < 1K`: true,
		`gpus > 0 ? arch == "amd64" : false`: true,
		`clock >= 2400 && bandwidth >= 1000`: true, `clock > 2400`: false, `bandwidth > 1000`: false, `power > 0`: false, `power == 0`: true,
		`slots / 0 > 1`: true, `slots % 0 == 1`: false, `enforces[17] == "x"`: false, // nothing that ends well
		`labels["x"]["y"] == "z"`: false,
	} {
		w, err := Compile(text)
		if err != nil {
			if text != `labels["x"]["y"] == "z"` {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if got := w.Holds(aNode()); got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
	if (Expr{}).Holds(aNode()) {
		t.Error("an expression that could not be read holds")
	}
}

func TestWhereErrorsNameTheColumn(t *testing.T) {
	for text, want := range map[string]string{
		`memm >= 8G`:                               "column 1: unknown property memm: there are arch, bandwidth, ",
		`mem >= 8G && sit == "x"`:                  "column 14: unknown property sit",
		`mem >= 1.5GiB && disk > 2T && nam == "x"`: "column 31: unknown property nam",
		`mem >= "8G"`:                              "column 5: invalid operation: >= (mismatched types int and string)",
		`mem >=`:                                   "column 6: unexpected token EOF",
		`mem + 1`:                                  "expected bool, but got int",
		`mem >= 8X`:                                "column 9: ",
		`labels["é"] == "8G" && x`:                 "column 24: unknown property x",
		`all(enforces, # == "x")`:                  "column 1: there is no function all",
		`len(name) > 3`:                            "column 1: there is no function len",
		`name.foo() == 1`:                          "there are no functions",
		`slots in 1..1000000000`:                   "column 11: .. cannot be used here",
		`name matches site`:                        "column 6: matches wants a pattern in quotes",
		`name matches "((a{1000}){1000}){1000}"`:   "column 6: matches wants a pattern in quotes without {",
		`name matches "("`:                         "column 6: error parsing regexp",
		`let x = slots; x > 1`:                     "only comparisons",
		`$env["mem"] > 1`:                          "cannot be used here",
		`slots > 1` + strings.Repeat(" ", 300):     "309 bytes, at most 256",
		strings.Repeat("!", 200) + "true":          "operators, names and numbers, at most 100",
		"slots\n> 1":                               "one line",
		`mem > 99999999999999999999T`:              "column ",
	} {
		_, err := Compile(text)
		if err == nil {
			t.Errorf("%s: no error", text)
		} else if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// FuzzWhere reads any text as an expression, as nodes do with those of others.
func FuzzWhere(f *testing.F) {
	for _, s := range []string{
		`mem >= 8G && os == "linux"`, `labels["a"] == 'b' or not (name matches "^a")`, `"x" in enforces ? true : 1.5K > slots`,
		`labels?.a ?? "b" == "c"`, `[1, 2.5, nil][0] == 1`, "`8G`", `1..2`, `len([1])`, `x|y`, `{"a": 1}.a == 1`, `8G8G`, `name[0:1] == "n"`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Compile(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: the error has more than one line: %v", text, err)
			}
			return
		}
		again, err := Compile(text)
		if err != nil || again.Holds(aNode()) != w.Holds(aNode()) {
			t.Fatalf("%q: it depends on more than the node", text)
		}
	})
}
