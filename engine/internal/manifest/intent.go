package manifest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// A commit over several tables in an object store. Each table's manifest is put as any other is, but with the tag of an
// intent; it counts only once the object of that tag says so, which is put if there is none: that is the commit. Until then,
// and where the object says that the commit was given up, a version is what the one before it was. Whoever opens the
// database for writing and finds a manifest of an intent that is not decided gives it up.

const (
	// PropIntent is the tag of the intent that a manifest belongs to.
	PropIntent = "merutable.intent"
	// IntentDir is where the objects of intents are, below the database.
	IntentDir = "intents"

	intentCommit = "merutable commit\n"
	intentAbort  = "merutable abort\n"
	// maxIntentBytes is far above what all tables of a database take.
	maxIntentBytes = 1 << 20
	tagTime        = 12 // digits of a tag's time
)

// IntentPart is what an intent does to one table: Prefix is what its keys begin with, "" or with a slash at the end.
type IntentPart struct {
	Prefix  string
	Version int64
}

// NewTag makes the tag of an intent. Tags ascend with time, about.
func NewTag(now time.Time, uuid string) string {
	return fmt.Sprintf("%0*x-%s", tagTime, max(now.UnixMilli(), 0), uuid)
}

func intentKey(tag string) string { return IntentDir + "/" + tag }

// CommitIntent makes the manifests of a tag count. Its errors are those of [PutOnce]; CodeConflict says that another writer
// has given the commit up.
func CommitIntent(store objstore.Store, tag string, parts []IntentPart, patience time.Duration) error {
	var b strings.Builder
	b.WriteString(intentCommit)
	for _, p := range parts {
		fmt.Fprintf(&b, "%d %s\n", p.Version, p.Prefix)
	}
	_, err := PutOnce(store, intentKey(tag), []byte(b.String()), patience)
	return err
}

// AbortIntent gives the commit of a tag up, unless it was committed. Either is final.
func AbortIntent(store objstore.Store, tag string, patience time.Duration) error {
	_, err := PutOnce(store, intentKey(tag), []byte(intentAbort), patience)
	if base.CodeOf(err) == base.CodeConflict { // it was committed, or else the object is damaged
		_, _, err = readIntent(context.Background(), store, tag)
	}
	return err
}

// readIntent says what became of an intent; parts are of a committed one.
func readIntent(ctx context.Context, store objstore.Store, tag string) (committed bool, parts []IntentPart, err error) {
	key := intentKey(tag)
	data, err := objstore.ReadSmall(ctx, store, key, maxIntentBytes)
	if err != nil {
		return false, nil, err
	}
	if string(data) == intentAbort {
		return false, nil, nil
	}
	rest, ok := strings.CutPrefix(string(data), intentCommit)
	if !ok || rest != "" && !strings.HasSuffix(rest, "\n") {
		return false, nil, base.Errorf(base.CodeCorruption, "%s: %s is no intent", store, key)
	}
	for line := range strings.Lines(rest) {
		var p IntentPart
		version, prefix, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, err := fmt.Sscanf(version, "%d", &p.Version); err != nil || p.Version < 1 {
			return false, nil, base.Errorf(base.CodeCorruption, "%s: %s: line %q", store, key, line)
		}
		p.Prefix = prefix
		parts = append(parts, p)
	}
	return true, parts, nil
}

// resolve returns what a manifest that was read stands for. CodeNotFound: it stands for another one that is gone.
func (s *ObjectStore) resolve(m *Manifest) (*Manifest, error) {
	tag := m.Properties[PropIntent]
	if tag == "" {
		return m, nil
	}
	committed, _, err := readIntent(context.Background(), s.store, tag)
	decided := base.CodeOf(err) != base.CodeNotFound
	if decided && err != nil {
		return nil, err
	}
	if committed {
		delete(m.Properties, PropIntent)
		m.rewritten = true
		return m, nil
	}
	before, err := s.At(m.Version - 1)
	if err != nil {
		return nil, base.Wrapf(base.CodeOf(err), err, "%s: version %d was given up, and is what version %d was", s.name, m.Version, m.Version-1)
	}
	same := *before
	same.Version, same.UpdatedMS, same.rewritten, same.givenUp = m.Version, m.UpdatedMS, true, decided
	if same.undecided = ""; !decided {
		same.undecided = tag
	}
	return &same, nil
}

// AsStored reports whether the object of the version holds this manifest as it is.
func (m *Manifest) AsStored() bool { return !m.rewritten }

// GivenUp reports whether the version is that of a commit which was given up: it needs the manifest of the one before.
func (m *Manifest) GivenUp() bool { return m.givenUp }

// Undecided returns the tag of the intent that decides what the version is, "" where it is known.
func (m *Manifest) Undecided() string { return m.undecided }

// IntentSweep removes the objects of intents that nobody needs any more: committed ones whose manifests were all reclaimed,
// and those that were given up so long ago that their writer is gone. Its zero value is ready.
type IntentSweep struct {
	after string // the last key that was looked at
}

// Sweep looks at some of the oldest; the next one goes on behind them, and begins anew where there are no more.
func (w *IntentSweep) Sweep(ctx context.Context, store objstore.Store, now time.Time) error {
	const atATime = 256
	found, err := store.List(ctx, IntentDir+"/", w.after, atATime)
	if err != nil {
		return err
	}
	for _, i := range found {
		if now.Sub(i.ModTime) < LeastGrace {
			w.after = ""
			return nil
		}
		needed, err := intentNeeded(ctx, store, i, now)
		if err != nil {
			return err
		}
		if !needed {
			if err := store.Delete(ctx, i.Key); err != nil {
				return err
			}
		}
		w.after = i.Key
	}
	if len(found) < atATime {
		w.after = ""
	}
	return nil
}

// intentNeeded reports whether somebody may still ask for the object of an intent.
func intentNeeded(ctx context.Context, store objstore.Store, i objstore.Info, now time.Time) (bool, error) {
	const forgotten = 7 * 24 * time.Hour
	committed, parts, err := readIntent(ctx, store, strings.TrimPrefix(i.Key, IntentDir+"/"))
	if err != nil {
		return true, err
	}
	if !committed {
		return now.Sub(i.ModTime) < forgotten, nil
	}
	for _, p := range parts {
		_, err := store.Head(ctx, p.Prefix+Dir+"/"+FileName(p.Version))
		if base.CodeOf(err) != base.CodeNotFound {
			return true, err
		}
	}
	return false, nil
}
