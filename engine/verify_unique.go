package engine

import (
	"bytes"
	"fmt"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/dv"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/row"
	"github.com/merutable/merutable/engine/internal/sst"
)

// verifyWalk yields the keys of the live rows of files that follow each other, in order.
type verifyWalk struct {
	v     *verifier
	t     *table
	files []*manifest.File
	r     *sst.Reader
	it    *sst.Iter
	name  string // of the open file
	cols  *row.Columns
	at    int
	places,
	keyCols []int
	key []byte // nil at the end
}

// next moves to the next key.
func (w *verifyWalk) next() error {
	for {
		if w.cols != nil && w.at+1 < w.cols.N {
			w.at++
			w.key = w.cols.AppendKey(w.key[:0], w.places, w.at)
			return nil
		}
		if w.it == nil {
			if len(w.files) == 0 {
				w.key = nil
				return nil
			}
			if err := w.open(); err != nil {
				return err
			}
		}
		if err := w.v.ask(); err != nil {
			return err
		}
		cols, _, err := w.it.Next()
		if err != nil {
			return err
		}
		if w.cols, w.at = cols, -1; cols == nil {
			w.close()
		}
	}
}

func (w *verifyWalk) open() error {
	f := w.files[0]
	w.files = w.files[1:]
	w.name = w.v.fs.Join(w.v.dir, f.Path)
	r, err := sst.Open(w.v.fs, w.name, f.Size, w.t.schema, sst.NewCache(1<<20))
	if err != nil {
		return err
	}
	o := sst.IterOptions{Projection: w.keyCols, BatchBytes: 1 << 20}
	if f.DVPath != "" {
		if o.Skip, err = dv.Read(w.v.fs, w.v.fs.Join(w.v.dir, f.DVPath), f.DVOffset, f.DVLength, f.Rows); err != nil {
			_ = r.Close()
			return err
		}
	}
	w.r, w.it = r, r.NewIter(o)
	return nil
}

func (w *verifyWalk) close() {
	if w.it != nil {
		w.it.Close()
		_ = w.r.Close() // nothing was written through it
		w.it, w.r, w.cols = nil, nil, nil
	}
}

// unique checks that no key is live twice in the newest version.
func (v *verifier) unique(t *table, m *manifest.Manifest) error {
	live := make([]*liveFile, len(m.Files))
	for i, f := range m.Files {
		live[i] = &liveFile{dataFile: &dataFile{}, meta: f}
	}
	var walks []*verifyWalk
	defer func() {
		for _, w := range walks {
			w.close()
		}
	}()
	keyCols := t.schema.PrimaryKey
	places := make([]int, len(keyCols))
	for i := range places {
		places[i] = i
	}
	for _, run := range newFileIndex(live).runs {
		w := &verifyWalk{v: v, t: t, places: places, keyCols: keyCols}
		for _, i := range run {
			w.files = append(w.files, m.Files[i])
		}
		walks = append(walks, w)
	}
	name := v.fs.Join(v.dir, manifest.Dir, manifest.FileName(m.Version))
	const what = "one row a key"
	for _, w := range walks {
		if err := w.next(); err != nil {
			return v.cannotCompare(name, what, err)
		}
	}
	var last []byte
	lastFile, rows, doubled := "", int64(0), int64(0)
	for {
		var least *verifyWalk
		for _, w := range walks {
			if w.key != nil && (least == nil || bytes.Compare(w.key, least.key) < 0) {
				least = w
			}
		}
		if least == nil {
			break
		}
		if rows++; last != nil && bytes.Equal(last, least.key) {
			if doubled++; doubled <= maxDoubled {
				v.found("table", name, what, VerifyDamaged, fmt.Sprintf("the key %s is live in %s and in %s", keyForPeople(t, last), lastFile, least.name))
			}
		}
		last, lastFile = append(last[:0], least.key...), least.name
		if err := least.next(); err != nil {
			return v.cannotCompare(name, what, err)
		}
	}
	if doubled > maxDoubled {
		v.found("table", name, what, VerifyDamaged, fmt.Sprintf("%d keys in all are live twice", doubled))
	}
	if doubled == 0 {
		v.found("table", name, what, VerifyOK, fmt.Sprintf("%d live rows", rows))
	}
	return nil
}

// maxDoubled is how many keys that are live twice are named.
const maxDoubled = 10

// cannotCompare reports that files could not be compared; what is wrong with a file of them was said before.
func (v *verifier) cannotCompare(name, what string, err error) error {
	if base.CodeOf(err) == base.CodeCancelled {
		return err
	}
	v.found("table", name, what, VerifyUnreadable, "the keys could not be compared: "+err.Error())
	return nil
}

func keyForPeople(t *table, key []byte) string {
	text, err := t.keyText(key)
	if err != nil {
		return fmt.Sprintf("%x", key)
	}
	return text
}
