package engine

import (
	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/manifest"
)

// A commit over several tables of a database in an object store: their manifests are put with the tag of an intent, and
// count with the object that says so (manifest/intent.go). As soon as one of them is there, and the intent is not, its
// version is taken: whatever goes wrong then the writer has to be opened anew, which gives the intent up.

// takeAll takes a request that changes several tables.
func (j *objectCommit) takeAll(r *commitRequest) {
	for _, b := range r.parts {
		if r.err = j.add(b, []*commitRequest{r}); r.err != nil {
			return
		}
	}
	r.seq = j.last
	j.tag = manifest.NewTag(j.d.now(), newUUID())
	j.requests = append(j.requests, r)
}

// firstError returns that of the parts.
func (j *objectCommit) firstError() error {
	for _, p := range j.parts {
		if p.err != nil {
			return p.err
		}
	}
	return nil
}

// failAll makes an error that of all parts.
func (j *objectCommit) failAll(err error) {
	for _, p := range j.parts {
		p.err, p.next = err, nil
	}
}

// decide commits the intent of the manifests that were put. It runs under all commitMu.
func (j *objectCommit) decide() {
	d := j.d
	err, put := j.firstError(), false
	var parts []manifest.IntentPart
	for _, p := range j.parts {
		if p.next != nil {
			put = true
			parts = append(parts, manifest.IntentPart{Prefix: d.objects.Prefix(p.c.dir), Version: p.next.Version})
		}
	}
	if err == nil {
		err = d.commitIntent(j.tag, parts)
	} else if put {
		err = d.giveUp(j.tag, err)
	}
	if err != nil {
		j.failAll(err)
		return
	}
	for _, p := range j.parts {
		delete(p.next.Properties, manifest.PropIntent)
	}
}

// commitIntent makes the manifests of an intent, all of which are there, count. After an error the database takes no more
// writes.
func (d *database) commitIntent(tag string, parts []manifest.IntentPart) error {
	err := manifest.CommitIntent(d.objects.Store(), tag, parts, d.opts.commitPatience())
	switch {
	case err == nil:
		return nil
	case base.CodeOf(err) == base.CodeConflict:
		return d.fail(base.Wrapf(base.CodeConflict, err, "another writer has given the commit over several tables up: this one takes no writes until the database is opened anew"))
	case manifest.NotCommitted(err):
		return d.giveUp(tag, err)
	}
	return d.fail(err)
}

// giveUp gives up a commit of which some manifests may be there, and returns why. What keeps it from that, the next open
// does.
func (d *database) giveUp(tag string, why error) error {
	err := d.fail(why)
	_ = manifest.AbortIntent(d.objects.Store(), tag, d.opts.commitPatience()) // a failure leaves it undecided
	return err
}

// putAll is what stages, logs and publishes such a commit elsewhere. It runs under writeMu and all commitMu.
func (j *joint) putAll() error {
	d := j.d
	j.intent.first = d.lastSeq + 1
	tag := manifest.NewTag(d.now(), newUUID())
	added, dropped := d.catalog.next(), d.catalog.next()
	adds, drops := 0, 0
	var parts []manifest.IntentPart
	for _, p := range j.parts {
		p.s = p.c.current()
		if err := j.makeManifest(p); err != nil {
			return err
		}
		p.next.Properties[manifest.PropIntent] = tag
		if known := d.tables[p.c.id] == p.c; p.c.id != 0 && !known {
			added.add(p.c.id)
			adds++
		} else if p.c.id != 0 && p.t == nil {
			drops++
		}
	}
	if len(added.ids)+1 > maxTables {
		return base.Errorf(base.CodeInvalidArgument, "%s would hold %d tables: the limit is %d", d.root, len(added.ids)+1, maxTables)
	}
	for i, p := range j.parts {
		if err := p.c.store.Commit(p.next); err != nil {
			if i == 0 && manifest.NotCommitted(err) {
				return err
			}
			return d.giveUp(tag, err)
		}
		parts = append(parts, manifest.IntentPart{Prefix: d.objects.Prefix(p.c.dir), Version: p.next.Version})
	}
	if adds > 0 { // they are listed before they are there
		added.lastSeq = max(added.lastSeq, j.intent.last())
		if err := d.commitCatalog(added); err != nil {
			return d.giveUp(tag, err)
		}
		dropped = added.next()
		j.listed = added
	}
	if err := d.commitIntent(tag, parts); err != nil {
		return err
	}
	for _, p := range j.parts {
		delete(p.next.Properties, manifest.PropIntent)
		if p.t == nil && p.c.id != 0 {
			dropped.remove(p.c.id)
		}
	}
	if drops > 0 { // what keeps them listed, the next open puts in order
		dropped.nextID = max(dropped.nextID, d.nextID)
		dropped.lastSeq = max(dropped.lastSeq, j.intent.last())
		if d.commitCatalog(dropped) == nil {
			j.listed, j.unlisted = dropped, true
		}
	}
	return nil
}
