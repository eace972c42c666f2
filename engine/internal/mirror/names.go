package mirror

import (
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/manifest"
)

// Names of objects. They are those of the database directory, so that what is there is one.

const (
	catalogKey   = "TABLES"
	tablesPrefix = "tables/"
	dataPrefix   = "data/L"
	lowWaterName = manifest.Dir + "/low_water.txt"
	// manifestPrefix is what the names of all manifests of a table begin with.
	manifestPrefix = manifest.Dir + "/v"
)

// tablePrefix is what the keys of a table's files begin with.
func tablePrefix(id uint32) string {
	if id == 0 {
		return ""
	}
	return tablesPrefix + strconv.FormatUint(uint64(id), 10) + "/"
}

func manifestName(version int64) string { return manifest.Dir + "/" + manifest.FileName(version) }

// kind is what an object is.
type kind int

const (
	kindOther kind = iota // not ours
	kindManifest
	kindData // data files and deletion vectors
	kindLowWater
)

// parseKey says what an object of a table is. Everything that the mirror does not put is kindOther.
func parseKey(key string) (id uint32, rel string, k kind, version int64) {
	rel = key
	if rest, ok := strings.CutPrefix(key, tablesPrefix); ok {
		digits, after, found := strings.Cut(rest, "/")
		n, err := strconv.ParseUint(digits, 10, 32)
		if !found || err != nil || n == 0 || strconv.FormatUint(n, 10) != digits {
			return 0, key, kindOther, 0
		}
		id, rel = uint32(n), after
	}
	if name, ok := strings.CutPrefix(rel, manifest.Dir+"/"); ok {
		if v, ok := manifest.ParseFileName(name); ok {
			return id, rel, kindManifest, v
		}
		if rel == lowWaterName {
			return id, rel, kindLowWater, 0
		}
		return id, rel, kindOther, 0
	}
	if rest, ok := strings.CutPrefix(rel, dataPrefix); ok {
		level, name, found := strings.Cut(rest, "/")
		if found && isDigits(level) && manifest.IsDataFileName(name) {
			return id, rel, kindData, 0
		}
	}
	return id, rel, kindOther, 0
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
