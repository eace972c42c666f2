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
		_, _, err = readIntent(store, tag)
	}
	return err
}

// readIntent says what became of an intent; parts are of a committed one.
func readIntent(store objstore.Store, tag string) (committed bool, parts []IntentPart, err error) {
	key := intentKey(tag)
	data, err := objstore.ReadSmall(context.Background(), store, key, maxIntentBytes)
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

// resolve returns what a manifest that was read stands for.
func (s *ObjectStore) resolve(m *Manifest) (*Manifest, error) {
	tag := m.Properties[PropIntent]
	if tag == "" {
		return m, nil
	}
	committed, _, err := readIntent(s.store, tag)
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
		return nil, err
	}
	same := *before
	same.Version, same.UpdatedMS, same.rewritten = m.Version, m.UpdatedMS, true
	if same.undecided = ""; !decided {
		same.undecided = tag
	}
	return &same, nil
}

// AsStored reports whether the object of the version holds this manifest as it is.
func (m *Manifest) AsStored() bool { return !m.rewritten }

// Undecided returns the tag of the intent that decides what the version is, "" where it is known.
func (m *Manifest) Undecided() string { return m.undecided }

// SweepIntents removes the objects of intents that nobody needs any more: committed ones whose manifests were all
// reclaimed, and those that were given up so long ago that their writer is gone. It looks at some of the oldest.
func SweepIntents(store objstore.Store, now time.Time) error {
	const atATime = 64
	const forgotten = 7 * 24 * time.Hour
	ctx := context.Background()
	found, err := store.List(ctx, IntentDir+"/", "", atATime)
	if err != nil {
		return err
	}
	for _, i := range found {
		if now.Sub(i.ModTime) < LeastGrace {
			break
		}
		committed, parts, err := readIntent(store, strings.TrimPrefix(i.Key, IntentDir+"/"))
		if err != nil {
			return err
		}
		needed := !committed && now.Sub(i.ModTime) < forgotten
		for _, p := range parts {
			_, err := store.Head(ctx, p.Prefix+Dir+"/"+FileName(p.Version))
			if err != nil && base.CodeOf(err) != base.CodeNotFound {
				return err
			}
			if needed = err == nil; needed {
				break
			}
		}
		if needed {
			continue
		}
		if err := store.Delete(ctx, i.Key); err != nil {
			return err
		}
	}
	return nil
}
