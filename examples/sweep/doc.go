// Package sweep holds a parameter sweep as a shell script, for running on
// Zorilla: sweep.sh.
package sweep
