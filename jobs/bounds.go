package jobs

import "time"

// Limits of a Spec. What is beyond them is refused at submission and again by
// every node that receives it.
const (
	MaxRanks    = 100_000
	MaxSlots    = 4096 // per worker
	MaxGPUs     = 256  // per worker
	MaxArgs     = 4096
	MaxArgBytes = 512 << 10 // arguments and environment together
	MaxGlobs    = 256
	MaxName     = 64
	MaxRetries  = 1000
	MaxTime     = 366 * 24 * time.Hour
)
