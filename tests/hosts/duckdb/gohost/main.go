// Command gohost loads the merutable extension into DuckDB inside a Go program, so that two Go runtimes share a process:
// the host's, and the one that the extension brings.
//
//	gohost surface  path/to/merutable.duckdb_extension path/of/database
//	gohost preempt  path/to/merutable.duckdb_extension path/of/database
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: gohost surface|preempt extension database")
		os.Exit(2)
	}
	db, err := open(os.Args[2])
	if err == nil {
		switch os.Args[1] {
		case "surface":
			err = surface(db, os.Args[3])
		case "preempt":
			err = preempt(db, os.Args[3])
		default:
			err = fmt.Errorf("unknown check %q", os.Args[1])
		}
	}
	if err != nil {
		fmt.Println("go: failed:", err)
		os.Exit(1)
	}
	fmt.Println("go: all checks passed")
}

// open returns an in-memory DuckDB whose connections have the extension.
func open(extension string) (*sql.DB, error) {
	connector, err := duckdb.NewConnector("?allow_unsigned_extensions=true", func(execer driver.ExecerContext) error {
		_, err := execer.ExecContext(context.Background(), "LOAD "+literal(extension), nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func literal(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// run executes statements one after the other.
func run(db *sql.DB, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// expect compares the one value of a query.
func expect(db *sql.DB, want any, query string, args ...any) error {
	var got any
	if err := db.QueryRow(query, args...).Scan(&got); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("%s: got %v, want %v", query, got, want)
	}
	return nil
}
