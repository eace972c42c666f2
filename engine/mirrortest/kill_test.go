package mirrortest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/merutable/merutable/engine"
	"github.com/merutable/merutable/engine/internal/objstore"
	"github.com/merutable/merutable/engine/internal/objstore/s3test"
)

// Environment of a process that mirrors until it is killed.
const (
	envDir      = "MIRRORTEST_DIR"
	envEndpoint = "MIRRORTEST_ENDPOINT"
	envSeed     = "MIRRORTEST_SEED"
	envLast     = "MIRRORTEST_LAST"
	envParts    = "MIRRORTEST_PARTS"
)

func TestMain(m *testing.M) {
	if os.Getenv(envDir) != "" {
		if err := mirrorForEver(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// mirrorForEver writes to a database with a mirror; the last process of a test ends when the mirror has all.
func mirrorForEver() error {
	if os.Getenv(envParts) != "" {
		tuning := objstore.DefaultS3Tuning()
		tuning.WholeBytes, tuning.PartBytes = 0, 1000
		objstore.SetS3Tuning(tuning)
	}
	o := options(os.Getenv(envEndpoint))
	o.MirrorRetain = 200 * time.Millisecond
	db, err := open(os.Getenv(envDir), o)
	if err != nil {
		return err
	}
	var seed uint64
	if _, err := fmt.Sscan(os.Getenv(envSeed), &seed); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(7, seed))
	for {
		if err := write(db, rng, 200); err != nil {
			return err
		}
		if os.Getenv(envLast) != "" {
			break
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		s := db.MirrorStatus()
		if s.LagSecs == 0 && s.Seq == s.VisibleSeq {
			return db.Close()
		}
		if s.State == "stopped" || time.Now().After(deadline) {
			return fmt.Errorf("%+v", s)
		}
	}
}

// process is a running mirrorForEver.
type process struct {
	cmd *exec.Cmd
	out strings.Builder
}

func start(t *testing.T, dir, endpoint string, seed int, last bool) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), envDir+"="+dir, envEndpoint+"="+endpoint, envSeed+"="+fmt.Sprint(seed))
	if last {
		p.cmd.Env = append(p.cmd.Env, envLast+"=1")
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	must(t, p.cmd.Start())
	return p
}

// TestMirrorKilled kills processes that mirror to a real server.
func TestMirrorKilled(t *testing.T) {
	front := s3test.NewFront(t, s3test.Forward(s3test.Start(t).Endpoint))
	killed(t, front, 12, 25)
}

// TestMirrorKilledInParts has objects go in parts, of a size that no real server takes, and listings in tiny pages.
func TestMirrorKilledInParts(t *testing.T) {
	t.Setenv(envParts, "1") // for the processes
	stub := s3test.NewStub()
	stub.PageSize = 3
	front := s3test.NewFront(t, stub)
	killed(t, front, 9, 80)
	parts := 0
	for _, r := range front.Requests() {
		if r.Op == "UploadPart" {
			parts++
		}
	}
	if parts == 0 {
		t.Error("nothing went in parts")
	}
}

// killed kills a process at random requests, of the first ones: when they come, when they were applied but not answered,
// and when they were answered. Each time another one goes on. Nothing that was confirmed is sent again, and at the end the
// mirror is the database.
func killed(t *testing.T, front *s3test.Front, rounds, first int) {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(6, 5))
	if testing.Short() {
		rounds /= 3
	}
	for round := range rounds {
		var p *process
		var mu sync.Mutex // p is set
		target, n, fault := 1+rng.IntN(first), 0, s3test.Fault{}
		switch round % 3 {
		case 0:
			fault.Drop = true
		case 1:
			fault.LoseAnswer = true
		}
		mu.Lock()
		front.SetFault(func(s3test.Request) s3test.Fault {
			if n++; n < target {
				return s3test.Fault{}
			}
			mu.Lock()
			defer mu.Unlock()
			_ = p.cmd.Process.Kill()
			return fault
		})
		p = start(t, dir, front.Endpoint, round, false)
		mu.Unlock()
		_ = p.cmd.Wait()
		front.SetFault(nil)
		if n < target {
			t.Fatalf("round %d: the process ended by itself: %s", round, p.out.String())
		}
	}
	p := start(t, dir, front.Endpoint, rounds, true)
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, p.out.String())
	}
	db, err := engine.Open(dir, engine.Options{ReadOnly: true})
	must(t, err)
	defer db.Free()
	wantSame(t, rowsOf(t, db), front)
	wantProtocol(t, front)
	t.Logf("%d requests", front.Count())
}
