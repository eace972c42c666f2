//go:build invariants

package engine

const invariantsBuild = true
