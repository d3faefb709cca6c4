// Package transfer moves content-addressed blobs.
package transfer
