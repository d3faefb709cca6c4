//go:build race

package testnet

const underRace = true
