// Package s3test has S3 servers for tests: a real one (versitygw), a proxy with network faults before it (toxiproxy), one
// in memory with the oddities of S3-compatible stores, and a front for any of them that records requests, makes chosen
// ones fail, and whose record can be checked for the rules of a mirror.
//
// The real ones are in build/bin, where ./dev puts them. Without them their tests are skipped; but with
// MERUTABLE_TEST_SERVERS=required, as in every ./dev recipe, they fail.
package s3test
