// Package jobs is a job's life.
package jobs
