package main

/*
#include "capi.h"
*/
import "C"

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/merutable/merutable/engine"
)

//export merugo_inspect
func merugo_inspect(h C.uintptr_t, cwhat *C.char, out *C.struct_ArrowArrayStream, cerr *C.uintptr_t) C.int {
	return call(cerr, func() error {
		if err := need(out, "out"); err != nil {
			return err
		}
		db, err := lookupDB(h)
		if err != nil {
			return err
		}
		what, err := goText(cwhat, "what", maxNameText)
		if err != nil {
			return err
		}
		var r *report
		switch what {
		case "stats":
			r, err = statsReport(db)
		case "files":
			r, err = filesReport(db)
		case "versions":
			r, err = versionsReport(db)
		case "options":
			r = optionsReport(db)
		case "mirror_status":
			r = mirrorReport(db)
		default:
			return invalid("argument what is %q: stats, files, versions, options or mirror_status", what)
		}
		if err != nil {
			return err
		}
		return giveReport(r, out)
	})
}

func optionsReport(db *engine.DB) *report {
	r := newReport(text("name"), text("value"), flag("sticks"))
	for _, o := range db.Options() {
		r.add(o.Name, o.Value, o.Sticks)
	}
	return r
}

func versionsReport(db *engine.DB) (*report, error) {
	r := newReport(number("version"), instant("committed"), text("job"), number("files"), number("rows"),
		number("bytes"), number("seq"), text("table_name"))
	return r, eachTable(db, func(name string, table *engine.DB) error {
		versions, err := table.Versions()
		for _, v := range versions {
			r.add(v.Version, v.Committed, v.Job, v.Files, v.Rows, v.Bytes, int64(v.Seq), name)
		}
		return err
	})
}

// eachTable calls fn with a handle on each table of the database, but for those that are dropped meanwhile.
func eachTable(db *engine.DB, fn func(name string, table *engine.DB) error) error {
	for _, info := range db.Tables() {
		table, err := db.OpenTableID(info.ID)
		if err == nil {
			err = fn(info.Name, table)
			table.Free()
		}
		if err != nil && engine.CodeOf(err) != engine.CodeNotFound {
			return err
		}
	}
	return nil
}

func filesReport(db *engine.DB) (*report, error) {
	r := newReport(text("path"), number("level"), number("rows"), number("deleted"), number("bytes"),
		number("seq_min"), number("seq_max"), text("key_min"), text("key_max"), text("table_name"))
	return r, eachTable(db, func(name string, table *engine.DB) error {
		s, err := table.Snapshot()
		if err != nil {
			return err
		}
		defer s.Close()
		for _, f := range s.Files() {
			r.add(f.Path, int64(f.Level), f.Rows, f.Deleted, f.Size, int64(f.SeqMin), int64(f.SeqMax),
				shorten(s.KeyText(f.KeyMin)), shorten(s.KeyText(f.KeyMax)), name)
		}
		return nil
	})
}

// shorten bounds the text of a key, which may have 64 KiB.
func shorten(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

// statsReport lists the numbers of meru_stats_json() in their order, those of inner objects with a path such as
// "handles.write".
func statsReport(db *engine.DB) (*report, error) {
	r := newReport(text("name"), number("value"), text("unit"))
	js, err := statsJSON(db)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(js))
	d.UseNumber()
	return r, addNumbers(r, d, "")
}

// addNumbers reads one JSON value.
func addNumbers(r *report, d *json.Decoder, path string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case json.Number:
		value, err := wholeNumber(t)
		if err != nil {
			return invalid("the statistic %s is no number: %s", path, t)
		}
		r.add(path, value, unitOf(path))
	case json.Delim:
		for i := 0; d.More(); i++ {
			name := strconv.Itoa(i)
			if t == '{' {
				key, err := d.Token()
				if err != nil {
					return err
				}
				name = key.(string) // a JSON object's key is one
			}
			if path != "" {
				name = path + "." + name
			}
			if err := addNumbers(r, d, name); err != nil {
				return err
			}
		}
		if _, err := d.Token(); err != nil { // the closing one
			return err
		}
	}
	return nil
}

// wholeNumber rounds up what is no integer, so that a little is not nothing.
func wholeNumber(n json.Number) (int64, error) {
	if v, err := n.Int64(); err == nil {
		return v, nil
	}
	f, err := n.Float64()
	return int64(math.Ceil(f)), err
}

// unitOf tells the unit from a statistic's name.
func unitOf(name string) string {
	switch {
	case strings.Contains(name, "bytes"), strings.HasSuffix(name, "_capacity"):
		return "bytes"
	case strings.HasSuffix(name, "_secs"):
		return "seconds"
	case strings.HasSuffix(name, "_ms"):
		return "milliseconds"
	case strings.Contains(name, "nanos"):
		return "nanoseconds"
	}
	return ""
}

// report is a table of results that are few, in Arrow's types.
type report struct {
	schema *arrow.Schema
	rows   [][]any
}

func newReport(fields ...arrow.Field) *report { return &report{schema: arrow.NewSchema(fields, nil)} }

func text(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.BinaryTypes.String, Nullable: true}
}

func number(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true}
}

func decimal(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64, Nullable: true}
}

func flag(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.FixedWidthTypes.Boolean, Nullable: true}
}

func instant(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.FixedWidthTypes.Timestamp_us, Nullable: true}
}

// add adds a row: string, int64, float64, bool or time.Time as the fields are, nil for NULL.
func (r *report) add(values ...any) { r.rows = append(r.rows, values) }
