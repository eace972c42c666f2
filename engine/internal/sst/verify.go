package sst

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"

	"github.com/merutable/merutable/engine/internal/base"
)

// The format gives pages no checksum of their own here, and of the codecs only zstd has one. So the footer carries a
// CRC-32C of each row group: not for reads, which would have to read it all, but for Verify. What is behind the row
// groups has its own: see footer.go. Stored form, in base64: for
// each row group the offset behind it (u64 LE) and the sum (u32 LE) of the bytes since the row group before it, or the
// start of the file.
type checksum struct {
	end int64
	crc uint32
}

type checksums []checksum

const checksumBytes = 12

func (c checksums) encode() string {
	var b []byte
	for _, s := range c {
		b = binary.LittleEndian.AppendUint64(b, uint64(s.end))
		b = binary.LittleEndian.AppendUint32(b, s.crc)
	}
	return base64.StdEncoding.EncodeToString(b)
}

func parseChecksums(stored string, groups int, size int64) (checksums, error) {
	b, err := base64.StdEncoding.DecodeString(stored)
	if err != nil || len(b) != groups*checksumBytes {
		return nil, base.Errorf(base.CodeCorruption, "checksums of %d bytes for %d row groups", len(b), groups)
	}
	var out checksums
	last := int64(0)
	for ; len(b) > 0; b = b[checksumBytes:] {
		s := checksum{end: int64(binary.LittleEndian.Uint64(b)), crc: binary.LittleEndian.Uint32(b[8:])}
		if s.end <= last || s.end > size {
			return nil, base.Errorf(base.CodeCorruption, "row group %d ends at %d, the one before at %d, the file at %d", len(out), s.end, last, size)
		}
		last = s.end
		out = append(out, s)
	}
	return out, nil
}

// VerifyOptions say who follows a verification. The zero value means nobody.
type VerifyOptions struct {
	// Ask is asked now and then; an error ends the verification.
	Ask func() error
	// Row is called with each row of the file, in order.
	Row func(key []byte, seq base.Seq, op base.Op) error
}

func (o *VerifyOptions) ask() error {
	if o.Ask == nil {
		return nil
	}
	return o.Ask()
}

// Verify reads the whole file and checks what reads take on trust: the checksums, the order of the
// keys, the key index, the bloom filters, and that every column of every row decodes. It returns the first fault.
func (r *Reader) Verify(o VerifyOptions) error {
	return guard(r.path, "verifying", func() error {
		if err := r.verifySums(&o); err != nil {
			return err
		}
		return r.verifyRows(&o)
	})
}

func (r *Reader) verifySums(o *VerifyOptions) error {
	stored, err := r.keyValue(checksumsKey)
	if err != nil {
		return err
	}
	sums, err := parseChecksums(stored, len(r.groups), r.size)
	if err != nil {
		return err
	}
	at := int64(0)
	for i, s := range sums {
		crc, err := r.sum(at, s.end, o)
		if err != nil {
			return err
		}
		if crc != s.crc {
			return base.Errorf(base.CodeCorruption, "row group %d (bytes %d to %d) has checksum %08x, stored is %08x", i, at, s.end, crc, s.crc)
		}
		at = s.end
	}
	crc, err := r.sum(at, r.size-footerTrailer-r.footerBytes, o)
	if err == nil && crc != r.tailSum {
		err = base.Errorf(base.CodeCorruption, "bloom filters and page index have checksum %08x, stored is %08x", crc, r.tailSum)
	}
	return err
}

// sum returns the CRC-32C of a part of the file.
func (r *Reader) sum(from, to int64, o *VerifyOptions) (crc uint32, err error) {
	buf := make([]byte, 256<<10)
	for at := from; at < to; {
		if err := o.ask(); err != nil {
			return 0, err
		}
		part := buf[:min(int64(len(buf)), to-at)]
		if n, err := r.file.ReadAt(part, at); n < len(part) {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		crc = crc32.Update(crc, castagnoli, part)
		at += int64(len(part))
	}
	return crc, nil
}

func (r *Reader) verifyRows(o *VerifyOptions) error {
	it := r.NewIter(IterOptions{Hidden: true})
	defer it.Close()
	var key, last []byte
	block, row := 0, int64(0)
	var held filters
	for {
		cols, _, err := it.Next()
		if err != nil {
			return err
		}
		if cols == nil {
			break
		}
		if err := o.ask(); err != nil {
			return err
		}
		for i := 0; i < cols.N; i++ {
			key = cols.AppendKey(key[:0], r.keyCols, i)
			if row > 0 && bytes.Compare(last, key) >= 0 {
				return base.Errorf(base.CodeCorruption, "the key of row %d is not above the one before it", row)
			}
			if block+1 < r.index.blocks() && row == r.index.rows[block+1] {
				block++
			}
			if row == r.index.rows[block] && !bytes.Equal(key, r.index.key(block)) {
				return base.Errorf(base.CodeCorruption, "row %d has not the key that the key index says", row)
			}
			may, err := r.mayContain(block, key, &held)
			if err != nil {
				return err
			}
			if !may {
				return base.Errorf(base.CodeCorruption, "the bloom filter excludes the key of row %d", row)
			}
			if o.Row != nil {
				if err := o.Row(key, cols.Seqs[i], cols.Ops[i]); err != nil {
					return err
				}
			}
			last = append(last[:0], key...)
			row++
		}
	}
	if row != r.rows || !bytes.Equal(last, r.index.last) {
		return base.Errorf(base.CodeCorruption, "%d rows of %d, the last with another key than the key index says", row, r.rows)
	}
	return r.verifyPageIndex(o)
}

// verifyPageIndex reads a row of each page through the page index.
func (r *Reader) verifyPageIndex(o *VerifyOptions) error {
	for c := range r.columns {
		if r.columns[c].ordinal < 0 {
			continue
		}
		for g := range r.groups {
			starts, err := r.pageRows(g, r.columns[c].ordinal)
			if err != nil {
				return err
			}
			if err := o.ask(); err != nil {
				return err
			}
			for _, s := range starts {
				if _, err := r.page(c, r.groups[g].first+int64(s)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
