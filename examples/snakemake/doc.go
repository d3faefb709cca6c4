// Package snakemake holds a profile by which Snakemake runs its jobs on a Zorilla network,
// and a workflow to try it with: README.md.
package snakemake
