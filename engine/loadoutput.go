package engine

import (
	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/sst"
)

// loadFile is a data file of a bulk load that no manifest names yet.
type loadFile struct {
	newFile
	file *liveFile // to look keys up
}

// loadOutput writes a part of a load's rows, ascending by key, to data files of the target size. It is one goroutine's.
type loadOutput struct {
	l  *load
	w  *sst.Writer
	at dataPath // of the open file
	// keys and recs are rows that were not written yet; tombstones have no record.
	keys, recs [][]byte
	files      []*loadFile
}

const (
	// outputRows is how many rows are handed to a file at a time.
	outputRows = 1024
	// outputLevel is the level that the files of a load are written for, wherever they are placed: most lie below level 0
	// from the start, and those that do not are no hot spot.
	outputLevel = 1
	// outputGroupBytes bounds what the writers of a load hold of wide rows.
	outputGroupBytes = 32 << 20
)

func (l *load) newOutput() *loadOutput { return &loadOutput{l: l} }

// addRow adds a row. Key and record must stay as they are until the rows are written.
func (o *loadOutput) addRow(key []byte, op base.Op, rec []byte) error {
	if op == base.OpDelete {
		rec = nil
	}
	o.keys, o.recs = append(o.keys, key), append(o.recs, rec)
	if len(o.keys) < outputRows {
		return nil
	}
	return o.writeRows()
}

func (o *loadOutput) writeRows() error {
	if len(o.keys) == 0 {
		return nil
	}
	err := o.write(func(w *sst.Writer) error { return w.AppendRows(o.keys, o.recs) })
	o.keys, o.recs = o.keys[:0], o.recs[:0]
	return err
}

// addBlock adds the rows of a block.
func (o *loadOutput) addBlock(b *Block) error {
	if b.cols == nil {
		err := b.each(o.addRow)
		if err == nil {
			err = o.writeRows() // the block's memory goes
		}
		return err
	}
	if err := o.writeRows(); err != nil {
		return err
	}
	return o.write(func(w *sst.Writer) error { return w.Append(b.cols, 0, b.cols.N) })
}

// write adds rows to the open file, and ends it where it is large enough.
func (o *loadOutput) write(rows func(w *sst.Writer) error) error {
	if o.l.stopped.Load() {
		return errStopped
	}
	if o.w == nil {
		if err := o.open(); err != nil {
			return err
		}
	}
	if err := rows(o.w); err != nil {
		return err
	}
	if o.w.EstimatedBytes() < o.l.c.opts.TargetFileBytes {
		return nil
	}
	return o.finishFile()
}

func (o *loadOutput) open() (err error) {
	c := o.l.c
	if o.at, err = c.nameDataFile(outputLevel); err != nil {
		return err
	}
	o.w, err = sst.NewWriter(c.fs, o.at.path, sst.WriterOptions{
		Schema: o.l.w.table.schema, Level: outputLevel, InheritSeq: true, RowGroupBytes: outputGroupBytes,
	})
	if err != nil {
		c.pending.remove(o.at.rel)
	}
	return err
}

func (o *loadOutput) finishFile() error {
	c := o.l.c
	info, err := o.w.Finish()
	o.w = nil
	if err != nil {
		c.pending.remove(o.at.rel)
		return err
	}
	meta := o.at.describe(o.l.w.table, info)
	meta.SeqInherited = true
	f := &loadFile{newFile: newFile{meta: meta, dead: info.Tombstones}, file: c.uncommitted(meta)}
	f.file.ref()
	o.files = append(o.files, f)
	c.stats.bytesFlushed.Add(info.Size)
	return nil
}

// finish ends the last file.
func (o *loadOutput) finish() error {
	if err := o.writeRows(); err != nil {
		return err
	}
	if o.w == nil {
		return nil
	}
	return o.finishFile()
}

// abort gives up the file that is open. The finished ones are the load's.
func (o *loadOutput) abort() {
	if o.w != nil {
		o.w.Abort()
		o.l.c.pending.remove(o.at.rel)
		o.w = nil
	}
}
