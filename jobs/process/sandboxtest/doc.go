// Package sandboxtest has programs that attack the sandbox of workers, and the outcome that each
// must have: nothing won, nothing left behind, nobody else disturbed. It holds tests only.
package sandboxtest
