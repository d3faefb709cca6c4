// Package process runs worker processes under supervisors of their own.
package process
