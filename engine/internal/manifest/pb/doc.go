// Package pb is the protobuf form of the manifest, generated from manifest.proto.
package pb

//go:generate protoc --go_out=. --go_opt=paths=source_relative manifest.proto
