// Package manifest holds the table's state at one commit and the commit itself, the only linearization point for
// files: what is not named by the newest manifest does not exist.
package manifest

import (
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest/pb"
)

// Property names in the manifest.
const (
	propSchema = "merutable.schema.json"
	// PropJob names what made the commit: create, flush, load, compact, drop.
	PropJob = "merutable.job"
	// PropFirstSeq and PropLastSeq are the range of sequence numbers that the commit made durable in files.
	PropFirstSeq = "merutable.first_seq"
	PropLastSeq  = "merutable.last_seq"
	propDropped  = "merutable.dropped_seq"
)

// File describes one data file and its deletion vector.
type File struct {
	Path           string // relative to the database directory, with slashes
	Size           int64  // bytes
	Rows           int64  // rows in the file, deleted ones included
	Level          int
	SeqMin, SeqMax base.Seq
	KeyMin, KeyMax []byte // encoded keys, both inclusive
	// DVPath, DVOffset and DVLength point at the deletion vector's blob; DVPath is "" where there is none.
	DVPath             string
	DVOffset, DVLength int64
	Deleted            int64 // rows that the deletion vector marks
	// SeqInherited: every row of the file has sequence number SeqMax, whatever its hidden column says.
	SeqInherited bool
	NaNFieldIDs  []int32
}

// Live returns how many rows of the file are not deleted.
func (f *File) Live() int64 { return f.Rows - f.Deleted }

// Manifest is the state of a table. It is not changed after it was committed.
type Manifest struct {
	Version   int64 // N of v<N>.manifest.bin, from 1
	TableUUID string
	UpdatedMS int64        // wall clock at the commit, milliseconds since the epoch; never before the version before
	Schema    *base.Schema // nil when Dropped
	Dropped   bool
	Files     []*File // newest first within a level, levels ascending
	// MinLog is the first log whose rows may not be in files; FlushedSeq the largest sequence number in files.
	MinLog     uint64
	FlushedSeq base.Seq
	// DroppedSeq is 0 as long as the files hold a trace of every version of a row that any file of the table ever held.
	// Else versions of at most this sequence number were dropped by compactions: the change feed asks.
	DroppedSeq base.Seq
	Properties map[string]string // without the schema

	stamp stamp // of the file it was read from; zero where it was not
	// rewritten, givenUp and undecided are of a manifest of a commit over several tables in an object store (intent.go).
	rewritten, givenUp bool
	undecided          string
}

// Next returns a copy with the next version number and no properties, for a commit to change.
func (m *Manifest) Next() *Manifest {
	n := *m
	n.Version++
	n.Files = append([]*File(nil), m.Files...)
	n.Properties = map[string]string{}
	n.stamp, n.rewritten, n.givenUp, n.undecided = stamp{}, false, false, ""
	return &n
}

func (m *Manifest) toProto() (*pb.Manifest, error) {
	p := &pb.Manifest{
		SnapshotId: m.Version, SequenceNumber: m.Version, TableUuid: m.TableUUID, LastUpdatedMs: m.UpdatedMS,
		MinLogNumber: int64(m.MinLog), FlushedSeq: int64(m.FlushedSeq), Dropped: m.Dropped,
		Properties: map[string]string{},
	}
	for k, v := range m.Properties {
		p.Properties[k] = v
	}
	if m.DroppedSeq != 0 {
		p.Properties[propDropped] = strconv.FormatUint(m.DroppedSeq, 10)
	}
	if m.Schema != nil {
		js, err := json.Marshal(m.Schema)
		if err != nil {
			return nil, err
		}
		p.Properties[propSchema] = string(js)
		p.SchemaId, p.LastColumnId = m.Schema.SchemaID, m.Schema.LastColumnID
	}
	if m.Version > 1 {
		prev := m.Version - 1
		p.PreviousSnapshotId = &prev
	}
	for _, f := range m.Files {
		r := &pb.DataFileRef{
			Path: f.Path, FileSize: f.Size, NumRows: f.Rows, Level: int32(f.Level), SeqMin: int64(f.SeqMin),
			SeqMax: int64(f.SeqMax), KeyMin: f.KeyMin, KeyMax: f.KeyMax, DeletedRows: f.Deleted,
			SeqInherited: f.SeqInherited, NanFieldIds: f.NaNFieldIDs,
		}
		if f.DVPath != "" {
			dvPath, off, n := f.DVPath, f.DVOffset, f.DVLength
			r.DvPath, r.DvOffset, r.DvLength = &dvPath, &off, &n
		}
		p.DataFiles = append(p.DataFiles, r)
	}
	return p, nil
}

func fromProto(p *pb.Manifest) (*Manifest, error) {
	m := &Manifest{
		Version: p.SnapshotId, TableUUID: p.TableUuid, UpdatedMS: p.LastUpdatedMs, Dropped: p.Dropped,
		MinLog: uint64(p.MinLogNumber), FlushedSeq: base.Seq(p.FlushedSeq), Properties: map[string]string{},
	}
	if p.MinLogNumber < 0 || p.FlushedSeq < 0 {
		return nil, base.Errorf(base.CodeCorruption, "log number %d or flushed sequence %d is negative", p.MinLogNumber, p.FlushedSeq)
	}
	for k, v := range p.Properties {
		switch k {
		case propSchema:
		case propDropped:
			seq, err := strconv.ParseUint(v, 10, 63)
			if err != nil {
				return nil, base.Wrapf(base.CodeCorruption, err, "property %s", k)
			}
			m.DroppedSeq = seq
		default:
			m.Properties[k] = v
		}
	}
	if !m.Dropped {
		m.Schema = new(base.Schema)
		if err := json.Unmarshal([]byte(p.Properties[propSchema]), m.Schema); err != nil {
			return nil, base.Wrapf(base.CodeCorruption, err, "property %s", propSchema)
		}
	}
	for _, r := range p.DataFiles {
		f := &File{
			Path: r.Path, Size: r.FileSize, Rows: r.NumRows, Level: int(r.Level), SeqMin: base.Seq(r.SeqMin),
			SeqMax: base.Seq(r.SeqMax), KeyMin: r.KeyMin, KeyMax: r.KeyMax, DVPath: r.GetDvPath(),
			DVOffset: r.GetDvOffset(), DVLength: r.GetDvLength(), Deleted: r.DeletedRows,
			SeqInherited: r.SeqInherited, NaNFieldIDs: r.NanFieldIds,
		}
		if err := f.validate(); err != nil {
			return nil, err
		}
		m.Files = append(m.Files, f)
	}
	return m, nil
}

func (f *File) validate() error {
	if err := checkPath(f.Path); err != nil {
		return err
	}
	if f.DVPath != "" {
		if err := checkPath(f.DVPath); err != nil {
			return err
		}
	}
	if f.Size <= 0 || f.Rows <= 0 || f.Deleted < 0 || f.Deleted > f.Rows || f.Level < 0 || f.DVOffset < 0 || f.DVLength < 0 {
		return base.Errorf(base.CodeCorruption, "data file %q: size %d, rows %d, deleted %d, level %d do not fit together",
			f.Path, f.Size, f.Rows, f.Deleted, f.Level)
	}
	return nil
}

// checkPath refuses what could name a file outside the database directory.
func checkPath(p string) error {
	if p == "" || path.IsAbs(p) || path.Clean(p) != p || p == ".." || strings.HasPrefix(p, "../") || strings.ContainsAny(p, "\x00\\") {
		return base.Errorf(base.CodeCorruption, "path %q is not a clean relative path", p)
	}
	return nil
}
