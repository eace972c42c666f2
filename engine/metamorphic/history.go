package metamorphic

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is a kind of operation. The names in kindNames are its text form.
type Kind uint8

// The operations. N is what the text form calls n.
const (
	OpPut           Kind = iota // N rows, each a change of its own
	OpDelete                    // N keys, each a change of its own
	OpBatch                     // one change of N puts and deletes
	OpLoad                      // one change of N rows, large enough for files of its own
	OpGuarded                   // one change of N rows that was decided on by a held snapshot
	OpCancel                    // one change of N rows that is interrupted
	OpFlush                     //
	OpCompact                   //
	OpCompactRange              //
	OpGarbage                   // collect garbage; a dry run where N is 0
	OpSnapshot                  // take a snapshot and hold it
	OpReadHeld                  // compare a held snapshot with the model
	OpRelease                   // compare and release a held snapshot
	OpScan                      // N scans with random bounds
	OpWalk                      // begin a scan of batches of N rows, of a snapshot that is released at once
	OpStep                      // read some batches of such a scan, to its end if N is 0
	OpGet                       // N lookups
	OpMultiGet                  // one lookup of N keys
	OpCheck                     // compare everything
	OpClose                     // close and open again
	OpKill                      // end without a flush, as kill -9 does, and open again
	OpCrash                     // cut the power and open again
	OpCrashIn                   // cut the power at the N-th change of the disk from here
	OpDiskFull                  // of 100 writes to the disk N fail from here on
	OpDiskRelief                // end OpDiskFull
	OpSyncFails                 // the N-th sync from here fails
	OpReaderOpen                // open the database for reading, as another process would
	OpReaderCheck               // compare a reader, which shows the state of its last refresh
	OpReaderRefresh             // refresh a reader and compare it
	OpReaderFree                //
	OpDrop                      // drop the table and create it again, unless N is 0
	OpReplace                   // create the table, or replace it, together with N edits
	OpTxnBegin                  // begin a transaction
	OpTxnWrite                  // a statement of N edits in a transaction
	OpTxnRead                   // compare what a transaction sees
	OpTxnEnd                    // commit a transaction, or roll it back if N is 0
	OpRemember                  // flush, and remember the version with what it shows
	OpTravel                    // read a remembered version
	OpChanges                   // apply the change feed since a remembered version
	OpAlter                     // change the schema, of what a transaction sees or of the table
	numKinds
)

var kindNames = [numKinds]string{
	"put", "delete", "batch", "load", "guarded", "cancel", "flush", "compact", "compact-range", "garbage", "snapshot",
	"read-held", "release", "scan", "walk", "step", "get", "multi-get", "check", "close", "kill", "crash", "crash-in",
	"disk-full", "disk-relief", "sync-fails", "reader-open", "reader-check", "reader-refresh", "reader-free", "drop",
	"replace", "txn-begin", "txn-write", "txn-read", "txn-end", "remember", "travel", "changes",
	"alter",
}

// String returns the name used in the text form.
func (k Kind) String() string {
	if k < numKinds {
		return kindNames[k]
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Op is one operation. What is random about it comes from its own seed.
type Op struct {
	Kind Kind
	N    int
	Seed uint64
}

// String returns the operation's line in the text form.
func (o Op) String() string { return fmt.Sprintf("%s n=%d seed=%d", o.Kind, o.N, o.Seed) }

// History is a sequence of operations, and the configuration to run it under.
type History struct {
	// Config is the name of a configuration: see [ConfigByName].
	Config string
	// Keys is how many keys the table may have.
	Keys int64
	Ops  []Op
}

const textHeader = "merutable history 1"

// String returns the text form: a header, the configuration, the number of keys, one line per operation.
func (h History) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nconfig %s\nkeys %d\n", textHeader, h.Config, h.Keys)
	for _, op := range h.Ops {
		fmt.Fprintln(&b, op)
	}
	return b.String()
}

// Parse reads the text form. Empty lines and lines that begin with # are skipped.
func Parse(text string) (h History, err error) {
	header := false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case !header:
			if line != textHeader {
				return h, fmt.Errorf("line %d: %q instead of %q", i+1, line, textHeader)
			}
			header = true
			continue
		}
		if err := h.parseLine(line); err != nil {
			return h, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if h.Keys < 1 || h.Config == "" {
		return h, fmt.Errorf("a history needs a config and at least one key, not %q and %d", h.Config, h.Keys)
	}
	return h, nil
}

func (h *History) parseLine(line string) error {
	var word string
	var op Op
	if n, _ := fmt.Sscanf(line, "config %s", &word); n == 1 {
		h.Config = word
		return nil
	}
	if n, _ := fmt.Sscanf(line, "keys %d", &h.Keys); n == 1 {
		return nil
	}
	if _, err := fmt.Sscanf(line, "%s n=%d seed=%d", &word, &op.N, &op.Seed); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	for k, name := range kindNames {
		if name == word {
			op.Kind = Kind(k)
			h.Ops = append(h.Ops, op)
			return nil
		}
	}
	return fmt.Errorf("operation %q is unknown", word)
}
