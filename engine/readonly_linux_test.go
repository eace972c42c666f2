package engine

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestReaderWithoutRights has a process read that may write nothing in the directory, for it is nobody's, or has it on
// a read-only mount: it reads, and pins what it reads.
func TestReaderWithoutRights(t *testing.T) {
	if mode := os.Getenv(roleVar); mode != "" {
		if err := readWithoutRights(mode, os.Getenv(dirVar)); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else, or mount")
	}
	for _, mode := range []string{"nobody", "mount"} {
		t.Run(mode, func(t *testing.T) { withoutRights(t, mode) })
	}
}

func withoutRights(t *testing.T, mode string) {
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir), dir} {
		if d != os.TempDir() {
			must(t, os.Chmod(d, 0o755))
		}
	}
	db, err := Open(dir, frugal)
	must(t, err)
	defer db.Free()
	must(t, db.CreateTable(testSchema()))
	rng := rand.New(rand.NewPCG(4, 4))
	balance, err := balances(db)
	must(t, err)
	change := func() {
		must(t, replaceGroup(db, rng, procSmall, procSmallN))
		must(t, transfer(db, rng, balance))
		must(t, db.Flush())
	}
	change()
	cmd := exec.Command(os.Args[0], "-test.run=^TestReaderWithoutRights$")
	cmd.Env = append(os.Environ(), roleVar+"="+mode, dirVar+"="+dir)
	if mode == "mount" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		if probe := (&exec.Cmd{Path: "/bin/true", SysProcAttr: cmd.SysProcAttr}); probe.Run() != nil {
			t.Skip("no mount namespace can be made here")
		}
	}
	p := startCommand(t, cmd)
	p.await(t)
	for range 4 {
		change()
	}
	if r := collectNow(t, db); r.ReaderPins != 1 {
		t.Errorf("the reader's manifest is not pinned: %+v", r)
	}
	p.finish(t)
	if r := collectNow(t, db); r.ReaderPins != 0 || r.KeptManifests != 2 {
		t.Errorf("the reader is gone: %+v", r)
	}
}

// giveUpRights makes this process one that may write nothing in dir.
func giveUpRights(mode, dir string) error {
	if mode == "mount" {
		return errors.Join(syscall.Mount(dir, dir, "", syscall.MS_BIND, ""),
			syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	}
	const nobody = 65534
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
}

func readWithoutRights(mode, dir string) error {
	if err := giveUpRights(mode, dir); err != nil {
		return err
	}
	if f, err := os.Create(filepath.Join(dir, "mine")); err == nil {
		_ = f.Close()
		return errors.New("it may write")
	}
	db, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer db.Free()
	held, err := db.Snapshot()
	if err != nil {
		return err
	}
	before, err := addUp(held)
	if err != nil {
		return err
	}
	fmt.Println("did")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the writer went on
	after, err := addUp(held)
	if err == nil && after != before {
		err = errors.New("the snapshot changed")
	}
	if err == nil {
		err = db.Refresh()
	}
	if err == nil {
		err = lookAt(db)
	}
	return err
}
