package launch

import (
	"maps"
	"reflect"
	"testing"

	"zorilla/internal/codec"
)

// What a command has used is told in fields of the report, as by launchers of all versions.
func TestReportOfUse(t *testing.T) {
	told := report{Op: opGone, Number: 2, Use: Use{CPU: 1.5, Peak: 1 << 20, Read: 4096, Written: 512}}
	b := codec.MustMarshal(told)
	var fields map[string]any
	if err := codec.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"op": opGone, "number": int8(2), "cpu": 1.5, "peak": uint32(1 << 20), "read": uint16(4096), "written": uint16(512)}
	if !maps.Equal(fields, want) {
		t.Errorf("got %#v, want %#v", fields, want)
	}
	var heard report
	if err := codec.Unmarshal(codec.MustMarshal(want), &heard); err != nil || heard != told {
		t.Errorf("heard %+v, %v", heard, err)
	}
}

// A launcher reads each message as a Command, also the head of one that is sent alone.
func TestHeadsAreReadAsCommands(t *testing.T) {
	killed, ran := head{Op: opKill, Number: 2, Sidecar: 3}, Command{head: head{Op: opRun, Number: 7}, Args: []string{"prog"}, Memory: 5}
	for _, c := range []struct {
		sent any
		want Command
	}{{killed, Command{head: killed}}, {&ran, ran}} {
		var heard Command
		if err := codec.Unmarshal(codec.MustMarshal(c.sent), &heard); err != nil || !reflect.DeepEqual(heard, c.want) {
			t.Errorf("heard %+v, %v, want %+v", heard, err, c.want)
		}
	}
}
