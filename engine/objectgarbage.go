package engine

import (
	"context"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
	"github.com/merutable/merutable/engine/internal/objstore"
)

// Garbage in an object store. What a manifest once named goes as in a directory, and a writer that has lost its place
// without knowing takes nothing from who has it: a file that only old manifests name is named by no later one. Manifests
// go strictly in their order (manifest.ObjectStore relies on that) and stay for manifest.LeastGrace at least.
//
// Orphans are another matter: what this writer does not know may be what another one is about to commit, or has committed.
// So those alone go that are older than a manifest which this writer has committed itself: whoever was at work before that
// has lost his place with it, and can commit none of them.

const (
	// objectGCPause is gcPause where each file takes a request.
	objectGCPause = 2 * time.Second
	// lowWaterEvery is how often low_water.txt is written at most, which is a hint.
	lowWaterEvery = time.Minute
	// sweepEvery is how often orphans are looked for, as long as there are commits.
	sweepEvery = time.Hour
	// sweepSlack is by how much clocks of one store may differ.
	sweepSlack = time.Minute
)

// pauseAfter is how long the collector rests after a pass that removed something.
func (d *database) pauseAfter() time.Duration {
	if d.remote() {
		return objectGCPause
	}
	return gcPause
}

// dropObjects removes files that no manifest names any more, several at a time, and buries those that are gone.
func (p *gcPass) dropObjects(rels []string) {
	const portion = 64
	for len(rels) > 0 && !p.stopped() {
		n := min(portion, len(rels))
		names := make([]string, n)
		for i, rel := range rels[:n] {
			names[i] = p.c.fs.Join(p.c.dir, rel)
		}
		if err := p.c.objects.RemoveEach(names); err != nil {
			p.again = true
			return
		}
		for i, rel := range rels[:n] {
			p.removedObject(names[i], GarbageSuperseded)
			p.c.gc.history.bury(rel)
		}
		rels = rels[n:]
	}
	p.again = p.again || len(rels) > 0
}

// removedObject takes note of a file that was removed. How many bytes it had would take a request.
func (p *gcPass) removedObject(name string, reason GarbageReason) {
	p.report.Items = append(p.report.Items, GarbageItem{Path: name, Reason: reason})
	p.report.Files++
	p.removed++
	p.c.gc.filesRemoved.Add(1)
}

// removeManifestObject removes a manifest.
func (p *gcPass) removeManifestObject(version int64) error {
	if err := p.c.store.Remove(version); err != nil {
		p.again = true
		return err
	}
	p.removedObject(p.c.fs.Join(p.c.dir, manifest.Dir, manifest.FileName(version)), GarbageManifest)
	return nil
}

// untilClosed returns a context that ends with a channel.
func untilClosed(stop <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// sweepObjects removes orphans.
func (p *gcPass) sweepObjects(all bool) error {
	c := p.c
	own := c.gc.own.Load()
	recent := own == c.gc.sweptAs || time.Since(c.gc.sweptAt) < sweepEvery // without a commit nothing comes to be found
	if own == 0 || !all && recent || !c.gc.history.complete() {
		return nil
	}
	if p.stopped() || !p.deadline.IsZero() { // nobody waits for a store that does not answer: the next open goes on
		return nil
	}
	ctx, cancel := untilClosed(c.stop)
	defer cancel()
	store := c.objects.Store()
	prefix := c.objects.Prefix(c.dir)
	fence, err := store.Head(ctx, prefix+manifest.Dir+"/"+manifest.FileName(own))
	if base.CodeOf(err) == base.CodeNotFound {
		return nil // it was reclaimed; a later commit does as well
	}
	if err != nil {
		return err
	}
	if c.id == 0 && !p.dry {
		if err := c.gc.intents.Sweep(ctx, store, fence.ModTime); err != nil {
			return err
		}
	}
	oldest := fence.ModTime.Add(-c.gc.slack)
	var orphans []objstore.Info
	err = objstore.ListAll(ctx, store, prefix+dataDir+"/", func(i objstore.Info) error {
		rel := strings.TrimPrefix(i.Key, prefix)
		name := rel[strings.LastIndexByte(rel, '/')+1:]
		switch {
		case c.gc.history.named(rel) || c.pending.has(rel):
		case !manifest.IsDataFileName(name):
			p.unknown(c.fs.Join(c.dir, rel))
		case i.ModTime.Before(oldest):
			orphans = append(orphans, i)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range orphans {
		if p.stopped() || !p.allowed() {
			return base.Errorf(base.CodeClosed, "%s: the collection was cut short", c.dir)
		}
		name := c.fs.Join(c.dir, strings.TrimPrefix(i.Key, prefix))
		if p.dry {
			p.report.Items = append(p.report.Items, GarbageItem{Path: name, Bytes: i.Size, Reason: GarbageOrphan})
			continue
		}
		if err := c.fs.Remove(name); err != nil {
			return err
		}
		p.removedObject(name, GarbageOrphan)
	}
	if !p.dry {
		c.gc.sweptAt, c.gc.sweptAs = time.Now(), own
	}
	return nil
}
