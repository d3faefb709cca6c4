package jobs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"zorilla/jobs/process"
)

func outputPiece(rank int, offset int64, text string) Output {
	return Output{Rank: rank, Attempt: 1, Stream: process.Stdout, Offset: offset, Data: []byte(text)}
}

// confirmed is what an acknowledgement says of a rank's standard output.
func confirmed(l *outputLog, rank int) (safe, ahead int64) {
	a := []WorkerAck{{RankAttempt: ra(rank, 1), Stdout: l.received([]RankAttempt{ra(rank, 1)})[ra(rank, 1)].stdout}}
	l.confirm(a)
	return a[0].Stdout, a[0].AheadOut
}

func TestOnlyDurableOutputIsConfirmed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	l, err := openOutputLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ safe, ahead int64 }{{0, 5}, {5, 0}, {5, 6}, {5, 6}, {11, 0}} {
		switch i {
		case 0:
			err = l.append([]Output{outputPiece(0, 0, "first")})
		case 2:
			err = l.append([]Output{outputPiece(0, 5, "second"), outputPiece(1, 0, "other")})
		case 1, 4:
			err = l.sync()
		case 3: // what cannot be synced is not confirmed, and tried again
			f := l.spool.file
			if l.spool.file, err = os.Open(os.DevNull); err != nil {
				t.Fatal(err)
			}
			_ = l.spool.file.Close()
			if l.sync() == nil {
				t.Error("synced a closed file")
			}
			l.spool.file = f
			if l.loosely() != 2*outputHeader+11 {
				t.Errorf("%d bytes are not durable", l.loosely())
			}
		}
		if safe, ahead := confirmed(l, 0); err != nil || safe != want.safe || ahead != want.ahead {
			t.Errorf("step %d: %d and %d bytes, %v, want %+v", i, safe, ahead, err, want)
		}
	}
	if safe, ahead := confirmed(l, 1); safe != 5 || ahead != 0 {
		t.Errorf("rank 1: %d and %d bytes", safe, ahead)
	}
	if err := l.append([]Output{outputPiece(1, 5, "more")}); err != nil {
		t.Fatal(err)
	}
	l.spool.close()
	again, err := openOutputLog(path)
	if err != nil {
		t.Fatal(err)
	}
	if safe, ahead := confirmed(again, 1); safe != 9 || ahead != 0 {
		t.Errorf("opened again, rank 1 has %d and %d bytes", safe, ahead)
	}
}

func TestDamagedOutputIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "output")
	l, err := openOutputLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		if err := l.append([]Output{outputPiece(0, 5*i, "12345")}); err != nil {
			t.Fatal(err)
		}
	}
	l.spool.close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	second := len(whole) / 3
	wrongOffset := bytes.Clone(whole)
	wrongOffset[second+outputHeader-1]++
	wrongStream := bytes.Clone(whole)
	wrongStream[second+8] = 9
	for name, c := range map[string]struct {
		bytes   []byte
		damaged bool
		left    int64
	}{
		"whole":        {whole, false, 15},
		"cut":          {whole[:len(whole)-1], false, 10},
		"zeros":        {append(whole[:2*second:2*second], make([]byte, second)...), false, 10},
		"wrong offset": {wrongOffset, true, 5},
		"wrong stream": {wrongStream, true, 5},
	} {
		if err := os.WriteFile(path, c.bytes, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := openOutputLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if left, _ := confirmed(l, 0); l.damaged != c.damaged || left != c.left {
			t.Errorf("%s: damaged is %v, %d bytes are left, want %v and %d", name, l.damaged, left, c.damaged, c.left)
		}
	}
}
