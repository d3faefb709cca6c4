// Package api is the door for clients: the interface of a node's service, its
// HTTP handler and the Go client that speaks to it.
package api
