package engine

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/row"
)

// What there is to look at, for people: options, versions, and keys as text.

// OptionInfo is one option as an engine has it.
type OptionInfo struct {
	// Name and Value are those of Set.
	Name, Value string
	// Sticks says that the option is stored beside the table once it is given.
	Sticks bool
}

// Options returns the options that the engine works with. What is not set and has no default, such as wal_dir, is empty.
func (db *DB) Options() []OptionInfo {
	db.mu.RLock()
	o := db.c.opts
	db.mu.RUnlock()
	out := make([]OptionInfo, len(optionTable))
	for i := range optionTable {
		d := &optionTable[i]
		out[i] = OptionInfo{Name: d.name, Value: d.format(&o), Sticks: d.sticks}
	}
	return out
}

// VersionInfo describes a manifest that is still kept.
type VersionInfo struct {
	Version   int64
	Committed time.Time // by the clock of who committed it
	// Job is what made it: create, flush, load, compaction, drop.
	Job string
	// Files, Rows and Bytes are of its data files; Rows leaves deleted ones out.
	Files, Rows, Bytes int64
	// Seq is the largest sequence number in files.
	Seq uint64
}

// Versions lists the manifests that are still kept, oldest first.
func (db *DB) Versions() ([]VersionInfo, error) {
	db.mu.RLock()
	store := db.c.store
	db.mu.RUnlock()
	numbers, err := store.Versions()
	if err != nil {
		if base.CodeOf(err) == base.CodeNotFound {
			return nil, nil
		}
		return nil, err
	}
	out := make([]VersionInfo, 0, len(numbers))
	for _, n := range numbers {
		m, err := store.At(n)
		if base.CodeOf(err) == base.CodeNotFound {
			continue // reclaimed meanwhile
		}
		if err != nil {
			return nil, err
		}
		v := VersionInfo{Version: n, Committed: time.UnixMilli(m.UpdatedMS), Job: m.Properties[manifest.PropJob], Seq: m.FlushedSeq}
		for _, f := range m.Files {
			v.Files++
			v.Rows += f.Live()
			v.Bytes += f.Size
		}
		out = append(out, v)
	}
	return out, nil
}

// KeyText returns an encoded key of the snapshot's table for people: its values, separated by commas.
func (s *Snapshot) KeyText(key []byte) string {
	text, err := s.state.table.keyText(key)
	if err != nil {
		return hex.EncodeToString(key) // damaged: what there is
	}
	return text
}

func (t *table) keyText(key []byte) (string, error) {
	values, err := t.codec.Decode(key)
	if err != nil {
		return "", err
	}
	rec, err := row.NewLayout(t.keySchema).Append(nil, values)
	if err != nil {
		return "", err
	}
	b := row.NewBuilder(t.keySchema, nil)
	b.AppendRecord(rec, 0, base.OpPut)
	batch, err := ToArrow(b.Columns(), t.keySchema, nil, memory.DefaultAllocator)
	if err != nil {
		return "", err
	}
	defer batch.Release()
	parts := make([]string, len(values))
	for i := range values {
		parts[i] = valueText(batch.Column(i), t.keySchema.Columns[i].Type.Kind, values[i])
	}
	return strings.Join(parts, ", "), nil
}

// valueText leaves to Arrow what it has a type for.
func valueText(column arrow.Array, k Kind, v Value) string {
	switch k {
	case KindHugeInt, KindUHugeInt:
		n := new(big.Int).SetUint64(v.Hi)
		n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(v.Lo))
		if k == KindHugeInt && int64(v.Hi) < 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
		}
		return n.String()
	case KindInterval:
		return fmt.Sprintf("%d months %d days %d us", int32(v.Hi>>32), int32(v.Hi), v.Int64())
	case KindUUID:
		return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", v.Hi>>32, v.Hi>>16&0xffff, v.Hi&0xffff, v.Lo>>48, v.Lo&(1<<48-1))
	case KindBit, KindBlob, KindFixedBinary, KindBignum:
		return hex.EncodeToString(v.Bytes)
	case KindTimeTZ:
		micros, offset, _ := base.TimeTZParts(v)
		return fmt.Sprintf("%d us UTC%+d s", micros, offset)
	}
	return column.ValueStr(0)
}
