package sst

import "github.com/merutable/merutable/engine/internal/base"

// recordRows is how many records are turned into columns at a time.
const recordRows = 1024

var (
	zeroSeqs [recordRows]base.Seq
	allPuts  = func() (ops [recordRows]base.Op) {
		for i := range ops {
			ops[i] = base.OpPut
		}
		return ops
	}()
)

// AppendRows adds rows that have no sequence numbers of their own (WriterOptions.InheritSeq), given by encoded key and
// record, nil for a tombstone; it copies them. As Append otherwise.
func (w *Writer) AppendRows(keys, recs [][]byte) error {
	if err := w.usable(); err != nil {
		return err
	}
	w.err = w.appendRows(keys, recs)
	return w.err
}

func (w *Writer) appendRows(keys, recs [][]byte) error {
	if len(keys) != len(recs) || !w.o.InheritSeq {
		return base.Errorf(base.CodeInvalidArgument, "%s: %d keys for %d records, sequence numbers inherited: %v", w.path, len(keys),
			len(recs), w.o.InheritSeq)
	}
	from := 0 // recs[from:i] are puts that were noted
	for i, rec := range recs {
		full := w.groups.full(len(rec))
		if full || rec == nil || i-from == recordRows {
			w.takePuts(recs[from:i])
			from = i
		}
		if full {
			if err := w.groups.next(); err != nil {
				return err
			}
		}
		op := base.OpPut
		if rec == nil {
			op = base.OpDelete
		}
		if err := w.note(keys[i], 0, op, len(rec)); err != nil {
			return err
		}
		if rec == nil {
			from = i + 1
			if err := w.groups.open.builder.AppendTombstoneKey(keys[i], 0); err != nil {
				return err
			}
		}
	}
	w.takePuts(recs[from:])
	return nil
}

func (w *Writer) takePuts(recs [][]byte) {
	n := len(recs)
	w.groups.open.builder.AppendRecords(recs, zeroSeqs[:n], allPuts[:n])
}
