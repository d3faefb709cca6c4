package node

import (
	"os"
	"testing"

	"zorilla/jobs/process"
)

func TestMain(m *testing.M) {
	process.Main() // workers' supervisors are this program
	os.Exit(m.Run())
}
