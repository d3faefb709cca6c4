// Package walltest has programs that attack the wall around workers, and what each of
// them is to come to: nothing won, nothing left behind, nobody else disturbed. It holds
// tests only.
package walltest
