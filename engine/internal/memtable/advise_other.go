//go:build unix && !linux

package memtable

func adviseHuge([]byte) {}
