package engine

import (
	"bytes"
	"fmt"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/compact"
	"github.com/merutable/merutable/engine/internal/dv"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// checkCommits has every manifest checked once it is committed; a violation panics. It is for tests and for builds with
// the tag invariants.
var checkCommits = invariantsBuild

// checkCommit checks what must hold of the files of a manifest, and of the commit that made it from prev (nil: the
// first one). It runs under commitMu.
func (c *core) checkCommit(prev, next *manifest.Manifest) {
	if !checkCommits {
		return
	}
	if err := c.violation(prev, next); err != nil {
		panic(fmt.Sprintf("manifest %d of %s (%s): %v", next.Version, c.dir, next.Properties[manifest.PropJob], err))
	}
}

func (c *core) violation(prev, next *manifest.Manifest) error {
	known := map[string]*manifest.File{}
	if prev != nil {
		for _, f := range prev.Files {
			known[f.Path] = f
		}
		if prev.TableUUID == next.TableUUID && next.FlushedSeq < prev.FlushedSeq {
			return fmt.Errorf("the flushed sequence number falls from %d to %d", prev.FlushedSeq, next.FlushedSeq)
		}
		if a, b := liveRows(prev), liveRows(next); next.Properties[manifest.PropJob] == "compact" && a != b {
			return fmt.Errorf("%d live rows became %d", a, b)
		}
	}
	for i, f := range next.Files {
		if err := checkFileMeta(f, next.FlushedSeq); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		if i > 0 {
			p := next.Files[i-1]
			meet := f.Level > 0 && f.Level == p.Level && bytes.Compare(p.KeyMax, f.KeyMin) >= 0
			if f.Level < p.Level || meet {
				return fmt.Errorf("level %d: %s and %s meet or are out of order", f.Level, p.Path, f.Path)
			}
		}
		if err := c.checkOnDisk(f, known[f.Path]); err != nil {
			return err
		}
	}
	return nil
}

func liveRows(m *manifest.Manifest) (n int64) {
	for _, f := range m.Files {
		n += f.Live()
	}
	return n
}

func checkFileMeta(f *manifest.File, flushed base.Seq) error {
	switch {
	case f.Level < 0 || f.Level >= compact.Levels:
		return fmt.Errorf("level %d", f.Level)
	case bytes.Compare(f.KeyMin, f.KeyMax) > 0:
		return fmt.Errorf("the smallest key %x is above the largest %x", f.KeyMin, f.KeyMax)
	case f.SeqMin > f.SeqMax || f.SeqMax > flushed:
		return fmt.Errorf("sequence numbers %d to %d, flushed %d", f.SeqMin, f.SeqMax, flushed)
	case f.Deleted > f.Rows || f.Deleted > 0 && f.DVPath == "":
		return fmt.Errorf("%d of %d rows deleted, deletion vector %q", f.Deleted, f.Rows, f.DVPath)
	}
	return nil
}

// checkOnDisk checks a file and a vector that the manifest before did not have. An error of the disk is none of ours.
func (c *core) checkOnDisk(f, before *manifest.File) error {
	ours := func(err error) bool {
		return base.CodeOf(err) == base.CodeNotFound || base.CodeOf(err) == base.CodeCorruption
	}
	if before == nil {
		info, err := c.fs.Stat(c.fs.Join(c.dir, f.Path))
		if err != nil && ours(err) {
			return err
		}
		if err == nil && info.Size != f.Size {
			return fmt.Errorf("%s has %d bytes, not %d", f.Path, info.Size, f.Size)
		}
	}
	if f.DVPath == "" || before != nil && before.DVPath == f.DVPath && before.DVOffset == f.DVOffset {
		return nil
	}
	bm, err := dv.Read(c.fs, c.fs.Join(c.dir, f.DVPath), f.DVOffset, f.DVLength, f.Rows)
	if err != nil && ours(err) {
		return err
	}
	if err == nil && int64(bm.GetCardinality()) != f.Deleted {
		return fmt.Errorf("%s marks %d rows of %s, the manifest says %d", f.DVPath, bm.GetCardinality(), f.Path, f.Deleted)
	}
	return nil
}
