//go:build race

package main

// raceEnabled tells that memory and time are worth less than usual.
const raceEnabled = true
