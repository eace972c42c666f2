package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// surface drives the whole SQL surface from many goroutines, and checks that the host's own runtime still has its panics
// and its signals afterwards.
func surface(db *sql.DB, path string) error {
	err := run(db,
		"ATTACH "+literal(path)+" AS m (TYPE merutable)",
		"CREATE TABLE m.t(w INTEGER, id BIGINT, s VARCHAR, PRIMARY KEY (w, id))",
		"INSERT INTO m.t SELECT 0, i, 's' || i FROM range(100000) r(i)",
		"CALL merutable_flush('m')",
		"INSERT INTO m.t VALUES (0, 7, 'upserted')",
		"DELETE FROM m.t WHERE w = 0 AND id >= 99990")
	if err != nil {
		return err
	}
	checks := []func() error{
		func() error { return expect(db, 99990, "SELECT count(*) FROM m.t") },
		func() error { return expect(db, "upserted", "SELECT s FROM m.t WHERE w = 0 AND id = ?", 7) },
		func() error { return expect(db, "s8", "SELECT s FROM merutable_get("+literal(path)+", 0, 8)") },
		func() error { return expect(db, 99990, "SELECT count(*) FROM merutable_scan("+literal(path)+")") },
		func() error { return errorsAreErrors(db, path) },
		func() error { return goroutines(db, path) },
		hostRecovers,
		hostGetsSignals,
		func() error { return expect(db, 99990+16*20, "SELECT count(*) FROM m.t") },
		func() error {
			return run(db, "DETACH m", "ATTACH "+literal(path)+" AS m (TYPE merutable)")
		},
		func() error { return expect(db, 99990+16*20, "SELECT count(*) FROM m.t") },
	}
	for i, check := range checks {
		if err := check(); err != nil {
			return fmt.Errorf("check %d: %w", i, err)
		}
	}
	return nil
}

func errorsAreErrors(db *sql.DB, path string) error {
	for _, query := range []string{
		"SELECT * FROM m.nosuch",
		"INSERT INTO m.t VALUES (NULL, 1, 'x')",
		"SELECT * FROM merutable_get(" + literal(path) + ", 'no number', 1)",
		"SELECT * FROM merutable_scan('/nowhere/at/all')",
	} {
		_, err := db.Exec(query)
		if err == nil {
			return fmt.Errorf("%s worked", query)
		}
		if strings.Contains(err.Error(), "INTERNAL") || strings.Contains(err.Error(), "FATAL") {
			return fmt.Errorf("%s: %w", query, err)
		}
		if err := expect(db, 42, "SELECT 42"); err != nil {
			return err
		}
	}
	return nil
}

// goroutines writes and reads from sixteen goroutines while the host's heap is busy.
func goroutines(db *sql.DB, path string) error {
	var group sync.WaitGroup
	failures := make([]error, 16)
	for w := range failures {
		group.Go(func() {
			for i := range 20 {
				_, err := db.Exec("INSERT INTO m.t VALUES (?, ?, 'w')", w+1, i)
				if err == nil {
					err = expect(db, i+1, "SELECT count(*) FROM m.t WHERE w = ?", w+1)
				}
				if err == nil {
					err = expect(db, "w", fmt.Sprintf("SELECT s FROM merutable_get(%s, %d, %d)", literal(path), w+1, i))
				}
				if err != nil {
					failures[w] = err
					return
				}
				_ = make([]byte, 1<<20)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// hostRecovers: a nil dereference in the host is still a panic of the host.
func hostRecovers() (err error) {
	defer func() {
		if recover() == nil {
			err = errors.New("a nil dereference did not panic")
		}
	}()
	var p *int
	*p = 1
	return nil
}

func hostGetsSignals() error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	defer signal.Stop(signals)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		return err
	}
	select {
	case <-signals:
		return nil
	case <-time.After(5 * time.Second):
		return errors.New("the host no longer gets its signals")
	}
}
