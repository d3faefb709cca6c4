package output

import (
	"os"
	"path/filepath"
	"testing"

	"zorilla/jobs"
	"zorilla/jobs/internal/wire"
	"zorilla/jobs/internal/wire/wiretest"
	"zorilla/jobs/work"
)

func outputPiece(rank int, offset int64, text string) jobs.Output {
	return jobs.Output{Rank: rank, Attempt: 1, Stream: work.Stdout, Offset: offset, Data: []byte(text)}
}

// confirmed is what an acknowledgement says of a rank's standard output.
func confirmed(file *File, rank int) (safe, ahead int64) {
	a := []wire.WorkerAck{{RankAttempt: wiretest.RA(rank, 1), Stdout: file.Received([]jobs.RankAttempt{wiretest.RA(rank, 1)})[wiretest.RA(rank, 1)].Stdout}}
	file.Confirm(a)
	return a[0].Stdout, a[0].AheadOut
}

func TestOnlyDurableOutputIsConfirmed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	file, err := Open(path, "k7f3q@zeb2a", true)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ safe, ahead int64 }{{0, 5}, {5, 0}, {5, 6}, {5, 6}, {11, 0}} {
		switch i {
		case 0:
			err = file.Append([]jobs.Output{outputPiece(0, 0, "first")})
		case 2:
			err = file.Append([]jobs.Output{outputPiece(0, 5, "second"), outputPiece(1, 0, "other")})
		case 1, 4:
			err = file.Sync()
		case 3: // what cannot be synced is not confirmed, and tried again
			f := file.Spool.file
			if file.Spool.file, err = os.Open(os.DevNull); err != nil {
				t.Fatal(err)
			}
			_ = file.Spool.file.Close()
			if file.Sync() == nil {
				t.Error("synced a closed file")
			}
			file.Spool.file = f
			if file.Loosely() != 3*frameHeader+11 {
				t.Errorf("%d bytes are not durable", file.Loosely())
			}
		}
		if safe, ahead := confirmed(file, 0); err != nil || safe != want.safe || ahead != want.ahead {
			t.Errorf("step %d: %d and %d bytes, %v, want %+v", i, safe, ahead, err, want)
		}
	}
	if safe, ahead := confirmed(file, 1); safe != 5 || ahead != 0 {
		t.Errorf("rank 1: %d and %d bytes", safe, ahead)
	}
	if err := file.Append([]jobs.Output{outputPiece(1, 5, "more")}); err != nil {
		t.Fatal(err)
	}
	file.Spool.Close()
	again, err := Open(path, "k7f3q@zeb2a", true)
	if err != nil {
		t.Fatal(err)
	}
	if safe, ahead := confirmed(again, 1); safe != 9 || ahead != 0 {
		t.Errorf("opened again, rank 1 has %d and %d bytes", safe, ahead)
	}
}
