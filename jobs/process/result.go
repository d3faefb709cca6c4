package process

import (
	"encoding/binary"
	"fmt"
	"time"
)

// appendResult writes a result as it stands in Root/tasks.
func (t *TaskSpec) appendResult(b []byte, r TaskResult) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(r.Place))
	b = binary.BigEndian.AppendUint32(b, uint32(r.Code))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Stdout))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Stderr))
	b = binary.BigEndian.AppendUint64(b, uint64(r.Took))
	if len(t.Outputs) > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(r.Files))
	}
	return b
}

// resultSize is how long that is. Supervisors that are older than Outputs write
// no Files.
func (t *TaskSpec) resultSize() int {
	if len(t.Outputs) > 0 {
		return 40
	}
	return 32
}

// parseResult reads what appendResult wrote.
func (t *TaskSpec) parseResult(b []byte) (TaskResult, error) {
	r := TaskResult{
		Place: int(binary.BigEndian.Uint32(b)), Code: int(binary.BigEndian.Uint32(b[4:])),
		Stdout: int64(binary.BigEndian.Uint64(b[8:])), Stderr: int64(binary.BigEndian.Uint64(b[16:])),
		Took: time.Duration(binary.BigEndian.Uint64(b[24:])),
	}
	if len(t.Outputs) > 0 {
		r.Files = int64(binary.BigEndian.Uint64(b[32:]))
	}
	if r.Place >= maxTasks || r.Code > 255 || r.Stdout < 0 || r.Stderr < 0 || r.Took < 0 || r.Files < 0 {
		return r, fmt.Errorf("%w: result of a task", errMalformed)
	}
	return r, nil
}
