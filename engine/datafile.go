package engine

import (
	"strconv"

	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/sst"
)

// dataPath is where a data file stands: rel as the manifest has it, the others absolute.
type dataPath struct{ rel, dir, path string }

// dataDirOf returns the directory of the files that are written for a level.
func (c *core) dataDirOf(level int) string {
	return c.fs.Join(c.dir, dataDir, "L"+strconv.Itoa(level))
}

// nameDataFile names a data file that is about to be written, and makes its directory. It is marked as pending, so that it
// is not taken for garbage, until the caller has committed it or given it up.
func (c *core) nameDataFile(level int) (p dataPath, err error) {
	name := newUUID() + ".parquet"
	p.dir = c.dataDirOf(level)
	p.path = c.fs.Join(p.dir, name)
	p.rel = dataDir + "/L" + strconv.Itoa(level) + "/" + name
	if err := c.mkdirDurable(p.dir); err != nil {
		return p, err
	}
	c.pending.add(p.rel)
	return p, nil
}

// describe returns what the manifest says of a data file that was just written, on level 0.
func (p dataPath) describe(t *table, info sst.FileInfo) *manifest.File {
	f := &manifest.File{
		Path: p.rel, Size: info.Size, Rows: info.Rows, SeqMin: info.SeqMin, SeqMax: info.SeqMax,
		KeyMin: info.KeyMin, KeyMax: info.KeyMax,
	}
	for _, col := range info.NaNColumns {
		f.NaNFieldIDs = append(f.NaNFieldIDs, t.schema.Columns[col].FieldID)
	}
	return f
}
