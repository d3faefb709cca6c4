package wire

import (
	"reflect"
	"testing"
	"time"

	"zorilla/jobs/process"
)

func FuzzTaskResults(f *testing.F) {
	f.Add(PackResults([]process.TaskResult{{Place: 3, Code: 7, Stdout: 5}, {Place: 1, Took: time.Second}, {Place: 9, Code: 255, Files: 1 << 40}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		rs, err := UnpackResults(b)
		if err != nil {
			return
		}
		again, err := UnpackResults(PackResults(rs))
		if err != nil || !reflect.DeepEqual(again, rs) {
			t.Fatalf("%+v became %+v, %v", rs, again, err)
		}
	})
}
