package judge

// here are those that this processor has beside others.
var here map[uint32]call
