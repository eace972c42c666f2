package manifest

import "strings"

// IsDataFileName reports whether a name is one that the engine gives to a data file or a deletion vector:
// <uuid>.parquet or <uuid>.dv-<version>.puffin.
func IsDataFileName(name string) bool {
	stem, suffix, _ := strings.Cut(name, ".")
	if !IsUUID(stem) {
		return false
	}
	if rest, ok := strings.CutPrefix(suffix, "dv-"); ok {
		version, ok := strings.CutSuffix(rest, ".puffin")
		return ok && version != "" && strings.Trim(version, "0123456789") == ""
	}
	return suffix == "parquet"
}

// IsUUID reports whether a name is of the form of the engine's identifiers.
func IsUUID(name string) bool {
	if len(name) != 36 {
		return false
	}
	for i, ch := range []byte(name) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (ch == '-') || !dash && !strings.ContainsRune("0123456789abcdef", rune(ch)) {
			return false
		}
	}
	return true
}
