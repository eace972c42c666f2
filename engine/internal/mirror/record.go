package mirror

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
)

// A record beside each table says which manifests this database may have put, by destination. It is written before each of
// them, so it has the newest one at the store whatever happens to the answer. It tells a manifest of ours, whose own file
// was removed meanwhile, from another database's. Without the record such a manifest counts as foreign: it only ever
// permits.

// RecordFile is the name of the record in the directory of manifests.
const RecordFile = "mirror.state"

const (
	maxDestinations = 8
	maxRecorded     = 16 // manifests of a destination
)

type record struct {
	// Destinations are those used last, the newest first.
	Destinations []destinationRecord `json:"destinations"`
}

type destinationRecord struct {
	Destination string           `json:"destination"`
	Manifests   []manifestRecord `json:"manifests"` // ascending
}

type manifestRecord struct {
	Version int64  `json:"version"`
	SHA256  string `json:"sha256"`
}

// parseRecord reads a record. One that is damaged says nothing.
func parseRecord(data []byte) (r record) {
	if json.Unmarshal(data, &r) != nil {
		return record{}
	}
	return r
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// to returns what is known of a destination, which becomes the newest one.
func (r *record) to(destination string) *destinationRecord {
	i := slices.IndexFunc(r.Destinations, func(d destinationRecord) bool { return d.Destination == destination })
	d := destinationRecord{Destination: destination}
	if i >= 0 {
		d = r.Destinations[i]
		r.Destinations = slices.Delete(r.Destinations, i, i+1)
	}
	r.Destinations = slices.Insert(r.Destinations, 0, d)
	r.Destinations = r.Destinations[:min(len(r.Destinations), maxDestinations)]
	return &r.Destinations[0]
}

// has reports whether a manifest of that version and contents may be ours.
func (d *destinationRecord) has(version int64, data []byte) bool {
	return slices.Contains(d.Manifests, manifestRecord{version, hashOf(data)})
}

// intend adds a manifest that is about to be put. newest is the one that the store is known to have: of those before it
// nobody will ask.
func (d *destinationRecord) intend(version, newest int64, data []byte) (changed bool) {
	entry := manifestRecord{version, hashOf(data)}
	if slices.Contains(d.Manifests, entry) {
		return false
	}
	d.Manifests = slices.DeleteFunc(d.Manifests, func(m manifestRecord) bool { return m.Version < newest || m.Version == version })
	d.Manifests = append(d.Manifests, entry)
	if n := len(d.Manifests) - maxRecorded; n > 0 {
		d.Manifests = slices.Delete(d.Manifests, 0, n)
	}
	return true
}

// loadRecord reads the record of a table once.
func (r *remote) loadRecord(dir TableDir) error {
	if r.recordLoaded {
		return nil
	}
	data, err := dir.Record()
	if err != nil {
		return err
	}
	r.record, r.recordLoaded = parseRecord(data), true
	return nil
}

// intend records that a manifest is about to be put.
func (m *Mirror) intend(r *remote, dir TableDir, version int64, data []byte) error {
	if err := r.loadRecord(dir); err != nil {
		return err
	}
	if !r.record.to(m.store.String()).intend(version, r.newest, data) {
		return nil
	}
	text, err := json.Marshal(r.record)
	if err != nil {
		return base.Wrapf(base.CodeUnknown, err, "%s", RecordFile)
	}
	if err := dir.SetRecord(text); base.CodeOf(err) != base.CodeNoSpace {
		return err
	}
	return nil // a full disk here is no reason not to have the rows there
}
