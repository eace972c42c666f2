// Package mirrortest has tests of the mirror as a whole: a database, a real S3 server, a network that fails, processes that
// are killed, and a record of all requests, which proves that the protocol was kept.
package mirrortest
