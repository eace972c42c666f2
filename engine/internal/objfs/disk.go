package objfs

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/merutable/merutable/engine/internal/base"
	"github.com/merutable/merutable/engine/internal/lru"
	"github.com/merutable/merutable/engine/internal/vfs"
)

// DiskCache keeps blocks of data files in a directory, each in a file of its own, for this process and others, now and
// later. Data files are never changed, so a block is good for as long as it is there; a file is written aside and renamed,
// not synced, and carries a checksum and what it is of: what a power cut or a disk makes of it is not believed.
//
// The time of a file's last use is its modification time, so that it is known across restarts and to all processes. Whoever
// has written a sixteenth of the bound looks at all files, and removes those used last longest ago until seven eighths
// are left. So the bound holds with two processes that fill it at the same time, and each more may add a sixteenth.
//
// A nil *DiskCache keeps nothing. The methods may be called from any goroutine. Nothing that goes wrong in it is an error
// of a reader's.
type DiskCache struct {
	fs    vfs.FS
	dir   string
	token string // of this process's temporary files
	limit atomic.Int64

	counter atomic.Uint64
	// unseen is how much may be written before the files are looked at.
	unseen   atomic.Int64
	looking  sync.Mutex
	pausedTo atomic.Int64 // no writes before, in Unix nanoseconds: the disk is full, say
	touched  *lru.Cache[string, time.Time]

	// Stats of this process.
	Hits, Misses, Damaged, Written, Removed atomic.Int64
}

const (
	diskDir     = "merutable-blocks-1" // with the version of the files' form
	diskMagic   = "MRUBLOCK"
	diskHeader  = len(diskMagic) + 4 + 4 + 4 // checksum of what follows, length of the identity, length of the data
	diskSuffix  = ".block"
	diskTmp     = ".tmp-"
	diskTmpAge  = time.Hour
	diskPause   = 30 * time.Second
	touchEvery  = time.Minute
	touchedSize = 1 << 20
	// minDiskBytes is the least bound: some blocks.
	minDiskBytes = 32 * blockBytes
)

var (
	diskCRC = crc32.MakeTable(crc32.Castagnoli)

	diskCaches = struct {
		sync.Mutex
		byDir map[diskCacheKey]*DiskCache
	}{byDir: map[diskCacheKey]*DiskCache{}}
)

type diskCacheKey struct {
	fs  vfs.FS
	dir string
}

// OpenDiskCache returns the cache in a directory, which is made. All of a process's users of one directory share it, and the
// bound, in bytes, that was given last holds.
func OpenDiskCache(fs vfs.FS, dir string, bytes int64) (*DiskCache, error) {
	if bytes < minDiskBytes {
		return nil, base.Errorf(base.CodeInvalidArgument, "a cache of %d bytes in %s: at least %d are needed", bytes, dir, minDiskBytes)
	}
	own := fs.Join(dir, diskDir)
	if err := fs.MkdirAll(own); err != nil {
		return nil, base.Wrapf(base.CodeOf(err), err, "the directory of the object cache")
	}
	diskCaches.Lock()
	defer diskCaches.Unlock()
	key := diskCacheKey{fs, own}
	d := diskCaches.byDir[key]
	if d == nil {
		d = newDiskCache(fs, own)
		diskCaches.byDir[key] = d
	}
	d.limit.Store(bytes)
	return d, nil
}

func newDiskCache(fs vfs.FS, dir string) *DiskCache {
	token := make([]byte, 8)
	_, _ = rand.Read(token) // never fails
	return &DiskCache{fs: fs, dir: dir, token: hex.EncodeToString(token), touched: lru.New[string, time.Time](touchedSize, hashName)}
}

func hashName(name string) uint64 {
	h := uint64(crc32.Checksum([]byte(name), diskCRC))
	return h<<32 | h
}

// keeps reports whether a block goes to disk: only data files have names that are never given again.
func keeps(id blockID) bool { return id.size != unknownSize }

// of says what a block's file is of.
func (b blockID) of(identity string) string {
	return fmt.Sprintf("%s\n%s\n%d\n%d", identity, b.key, b.size, b.index)
}

func (d *DiskCache) path(of string) (dir, name string) {
	sum := sha256.Sum256([]byte(of))
	text := hex.EncodeToString(sum[:16])
	return d.fs.Join(d.dir, text[:2]), text + diskSuffix
}

// get returns a block, nil where it is not there.
func (d *DiskCache) get(identity string, id blockID) []byte {
	if d == nil || !keeps(id) {
		return nil
	}
	of := id.of(identity)
	dir, file := d.path(of)
	name := d.fs.Join(dir, file)
	f, err := d.fs.Open(name)
	if err != nil {
		d.Misses.Add(1)
		return nil
	}
	defer f.Close()
	raw := make([]byte, diskHeader+len(of)+blockBytes+1)
	n, err := f.ReadAt(raw, 0)
	if err != nil && err != io.EOF {
		d.Misses.Add(1)
		return nil
	}
	data := parseBlock(raw[:n], of)
	if data == nil || int64(len(data)) != min(blockBytes, id.size-id.index*blockBytes) {
		_ = d.fs.Remove(name)
		d.Damaged.Add(1)
		return nil
	}
	d.Hits.Add(1)
	d.touch(name)
	return data
}

// touch takes note of a use.
func (d *DiskCache) touch(name string) {
	now := time.Now()
	if at, ok := d.touched.Use(name); ok && now.Sub(at) < touchEvery && now.After(at) {
		return
	}
	d.touched.Put(name, now, len(name))
	_ = vfs.Touch(d.fs, name, now)
}

// parseBlock returns the data of a block's file, nil for one that is damaged or of another block.
func parseBlock(raw []byte, of string) []byte {
	if len(raw) < diskHeader || string(raw[:len(diskMagic)]) != diskMagic {
		return nil
	}
	numbers := raw[len(diskMagic):]
	body := raw[diskHeader:]
	ofBytes, dataBytes := binary.LittleEndian.Uint32(numbers[4:]), binary.LittleEndian.Uint32(numbers[8:])
	if uint64(ofBytes)+uint64(dataBytes) != uint64(len(body)) || string(body[:ofBytes]) != of ||
		crc32.Checksum(raw[len(diskMagic)+4:], diskCRC) != binary.LittleEndian.Uint32(numbers) {
		return nil
	}
	return body[ofBytes:]
}

func formBlock(of string, data []byte) []byte {
	raw := make([]byte, diskHeader, diskHeader+len(of)+len(data))
	copy(raw, diskMagic)
	numbers := raw[len(diskMagic):]
	binary.LittleEndian.PutUint32(numbers[4:], uint32(len(of)))
	binary.LittleEndian.PutUint32(numbers[8:], uint32(len(data)))
	raw = append(append(raw, of...), data...)
	binary.LittleEndian.PutUint32(raw[len(diskMagic):], crc32.Checksum(raw[len(diskMagic)+4:], diskCRC))
	return raw
}

// put keeps a block.
func (d *DiskCache) put(identity string, id blockID, data []byte) {
	if d == nil || !keeps(id) || time.Now().UnixNano() < d.pausedTo.Load() {
		return
	}
	of := id.of(identity)
	raw := formBlock(of, data)
	if d.unseen.Add(-int64(len(raw))) < 0 {
		d.look()
	}
	dir, file := d.path(of)
	tmp := d.fs.Join(dir, fmt.Sprintf("%s%s%s-%d", file, diskTmp, d.token, d.counter.Add(1)))
	err := d.write(dir, tmp, raw)
	if err == nil {
		err = d.fs.Rename(tmp, d.fs.Join(dir, file))
	}
	if err != nil {
		_ = d.fs.Remove(tmp)
		d.pausedTo.Store(time.Now().Add(diskPause).UnixNano())
		return
	}
	d.Written.Add(int64(len(raw)))
}

func (d *DiskCache) write(dir, name string, raw []byte) error {
	f, err := d.fs.Create(name)
	if base.CodeOf(err) == base.CodeNotFound {
		if err := d.fs.MkdirAll(dir); err != nil {
			return err
		}
		f, err = d.fs.Create(name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// diskFile is a file of the cache.
type diskFile struct {
	name string
	size int64
	used time.Time
}

// look looks at all files and makes room.
func (d *DiskCache) look() {
	if !d.looking.TryLock() {
		return // somebody does
	}
	defer d.looking.Unlock()
	limit := d.limit.Load()
	files, total := d.files()
	if keep := limit / 8 * 7; total > keep {
		slices.SortFunc(files, func(a, b diskFile) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
		for _, f := range files {
			if total <= keep {
				break
			}
			if err := d.fs.Remove(f.name); err != nil && base.CodeOf(err) != base.CodeNotFound {
				continue
			}
			total -= f.size
			d.Removed.Add(f.size)
		}
	}
	d.unseen.Store(limit / 16)
}

// files returns the cache's files with their bytes, and removes what writers that died left.
func (d *DiskCache) files() (files []diskFile, total int64) {
	dirs, err := d.fs.List(d.dir)
	if err != nil {
		return nil, 0
	}
	for _, sub := range dirs {
		dir := d.fs.Join(d.dir, sub)
		names, err := d.fs.List(dir)
		if err != nil {
			continue
		}
		for _, n := range names {
			name := d.fs.Join(dir, n)
			info, err := d.fs.Stat(name)
			if err != nil || info.IsDir {
				continue
			}
			if strings.Contains(n, diskTmp) && time.Since(info.ModTime) > diskTmpAge {
				_ = d.fs.Remove(name)
				continue
			}
			if total += info.Size; strings.HasSuffix(n, diskSuffix) {
				files = append(files, diskFile{name, info.Size, info.ModTime})
			}
		}
	}
	return files, total
}
