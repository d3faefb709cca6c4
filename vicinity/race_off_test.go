//go:build !race

package vicinity

const underRace = false
