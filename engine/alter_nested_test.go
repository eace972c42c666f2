package engine

import (
	"testing"

	"github.com/merutable/merutable/engine/internal/vfs"
)

// TestAlterAddNested: a nested column may be added and dropped; old rows are NULL there, as a whole.
func TestAlterAddNested(t *testing.T) {
	inPlaces(t, func(t *testing.T, db *DB, fs vfs.FS) {
		list := Type{Kind: KindList, Fields: []Field{{Name: "element", Type: Type{Kind: KindInteger}}}}
		must(t, db.Alter(AddColumn{Column: Column{Name: "l", Type: list, Nullable: true}}))
		wantRowsAlways(t, db, fs, "(10, 1, x, NULL)(NULL, 2, y, NULL)(30, 3, NULL, NULL)")
		must(t, db.Alter(DropColumn{Name: "l"}))
		wantRowsAlways(t, db, fs, "(10, 1, x)(NULL, 2, y)(30, 3, NULL)")
	})
}
