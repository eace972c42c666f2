package manifest

import (
	"bytes"
	"context"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// DefaultPatience is how long [PutOnce] tries to find out what became of a commit.
const DefaultPatience = 30 * time.Second

const (
	firstPause = 20 * time.Millisecond
	lastPause  = 2 * time.Second
	// lastWord bounds the request that asks once more when patience is over.
	lastWord = 5 * time.Second
)

// PutOnce makes an object that counts as a commit, so that its writer knows afterwards whether it did. An answer that was
// lost, or an error that leaves it open, is followed by another attempt, which finds what the one before left: our bytes
// are the commit, others are another writer's. After an error for which [NotCommitted] is true there is no such object of
// ours and will be none. CodeConflict: another writer's is there. After any other error nobody knows.
func PutOnce(store objstore.Store, key string, data []byte, patience time.Duration) (objstore.Info, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	doubt := false
	var err error
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		var info objstore.Info
		info, err = store.PutIfAbsent(ctx, key, objstore.Bytes(data))
		switch {
		case err == nil:
			return info, nil
		case base.CodeOf(err) == base.CodeAlreadyExists:
			info, known, e := whose(ctx, store, key, data)
			if known {
				return info, e
			}
			doubt, err = true, e
		case !doubt && !objstore.MayHaveHappened(err):
			return info, notCommitted{err}
		default:
			doubt = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			continue
		}
		break
	}
	last, end := context.WithTimeout(context.Background(), lastWord)
	defer end()
	if info, known, e := whose(last, store, key, data); known {
		return info, e
	}
	return objstore.Info{}, base.Wrapf(base.CodeOf(err), err, "%s: %s: nobody knows whether it was committed, opening the database anew tells", store, key)
}

// whose says what the object is that is there: err is nil for ours, CodeConflict for another writer's. known is false where
// it cannot be read.
func whose(ctx context.Context, store objstore.Store, key string, data []byte) (info objstore.Info, known bool, err error) {
	there, err := objstore.ReadSmall(ctx, store, key, int64(len(data)))
	if err == nil && bytes.Equal(there, data) {
		info, err = store.Head(ctx, key)
		return info, err == nil, err
	}
	if err != nil { // it may be larger than ours
		size, e := store.Head(ctx, key)
		if e != nil || size.Size == int64(len(data)) {
			return info, false, err
		}
	}
	return info, true, conflict(store, key)
}

func conflict(store objstore.Store, key string) error {
	return base.Errorf(base.CodeConflict, "%s: %s was committed by another writer", store, key)
}
