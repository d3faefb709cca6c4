package onend

// ShellWithin is Shell with another limit.
var ShellWithin = shell
