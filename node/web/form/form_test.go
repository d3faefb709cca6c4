package form_test

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"zorilla/internal/codec"
	"zorilla/jobs"
	"zorilla/node/web/form"
)

func TestSpec(t *testing.T) {
	for query, want := range map[string]jobs.Spec{
		"command=hostname": {Args: []string{"hostname"}, Min: 1, Max: 1, Slots: 1},
		"command=+./prog++-x+1.5+été+&workers=4&slots=&memory=+": {Args: []string{"./prog", "-x", "1.5", "été"}, Min: 4, Max: 4, Slots: 1},
		"command=echo+$ZORILLA_RANK":                             {Args: []string{"sh", "-c", "echo $ZORILLA_RANK"}, Min: 1, Max: 1, Slots: 1},
		"command=a%0D%0Ab":                                       {Args: []string{"sh", "-c", "a\nb"}, Min: 1, Max: 1, Slots: 1},
		"command=x&workers=2..16&slots=3&memory=2G&time=1h30m&name=+mine+&outputs=*.txt++data/": {Name: "mine", Args: []string{"x"},
			Min: 2, Max: 16, Slots: 3, Memory: 2 << 30, Walltime: codec.Duration(90 * time.Minute), Outputs: []string{"*.txt", "data/"}},
	} {
		fields, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		got, err := form.Spec(fields)
		want.MaxOutput = 10 << 30 // as at the command line
		if len(want.Outputs) == 0 {
			want.Outputs = []string{}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", query, got, err)
		} else if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
	// Characters that a shell would do something with are its business.
	for _, c := range "|&;<>()$`\\\"'*?[]#~=%{}!^\t\n" {
		got, err := form.Spec(url.Values{"command": {"a" + string(c) + "b"}})
		if err != nil || got.Args[0] != "sh" {
			t.Errorf("%q: %q, %v", c, got.Args, err)
		}
	}
}

func TestSpecThatIsNone(t *testing.T) {
	for query, field := range map[string]string{
		"": "command", "command=+%0D%0A+": "command", "command=x&workers=0": "workers 0", "command=x&workers=4..2": "workers 4..2",
		"command=x&slots=1..2": "slots 1..2", "command=x&slots=many": "slots many", "command=x&slots=0": "slots 0", "command=x&slots=-1": "slots -1", "command=x&memory=2X": "memory 2X", "command=x&time=-1": "time -1",
	} {
		fields, _ := url.ParseQuery(query)
		if _, err := form.Spec(fields); err == nil || !strings.HasPrefix(err.Error(), field+": ") {
			t.Errorf("%q: %v", query, err)
		}
	}
}
