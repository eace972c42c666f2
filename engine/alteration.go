package engine

import (
	"slices"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/row"
)

// Alteration is one change of a table's schema, for [DB.Alter]: [AddColumn], [DropColumn], [RenameColumn], [RenameTable],
// [SetDefault], [SetNotNull], [SetType], [SetChecks] or [SetComment]. Columns are found as SQL finds them, ignoring ASCII case where no
// name is exact.
type Alteration interface {
	// apply changes a schema that is the caller's own. It knows nothing of the rows.
	apply(s *base.Schema) error
}

// AddColumn adds a column behind the others. It gets a field id of its own. The rows that there are have its
// InitialDefault: NULL without one, for which it must be nullable unless the table has no data files.
type AddColumn struct {
	Column      Column
	IfNotExists bool // an existing column of that name stays as it is
}

// DropColumn drops a column that is not part of the key. Its values are gone for readers at once; a column that is added
// later under its name is another one.
type DropColumn struct {
	Name     string
	IfExists bool
}

// RenameColumn gives a column, key columns included, another name.
type RenameColumn struct{ Name, NewName string }

// RenameTable gives the table another name.
type RenameTable struct{ NewName string }

// SetDefault sets or drops the defaults of rows to come; those that are there keep their values.
type SetDefault struct {
	Name         string
	SQL          string // [Column.DefaultSQL]; "" for none
	WriteDefault []byte // [Column.WriteDefault]
}

// SetNotNull makes a column NOT NULL, for which no row may hold a NULL there, or nullable again, which key columns cannot
// be.
type SetNotNull struct {
	Name    string
	NotNull bool
}

// SetType makes a column's type wider: see base.Type.Widens. Files stay as they are.
type SetType struct {
	Name string
	Type Type
}

// SetChecks replaces the conditions of the CHECK constraints, [base.Schema.Checks].
type SetChecks struct{ Checks []string }

// SetComment sets the comment of a column, or of the table where Column is "". "" drops it.
type SetComment struct{ Column, Comment string }

// alterSchema returns the schema that the alterations, one after the other, make of an old one, which stays as it is: the
// old one itself where they change nothing, else one with the next schema id. What they need of the rows is for
// [readState.fitsRows] to check.
func alterSchema(old *base.Schema, ops []Alteration) (*base.Schema, error) {
	s := old.Clone()
	for _, op := range ops {
		if err := op.apply(s); err != nil {
			return nil, err
		}
	}
	if s.Equal(old) {
		return old, nil
	}
	s.SchemaID++
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s, nil
}

// find returns the index of a column.
func find(s *base.Schema, name string) (int, error) {
	i := s.ColumnIndex(name)
	if i < 0 {
		return 0, base.Errorf(base.CodeNotFound, "table %q has no column %q", s.TableName, name)
	}
	return i, nil
}

func (a AddColumn) apply(s *base.Schema) error {
	if i := s.ColumnIndex(a.Column.Name); i >= 0 {
		if a.IfNotExists {
			return nil
		}
		return base.Errorf(base.CodeAlreadyExists, "table %q has a column %q already", s.TableName, s.Columns[i].Name)
	}
	c := a.Column
	c.Type.Labels = slices.Clone(c.Type.Labels)
	c.FieldID = 0
	if err := c.Type.Validate(); err != nil {
		return base.Wrapf(base.CodeInvalidArgument, err, "column %q", c.Name)
	}
	for _, d := range [][]byte{c.InitialDefault, c.WriteDefault} {
		if d == nil {
			continue
		}
		if _, err := row.StorageValue(c.Type, d); err != nil {
			return base.Wrapf(base.CodeInvalidArgument, err, "the default of column %q", c.Name)
		}
	}
	s.Columns = append(s.Columns, c)
	s.AssignFieldIDs()
	return nil
}

func (d DropColumn) apply(s *base.Schema) error {
	i, err := find(s, d.Name)
	if err != nil {
		if d.IfExists {
			return nil
		}
		return err
	}
	if s.IsKey(i) {
		return base.Errorf(base.CodeInvalidArgument, "column %q of table %q is part of the primary key: it cannot be dropped",
			s.Columns[i].Name, s.TableName)
	}
	s.Columns = slices.Delete(s.Columns, i, i+1)
	for j, k := range s.PrimaryKey {
		if k > i {
			s.PrimaryKey[j] = k - 1
		}
	}
	return nil
}

func (r RenameColumn) apply(s *base.Schema) error {
	i, err := find(s, r.Name)
	if err != nil {
		return err
	}
	if j := s.ColumnIndex(r.NewName); j >= 0 && j != i {
		return base.Errorf(base.CodeAlreadyExists, "table %q has a column %q already", s.TableName, s.Columns[j].Name)
	}
	s.Columns[i].Name = r.NewName
	return nil
}

func (r RenameTable) apply(s *base.Schema) error {
	s.TableName = r.NewName
	return nil
}

func (d SetDefault) apply(s *base.Schema) error {
	i, err := find(s, d.Name)
	if err != nil {
		return err
	}
	if d.WriteDefault != nil {
		if _, err := row.StorageValue(s.Columns[i].Type, d.WriteDefault); err != nil {
			return base.Wrapf(base.CodeInvalidArgument, err, "the default of column %q", s.Columns[i].Name)
		}
	}
	s.Columns[i].DefaultSQL, s.Columns[i].WriteDefault = d.SQL, d.WriteDefault
	return nil
}

func (n SetNotNull) apply(s *base.Schema) error {
	i, err := find(s, n.Name)
	if err != nil {
		return err
	}
	if !n.NotNull && s.IsKey(i) {
		return base.Errorf(base.CodeInvalidArgument, "column %q of table %q is part of the primary key: it stays NOT NULL",
			s.Columns[i].Name, s.TableName)
	}
	s.Columns[i].Nullable = !n.NotNull
	return nil
}

func (t SetType) apply(s *base.Schema) error {
	i, err := find(s, t.Name)
	if err != nil {
		return err
	}
	c := &s.Columns[i]
	if err := t.Type.Validate(); err != nil {
		return base.Wrapf(base.CodeInvalidArgument, err, "column %q", c.Name)
	}
	switch from := c.Type; {
	case from.Equal(t.Type):
		return nil
	case s.IsKey(i):
		return base.Errorf(base.CodeUnsupported, "column %q of table %q is part of the primary key: it stays %s", c.Name, s.TableName, from)
	case !from.Widens(t.Type):
		possible := from.WidensTo()
		if possible == "" {
			possible = "no other type"
		}
		return base.Errorf(base.CodeUnsupported, "column %q of table %q cannot become %s: without a rewrite of the rows, %s may become %s",
			c.Name, s.TableName, t.Type, from, possible)
	}
	if c.InitialDefault, err = widenDefault(c, c.InitialDefault, t.Type); err == nil {
		c.WriteDefault, err = widenDefault(c, c.WriteDefault, t.Type)
	}
	c.Type = t.Type
	c.Type.Labels = slices.Clone(c.Type.Labels)
	return err
}

func widenDefault(c *base.Column, value []byte, to Type) ([]byte, error) {
	widen := row.NewWiden(c.Type, to)
	if value == nil || widen == nil {
		return value, nil
	}
	if c.Type.Kind == KindDate && !dayFits(value) {
		return nil, noTimestamp(c)
	}
	return widen([]byte{}, value), nil
}

func (c SetChecks) apply(s *base.Schema) error {
	s.Checks = slices.Clone(c.Checks)
	return nil
}

func (m SetComment) apply(s *base.Schema) error {
	if m.Column == "" {
		s.Comment = m.Comment
		return nil
	}
	i, err := find(s, m.Column)
	if err == nil {
		s.Columns[i].Comment = m.Comment
	}
	return err
}
