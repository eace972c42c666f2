package engine

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
)

// unit says how an option's value is written.
type unit int

const (
	unitCount unit = iota
	unitBytes      // a number, or one with KB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, TiB (of 1024)
	unitSeconds
	unitMillis
	unitBool // true or false
	unitText
)

// option is one option by its name in the C interface, in ATTACH and in the file OPTIONS.
type option struct {
	name   string
	unit   unit
	lo, hi int64
	// sticks: it is stored beside the table.
	sticks bool
	// zeroIsNone: 0 by name means none, which the field holds as -1.
	zeroIsNone bool
	// get returns the field's value, 0 where it is not set; set sets it. Those of texts are nil.
	get func(o *Options) int64
	set func(o *Options, v int64)
	// field is that of a text which any value may be given to.
	field func(o *Options) *string
	// secret: its value is never shown.
	secret bool
}

const (
	maxOptionFiles = 1 << 20
	maxOptionBytes = 1 << 50
)

// optionTable has all options, in the order in which they are listed.
var optionTable = []option{
	{
		name: "read_only", unit: unitBool, hi: 1,
		get: func(o *Options) int64 { return asInt(o.ReadOnly) }, set: func(o *Options, v int64) { o.ReadOnly = v == 1 },
	},
	{
		name: "create_if_missing", unit: unitBool, hi: 1,
		get: func(o *Options) int64 { return asInt(!o.NoCreate) }, set: func(o *Options, v int64) { o.NoCreate = v == 0 },
	},
	{name: "durability", unit: unitText},
	span("sync_interval_ms", unitMillis, 1, 60_000, func(o *Options) *time.Duration { return &o.SyncInterval }),
	number("memtable_bytes", unitBytes, minMemtableBytes, maxMemtableBytes, func(o *Options) *int { return &o.MemtableBytes }).stick(),
	number("max_immutables", unitCount, 1, 64, func(o *Options) *int { return &o.MaxImmutables }),
	number("cache_bytes", unitBytes, 0, maxOptionBytes, func(o *Options) *int64 { return &o.CacheBytes }),
	number("row_cache_bytes", unitBytes, 0, maxOptionBytes, func(o *Options) *int64 { return &o.RowCacheBytes }),
	number("memory_limit", unitBytes, 1, maxOptionBytes, func(o *Options) *int64 { return &o.MemoryLimit }),
	number("default_memory_limit", unitBytes, 1, maxOptionBytes, func(o *Options) *int64 { return &o.DefaultMemoryLimit }),
	number("flush_threads", unitCount, 1, 64, func(o *Options) *int { return &o.FlushThreads }),
	number("compaction_threads", unitCount, 1, 64, func(o *Options) *int { return &o.CompactionThreads }),
	{
		name: "auto_compaction", unit: unitBool, hi: 1, sticks: true,
		get: func(o *Options) int64 { return asInt(!o.NoAutoCompaction) },
		set: func(o *Options, v int64) { o.NoAutoCompaction, o.autoCompaction = v == 0, true },
	},
	number("l0_files", unitCount, 1, maxOptionFiles, func(o *Options) *int { return &o.L0Files }).stick(),
	number("l0_slow_files", unitCount, 1, maxOptionFiles, func(o *Options) *int { return &o.L0SlowFiles }).stick(),
	number("l0_stop_files", unitCount, 1, maxOptionFiles, func(o *Options) *int { return &o.L0StopFiles }).stick(),
	number("pending_slow_bytes", unitBytes, 1, maxOptionBytes, func(o *Options) *int64 { return &o.PendingSlowBytes }).stick(),
	number("pending_stop_bytes", unitBytes, 1, maxOptionBytes, func(o *Options) *int64 { return &o.PendingStopBytes }).stick(),
	number("target_file_bytes", unitBytes, 1<<12, 1<<40, func(o *Options) *int64 { return &o.TargetFileBytes }).stick(),
	number("base_level_bytes", unitBytes, 1<<12, maxOptionBytes, func(o *Options) *int64 { return &o.BaseLevelBytes }).stick(),
	number("level_multiplier", unitCount, 2, 1000, func(o *Options) *int { return &o.LevelMultiplier }).stick(),
	number("max_deleted_percent", unitCount, 1, 100, func(o *Options) *int { return &o.MaxDeletedPercent }).stick(),
	number("compaction_rate_bytes", unitBytes, 0, maxOptionBytes, func(o *Options) *int64 { return &o.CompactionRate }).stick(),
	number("retain_versions", unitCount, 0, 1_000_000, func(o *Options) *int { return &o.RetainVersions }).stick(),
	span("retain_secs", unitSeconds, 0, 3_155_760_000, func(o *Options) *time.Duration { return &o.RetainFor }).stick(),
	span("gc_grace_secs", unitSeconds, 0, 604_800, func(o *Options) *time.Duration { return &o.GCGrace }).stick(),
	text("wal_dir", func(o *Options) *string { return &o.WALDir }),

	text("mirror", func(o *Options) *string { return &o.Mirror }),
	number("mirror_parallelism", unitCount, 1, 64, func(o *Options) *int { return &o.MirrorParallelism }),
	span("max_lag_alert_secs", unitSeconds, 0, 604_800, func(o *Options) *time.Duration { return &o.MaxLagAlert }),
	span("mirror_flush_secs", unitSeconds, 0, 604_800, func(o *Options) *time.Duration { return &o.MirrorFlush }),
	span("mirror_retain_secs", unitSeconds, 0, 3_155_760_000, func(o *Options) *time.Duration { return &o.MirrorRetain }),
	span("commit_linger_ms", unitMillis, 0, 60_000, func(o *Options) *time.Duration { return &o.CommitLinger }),
	text("object_cache_dir", func(o *Options) *string { return &o.ObjectCacheDir }),
	number("object_cache_bytes", unitBytes, 0, maxOptionBytes, func(o *Options) *int64 { return &o.ObjectCacheBytes }),
	span("refresh_interval_ms", unitMillis, 0, 3_600_000, func(o *Options) *time.Duration { return &o.RefreshInterval }),
	text("s3_endpoint", func(o *Options) *string { return &o.S3.Endpoint }),
	text("s3_region", func(o *Options) *string { return &o.S3.Region }),
	text("s3_url_style", func(o *Options) *string { return &o.S3.URLStyle }),
	text("s3_use_ssl", func(o *Options) *string { return &o.S3.UseSSL }),
	text("s3_access_key_id", func(o *Options) *string { return &o.S3.AccessKeyID }).hide(),
	text("s3_secret_access_key", func(o *Options) *string { return &o.S3.SecretAccessKey }).hide(),
	text("s3_session_token", func(o *Options) *string { return &o.S3.SessionToken }).hide(),
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// number is an option that is a field of Options as it stands.
func number[T int | int64](name string, u unit, lo, hi int64, field func(o *Options) *T) option {
	return option{
		name: name, unit: u, lo: lo, hi: hi, zeroIsNone: lo == 0,
		get: func(o *Options) int64 { return int64(*field(o)) },
		set: func(o *Options, v int64) { *field(o) = T(v) },
	}
}

// span is an option that is a duration, in seconds or milliseconds.
func span(name string, u unit, lo, hi int64, field func(o *Options) *time.Duration) option {
	step := time.Second
	if u == unitMillis {
		step = time.Millisecond
	}
	return option{
		name: name, unit: u, lo: lo, hi: hi, zeroIsNone: lo == 0,
		get: func(o *Options) int64 {
			d := *field(o)
			n := int64(d / step)
			switch { // what is less than a unit is not nothing
			case d%step > 0:
				n++
			case d%step < 0:
				n--
			}
			return n
		},
		set: func(o *Options, v int64) { *field(o) = time.Duration(v) * step },
	}
}

// text is an option that takes any text.
func text(name string, field func(o *Options) *string) option {
	return option{name: name, unit: unitText, field: field}
}

func (d option) hide() option {
	d.secret = true
	return d
}

func (d option) stick() option {
	d.sticks = true
	return d
}

// findOption returns the option of a name, nil where there is none.
func findOption(name string) *option {
	for i := range optionTable {
		if optionTable[i].name == name {
			return &optionTable[i]
		}
	}
	return nil
}

// given reports whether the option is set in o.
func (d *option) given(o *Options) bool {
	if d.field != nil {
		return *d.field(o) != ""
	}
	switch d.name {
	case "auto_compaction":
		return o.autoCompaction || o.NoAutoCompaction
	case "durability":
		return o.Durability != Sync
	case "read_only":
		return o.ReadOnly
	case "create_if_missing":
		return o.NoCreate
	}
	return d.get(o) != 0
}

// check refuses a value out of bounds.
func (d *option) check(o *Options) error {
	if d.get == nil {
		return nil
	}
	v := d.get(o)
	if v == 0 || v >= d.lo && v <= d.hi || v < 0 && d.zeroIsNone {
		return nil
	}
	return base.Errorf(base.CodeInvalidArgument, "option %s = %d: %s", d.name, v, d.accepts())
}

// accepts says which values the option takes.
func (d *option) accepts() string {
	switch d.unit {
	case unitBool:
		return "true or false"
	case unitBytes:
		return "a number of bytes from " + strconv.FormatInt(d.lo, 10) + " to " + strconv.FormatInt(d.hi, 10) +
			", or a size such as 64MB or 1GiB"
	default:
		return "an integer from " + strconv.FormatInt(d.lo, 10) + " to " + strconv.FormatInt(d.hi, 10)
	}
}

// Set sets an option by its name in the C interface and in ATTACH. The error names the option and what it accepts.
func (o *Options) Set(key, value string) error {
	d := findOption(key)
	switch {
	case d == nil:
		return base.Errorf(base.CodeInvalidArgument, "unknown option %q; the options are %s", key, optionNames())
	case d.name == "durability":
		return o.setDurability(value)
	case d.field != nil:
		*d.field(o) = value
		return nil
	}
	v, ok := d.parse(value)
	if !ok || v < d.lo || v > d.hi {
		return base.Errorf(base.CodeInvalidArgument, "option %s = %q: %s", d.name, value, d.accepts())
	}
	if v == 0 && d.zeroIsNone {
		v = -1
	}
	d.set(o, v)
	return nil
}

func optionNames() string {
	names := make([]string, len(optionTable))
	for i, d := range optionTable {
		names[i] = d.name
	}
	return strings.Join(names, ", ")
}

var durabilityNames = []string{Sync: "sync", Interval: "interval", OS: "os"}

func (o *Options) setDurability(value string) error {
	for d, name := range durabilityNames {
		if value == name {
			o.Durability = Durability(d)
			return nil
		}
	}
	return base.Errorf(base.CodeInvalidArgument, "option durability = %q: sync, interval or os", value)
}

func (d *option) parse(value string) (v int64, ok bool) {
	switch d.unit {
	case unitBool:
		switch value {
		case "true", "1":
			return 1, true
		case "false", "0":
			return 0, true
		}
		return 0, false
	case unitBytes:
		return parseBytes(value)
	default:
		v, err := strconv.ParseInt(value, 10, 64)
		return v, err == nil
	}
}

// byteUnits are the units of sizes as DuckDB takes them: powers of 1000, and of 1024 with an i.
var byteUnits = map[string]float64{
	"": 1, "b": 1, "byte": 1, "bytes": 1,
	"k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}

// parseBytes reads a size such as 1048576, 64MB or 1.5 GiB.
func parseBytes(value string) (int64, bool) {
	value = strings.TrimSpace(value)
	if v, err := strconv.ParseInt(value, 10, 64); err == nil {
		return v, true
	}
	end := strings.LastIndexAny(value, "0123456789.") + 1
	factor, known := byteUnits[strings.ToLower(strings.TrimSpace(value[end:]))]
	number, err := strconv.ParseFloat(value[:end], 64)
	if !known || err != nil {
		return 0, false
	}
	bytes := number * factor
	if math.IsNaN(bytes) || bytes < 0 || bytes > maxOptionBytes {
		return 0, false
	}
	return int64(bytes), true
}

// hiddenValue stands for a secret that is set.
const hiddenValue = "<hidden>"

// format returns the value as Set takes it, but for secrets, which nothing shows.
func (d *option) format(o *Options) string {
	switch {
	case d.name == "durability":
		return durabilityNames[o.Durability]
	case d.secret && *d.field(o) != "":
		return hiddenValue
	case d.field != nil:
		return *d.field(o)
	case d.unit == unitBool:
		return strconv.FormatBool(d.get(o) == 1)
	}
	return strconv.FormatInt(max(d.get(o), 0), 10)
}

// String returns the options that are set, one "name = value" a line, as ParseOptions reads them. Secrets are left out.
func (o Options) String() string {
	var b strings.Builder
	for i := range optionTable {
		if d := &optionTable[i]; d.given(&o) && !d.secret {
			b.WriteString(d.name + " = " + d.format(&o) + "\n")
		}
	}
	return b.String()
}

// ParseOptions reads what String wrote; empty lines are skipped. The error names the line.
func ParseOptions(text string) (o Options, err error) {
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(line) == "" {
			continue
		}
		name, value, found := strings.Cut(line, " = ")
		if !found {
			return o, base.Errorf(base.CodeInvalidArgument, "line %d: %q is not \"name = value\"", i+1, line)
		}
		if err := o.Set(name, value); err != nil {
			return o, base.Wrapf(base.CodeInvalidArgument, err, "line %d", i+1)
		}
	}
	return o, nil
}
