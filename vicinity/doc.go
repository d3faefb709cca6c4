// Package vicinity knows who is around and how far.
package vicinity
