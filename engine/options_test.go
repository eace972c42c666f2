package engine

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// optionSamples has for each option a value by name that is not its default.
var optionSamples = map[string]string{
	"read_only": "true", "create_if_missing": "false", "durability": "interval", "sync_interval_ms": "250",
	"memtable_bytes": "8388608", "max_immutables": "3", "cache_bytes": "0", "row_cache_bytes": "1048576",
	"memory_limit": "1073741824", "default_memory_limit": "2147483648", "flush_threads": "3", "compaction_threads": "5",
	"auto_compaction": "false", "l0_files": "6", "l0_slow_files": "30", "l0_stop_files": "40",
	"pending_slow_bytes": "1073741824", "pending_stop_bytes": "2147483648", "target_file_bytes": "33554432",
	"base_level_bytes": "134217728", "level_multiplier": "8", "max_deleted_percent": "35",
	"compaction_rate_bytes": "10485760", "retain_versions": "12", "retain_secs": "3600", "gc_grace_secs": "0",
	"wal_dir": "/elsewhere", "mirror": "s3://bucket/a/b", "mirror_parallelism": "7", "max_lag_alert_secs": "0",
	"mirror_flush_secs": "3", "mirror_retain_secs": "900", "commit_linger_ms": "20", "object_cache_dir": "/cache",
	"object_cache_bytes": "1048576", "s3_endpoint": "http://localhost:9000", "s3_region": "eu-central-1", "s3_url_style": "path",
	"refresh_interval_ms": "250", "s3_use_ssl": "false", "s3_access_key_id": "an id", "s3_secret_access_key": "a secret", "s3_session_token": "a token",
}

func TestOptionsByName(t *testing.T) {
	var all Options
	for i := range optionTable {
		d := &optionTable[i]
		value, known := optionSamples[d.name]
		if !known {
			t.Fatalf("option %s has no sample", d.name)
		}
		var o Options
		if d.given(&o) {
			t.Errorf("%s is set in the zero options", d.name)
		}
		must(t, o.Set(d.name, value))
		if shown := d.format(&o); !d.given(&o) || shown != value && !d.secret || d.secret && strings.Contains(shown, value) {
			t.Errorf("%s = %s: set %v, reads %s", d.name, value, d.given(&o), d.format(&o))
		}
		must(t, all.Set(d.name, value))
	}
	parsed, err := ParseOptions(all.String())
	must(t, err)
	if shown := fmt.Sprintf("%v %+v %#v %s", all, all, all, all); strings.Contains(shown, "a secret") || strings.Contains(shown, "a token") {
		t.Errorf("secrets are shown: %s", shown)
	}
	parsed.S3.AccessKeyID, parsed.S3.SecretAccessKey, parsed.S3.SessionToken = "an id", "a secret", "a token"
	if !reflect.DeepEqual(parsed, all) {
		t.Errorf("read back:\n%s\nfrom\n%s", parsed, all)
	}
	// Every field has a name.
	v := reflect.ValueOf(all)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && v.Field(i).IsZero() {
			t.Errorf("field %s has no option", f.Name)
		}
	}
}

func TestOptionValues(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        int64 // -2: refused
	}{
		{"memtable_bytes", "1048576", 1 << 20},
		{"memtable_bytes", "64MB", 64e6},
		{"memtable_bytes", "1GiB", 1 << 30},
		{"memtable_bytes", "1.5 gib", 3 << 29},
		{"memtable_bytes", "2m", 2e6},
		{"memtable_bytes", "1048575", -2},
		{"memtable_bytes", "8 EiB", -2},
		{"memtable_bytes", "", -2},
		{"memtable_bytes", "MB", -2},
		{"memtable_bytes", "-1MB", -2},
		{"memtable_bytes", "1e300GB", -2},
		{"cache_bytes", "0", -1},
		{"cache_bytes", "0MB", -1},
		{"cache_bytes", "-1", -2},
		{"retain_secs", "0", -1},
		{"l0_files", "0", -2},
		{"l0_files", "4.0", -2},
		{"level_multiplier", "1", -2},
		{"max_deleted_percent", "101", -2},
		{"auto_compaction", "yes", -2},
		{"auto_compaction", "1", 1},
	} {
		var o Options
		err := o.Set(c.name, c.value)
		if c.want == -2 {
			if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), c.name) {
				t.Errorf("%s = %q: %v", c.name, c.value, err)
			}
			continue
		}
		if d := findOption(c.name); err != nil || d.get(&o) != c.want {
			t.Errorf("%s = %q: %d, %v; want %d", c.name, c.value, d.get(&o), err, c.want)
		}
	}
	err := new(Options).Set("memtable", "1")
	if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "memtable_bytes") {
		t.Error(err)
	}
}

func TestOptionsOutOfBounds(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{MemtableBytes: 100}, "memtable_bytes"},
		{Options{MaxImmutables: -1}, "max_immutables"},
		{Options{SyncInterval: time.Hour}, "sync_interval_ms"},
		{Options{Durability: 9}, "durability"},
		{Options{L0SlowFiles: 9, L0StopFiles: 8}, "l0_slow_files = 9 is above l0_stop_files = 8"},
		{Options{L0Files: 9, L0SlowFiles: 8}, "l0_files = 9 is above l0_slow_files = 8"},
		{Options{PendingSlowBytes: 2, PendingStopBytes: 1}, "pending_slow_bytes = 2 is above pending_stop_bytes = 1"},
	} {
		c.o.fs = vfs.NewMem()
		_, err := Open("/db", c.o)
		if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.o, err)
		}
	}
	// A default gives way.
	for _, o := range []Options{
		{L0Files: 50}, {L0SlowFiles: 100}, {L0SlowFiles: 3}, {L0StopFiles: 5}, {L0StopFiles: 2}, {PendingStopBytes: 1}, {PendingSlowBytes: 1 << 45},
	} {
		if _, err := o.effective(); err != nil {
			t.Errorf("%v: %v", o, err)
		}
	}
}

func reopen(t *testing.T, fs vfs.FS, o Options) Options {
	t.Helper()
	db := openMem(t, fs, o)
	defer db.Free()
	must(t, db.Close())
	return db.c.opts
}

func TestOptionsStick(t *testing.T) {
	fs := vfs.NewMem()
	reopen(t, fs, Options{})
	if _, err := fs.Stat("/db/OPTIONS"); base.CodeOf(err) != base.CodeNotFound {
		t.Fatalf("a file for options that nobody set: %v", err)
	}
	reopen(t, fs, Options{
		MemtableBytes: 2 << 20, NoAutoCompaction: true, GCGrace: -1, RetainFor: time.Hour, CacheBytes: 1 << 20, L0SlowFiles: 77,
	})
	got := reopen(t, fs, Options{L0StopFiles: 99})
	want := Options{
		MemtableBytes: 2 << 20, NoAutoCompaction: true, autoCompaction: true, L0SlowFiles: 77, L0StopFiles: 99, RetainFor: time.Hour, fs: fs,
	}.withDefaults()
	want.GCGrace = 0
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got:\n%v\nwant:\n%v", got, want)
	}
	// What is given wins, and a reader sees what a writer stored.
	back := Options{fs: fs, GCGrace: 7 * time.Second}
	must(t, back.Set("auto_compaction", "true"))
	must(t, back.Set("retain_secs", "0"))
	reopen(t, fs, back)
	r := openMem(t, fs, Options{ReadOnly: true})
	defer r.Free()
	if o := r.c.opts; o.NoAutoCompaction || o.RetainFor != 0 || o.GCGrace != 7*time.Second || o.MemtableBytes != 2<<20 {
		t.Fatalf("%v", o)
	}
	// A default that something stored stands in for refuses nothing.
	fs2 := vfs.NewMem()
	reopen(t, fs2, Options{L0Files: 2})
	if o := reopen(t, fs2, Options{L0SlowFiles: 3}); o.L0Files != 2 || o.L0SlowFiles != 3 {
		t.Fatalf("%v", o)
	}
	// A stored option may contradict one that is given.
	_, err := Open("/db", Options{fs: fs, L0StopFiles: 50})
	if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), "/db/OPTIONS") ||
		!strings.Contains(err.Error(), "l0_slow_files = 77") {
		t.Fatal(err)
	}
}

func TestOptionsFile(t *testing.T) {
	for _, c := range []struct {
		text string
		code base.Code
		want string
	}{
		{"merutable options 1", base.CodeOK, ""},
		{"merutable options 1\nmemtable_bytes = 2097152\nshiny = 3", base.CodeOK, ""},
		{"merutable options 2\nmemtable_bytes = 2097152", base.CodeUnsupported, "line 1: \"merutable options 2\""},
		{"merutable options 1\nrequired shiny = 3", base.CodeUnsupported, "line 2: the table needs option shiny"},
		{"merutable options 1\nl0_files = 4\nmemtable_bytes = huge", base.CodeUnsupported, "line 3: option memtable_bytes = \"huge\""},
		{"merutable options 1\nmemtable_bytes", base.CodeCorruption, "line 2: \"memtable_bytes\""},
		{"merutable options 1\n\nl0_files = 4", base.CodeCorruption, "line 2: \"\""},
		{"merutable options 1\ndurability = os", base.CodeCorruption, "line 2: option durability"},
		{"\x00\x01", base.CodeUnsupported, "line 1"},
	} {
		fs := vfs.NewMem()
		reopen(t, fs, Options{})
		must(t, writeText(fs, "/db", optionsFileName, c.text))
		for _, readOnly := range []bool{false, true} {
			db, err := Open("/db", Options{fs: fs, ReadOnly: readOnly})
			if base.CodeOf(err) != c.code || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "/db/OPTIONS")) {
				t.Errorf("%q: %v", c.text, err)
			}
			if err == nil {
				must(t, db.Close())
				db.Free()
			}
		}
	}
}

func TestOptionsOfLaterVersionsAreKept(t *testing.T) {
	fs := vfs.NewMem()
	reopen(t, fs, Options{})
	must(t, writeText(fs, "/db", optionsFileName, "merutable options 1\nshiny = 3\nrequired l0_files = 5\nmemtable_bytes = 9999999"))
	if o := reopen(t, fs, Options{MemtableBytes: 4 << 20}); o.L0Files != 5 {
		t.Fatal(o.L0Files)
	}
	text, err := readText(fs, "/db/OPTIONS")
	must(t, err)
	if want := "merutable options 1\nshiny = 3\nrequired l0_files = 5\nmemtable_bytes = 4194304"; text != want {
		t.Fatalf("%q, want %q", text, want)
	}
	// A stored value that this version cannot take is healed by giving one.
	must(t, writeText(fs, "/db", optionsFileName, "merutable options 1\nmemtable_bytes = huge"))
	if o := reopen(t, fs, Options{MemtableBytes: 4 << 20}); o.MemtableBytes != 4<<20 {
		t.Fatal(o.MemtableBytes)
	}
	reopen(t, fs, Options{})
}

func TestMemoryBudget(t *testing.T) {
	const mib = 1 << 20
	for _, limit := range []int64{28, 32, 64, 100, 128, 512, 1024, 4096, 100_000} {
		o, err := Options{MemoryLimit: limit * mib}.effective()
		if err != nil {
			t.Errorf("%d MiB: %v", limit, err)
			continue
		}
		total := o.memtablesBytes() + o.CacheBytes + o.RowCacheBytes
		if loads := int64(3 * o.loadBufferSize()); o.loadBufferSize() < mib || total+loads > max(limit-12, limit/10*9)*mib {
			t.Errorf("%d MiB: %d, and %d for loads", limit, total, loads)
		}
		if o.MemtableBytes < mib || o.MemtableBytes > 64*mib || total > (limit-24)*mib || o.heapBudget() > limit*mib {
			t.Errorf("%d MiB: memtables %d x %d, caches %d + %d", limit, o.MaxImmutables+1, o.MemtableBytes, o.CacheBytes, o.RowCacheBytes)
		}
	}
	// Without a budget the parts' own bounds hold.
	if o, err := (Options{}).effective(); err != nil || o.MemtableBytes != 64*mib || o.CacheBytes != 64*mib || o.heapBudget() != 0 {
		t.Error(o, err)
	}
	// Sizes that are set win.
	o, err := Options{MemoryLimit: 256 * mib, MemtableBytes: 32 * mib, CacheBytes: -1, FlushThreads: 2}.effective()
	must(t, err)
	if o.MemtableBytes != 32*mib || o.CacheBytes != 0 || o.FlushThreads != 2 || o.memtablesBytes() > 232*mib {
		t.Error(o)
	}
}

func TestMemoryBudgetTooSmall(t *testing.T) {
	const mib = 1 << 20
	tight := Options{MemoryLimit: 100 * mib, MemtableBytes: 64 * mib, MaxImmutables: 2, CacheBytes: 8 * mib}
	_, err := tight.effective()
	need := int64(3*64+8+24) * mib
	if base.CodeOf(err) != base.CodeInvalidArgument || !strings.Contains(err.Error(), fmt.Sprint(need)) {
		t.Fatal(err)
	}
	tight.MemoryLimit = need
	o, err := tight.effective()
	must(t, err)
	if o.memtablesBytes() != 192*mib || o.CacheBytes != 8*mib || o.RowCacheBytes > mib {
		t.Error(o)
	}
	// A budget that the host derived gives way.
	tight.MemoryLimit, tight.DefaultMemoryLimit = 0, 100*mib
	if o, err = tight.effective(); err != nil || o.MemoryLimit != need {
		t.Error(o.MemoryLimit, err)
	}
}

func TestHeapBudget(t *testing.T) {
	others := heap // engines of other tests
	heap = new(heapBudgets)
	defer func() { heap = others }()
	var told []int64
	OnHeapBudget(func(bytes int64) { told = append(told, bytes) })
	const limit = 256 << 20
	o, err := Options{MemoryLimit: limit}.effective()
	must(t, err)
	one := limit - o.memtablesBytes() - int64(3*o.loadBufferSize())
	a, b, c := openMem(t, vfs.NewMem(), Options{MemoryLimit: limit}), openMem(t, vfs.NewMem(), Options{MemoryLimit: limit}), openMem(t, vfs.NewMem(), Options{})
	a2 := openMem(t, a.c.fs, Options{}) // another handle on the same engine
	c.Free()
	a.Free()
	b.Free()
	a2.Free()
	if want := []int64{0, one, 2 * one, 0, 2 * one, one, 0}; !reflect.DeepEqual(told, want) {
		t.Fatalf("%v, want %v", told, want)
	}
}
