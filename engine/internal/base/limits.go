package base

// Limits of the engine. Each bounds what one call or one corrupt length field may allocate.
const (
	// MaxColumns is how many columns a table may have.
	MaxColumns = 4096
	// MaxNameBytes bounds a table or column name.
	MaxNameBytes = 1 << 12
	// MaxKeyBytes bounds one encoded primary key.
	MaxKeyBytes = 1 << 16
	// MaxValueBytes bounds one encoded row: what is larger is refused when it is written, not when it is compacted.
	MaxValueBytes = 256 << 20
	// MaxBatchBytes bounds one batch in the WAL.
	MaxBatchBytes = 1 << 30
	// MaxFixedWidth bounds a FIXED_BINARY column.
	MaxFixedWidth = 1 << 16
	// MaxEnumLabels bounds an ENUM's dictionary.
	MaxEnumLabels = 1 << 16
	// MaxTypeDepth is how deep nested types may stand in each other: a LIST of a STRUCT is 2 deep.
	MaxTypeDepth = 32
	// MaxNestedFields bounds the fields of one nested type, those of its fields included.
	MaxNestedFields = 4096
	// MaxArrayLength bounds the elements of an ARRAY, as DuckDB does.
	MaxArrayLength = 100_000
	// MaxElements bounds the values that one value of a nested type is made of, at all levels together.
	MaxElements = 1 << 26
	// MaxManifestBytes bounds a manifest file.
	MaxManifestBytes = 256 << 20
)

// Names of the hidden columns in every data file, and the prefix that user columns may not have.
const (
	ReservedPrefix = "_merutable_"
	SeqColumn      = "_merutable_seq"
	OpColumn       = "_merutable_op"
)

// Field ids of the hidden columns, from the top of the range that Iceberg leaves to writers.
const (
	SeqFieldID = 2147483400
	OpFieldID  = 2147483401
)

// Seq is the sequence number of a row: 1 for the first row ever written, one more for each next one.
type Seq = uint64

// MaxSeq is the largest sequence number (56 bits: the op shares the word in the internal key).
const MaxSeq Seq = 1<<56 - 1

// Op says what a row version does to its key. The values are stored in _merutable_op.
type Op uint8

// The operations.
const (
	OpDelete Op = 0
	OpPut    Op = 1
)
