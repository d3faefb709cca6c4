// Package api is the API for clients of a node: the Service interface,
// the HTTP handler that serves it and the Go client that speaks to it.
//
// The node implements [Service]; [Handler] puts it on the unix socket of the
// state directory. What other nodes may ask, mostly of a job's origin, is
// [Peer]; [PeerHandler] puts that on the peer listener. [Client] implements
// Service again over any http.RoundTripper. What holds for a Service called directly holds
// through Handler and Client: package apitest has the suite that checks it.
//
// # Routes
//
//	GET  /v1/node                           NodeInfo
//	GET  /v1/nodes?ask=true                 [NodeInfo]
//	GET  /v1/rtt?from=&to=&pings=           Measurement
//	GET  /v1/jobs?all=true                  [Status]
//	GET  /v1/summaries?all=true             [Summary]
//	POST /v1/jobs                           Spec -> {"id"}
//	GET  /v1/jobs/{job}                     Status
//	GET  /v1/jobs/{job}/await?since=N       {"status", "version"}
//	GET  /v1/jobs/{job}/explain             Explanation
//	GET  /v1/jobs/{job}/tasks?from=&limit=&failed= TaskPage
//	GET  /v1/jobs/{job}/output?rank=&follow=&files=&times=&since=&attempt= output frames
//	PUT  /v1/jobs/{job}/stdin               bytes, as long as they come
//	POST /v1/jobs/{job}/enter?rank=         frames of a session (jobs/session), both ways
//	POST /v1/jobs/{job}/cancel
//	DELETE /v1/jobs/{job}
//	POST /v1/blobs/missing                  [hash] -> [hash]
//	POST /v1/blobs/refer                    {"path", "stamp", "chunks"} -> {"found"}
//	GET  /v1/blobs/{hash}?job=J             bytes
//	GET  /v1/files/{hash}                   {"path", "stamp"}
//	PUT  /v1/blobs/{hash}                   bytes
//	POST /v1/drain                          {"now", "discard", "exit", "undo"} -> Drained
//	GET  /v1/owner                          Limits
//	POST /v1/owner                          {"changes"} -> Limits
//	GET  /v1/cache                          Cache
//	POST /v1/cache                          {"verify", "prune"} -> Cache
//	GET  /v1/queue                          [Waiting]
//	GET  /v1/invite                         {"token"}
//	GET  /v1/web                            {"url"}
//	GET  /v1/web/read-only                  {"url"}
//	GET  /v1/changes                        answers at once, ends at the next change
//
// Answers are JSON: times RFC 3339, durations seconds; a listing has a line for each
// element, which is sent as soon as it is encoded. An error is
// {"error": one line, "code": word}; the codes are those of the table in
// errors.go, and the client turns them back into the sentinel they stand for.
//
// # Output frames
//
// A stream of output is a sequence of frames, all integers big-endian:
//
//	kind    1 byte   0 end, 1 output, 2 error, 3 time
//	stream  1 byte   1 stdout, 2 stderr, 3 files of a task (transfer.Pack)
//	rank    4 bytes  of an array: the task
//	attempt 4 bytes
//	offset  8 bytes  of the first byte in the stream of that rank and attempt
//	length  4 bytes  at most 1 MiB
//	data    length bytes
//
// A time frame, with times=true alone, says in its offset when the frames that follow came to
// the job's origin, in milliseconds since 1970; 0 = not known, as at the beginning.
//
// The last frame is an end frame (all zero) or an error frame, whose data is
// an error as above. A stream that stops before one of them was broken.
//
// # Concurrency
//
// All methods of Service, and so of Client, may be called from any goroutine.
// Nothing here has a timeout: the context of a call governs it.
package api
