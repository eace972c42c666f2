package metamorphic

import "math/rand/v2"

// choice is how often a kind of operation comes, and its smallest and largest N.
type choice struct {
	kind           Kind
	weight, lo, hi int
}

var choices = []choice{
	{OpPut, 80, 1, 3},
	{OpDelete, 30, 1, 3},
	{OpBatch, 120, 1, 150},
	{OpLoad, 25, 900, 5000},
	{OpGuarded, 40, 1, 30},
	{OpCancel, 10, 1, 3000},
	{OpFlush, 80, 0, 0},
	{OpCompact, 15, 0, 0},
	{OpCompactRange, 25, 0, 0},
	{OpGarbage, 20, 0, 1},
	{OpSnapshot, 60, 0, 0},
	{OpReadHeld, 40, 0, 0},
	{OpRelease, 45, 0, 0},
	{OpScan, 60, 1, 10},
	{OpWalk, 25, 1, 100},
	{OpStep, 50, 0, 3},
	{OpGet, 60, 1, 20},
	{OpMultiGet, 40, 1, 200},
	{OpCheck, 20, 0, 0},
	{OpClose, 15, 0, 0},
	{OpKill, 15, 0, 0},
	{OpCrash, 15, 0, 0},
	{OpCrashIn, 20, 1, 60},
	{OpDiskFull, 12, 20, 100},
	{OpDiskRelief, 24, 0, 0},
	{OpSyncFails, 10, 1, 20},
	{OpReaderOpen, 20, 0, 0},
	{OpReaderCheck, 30, 0, 0},
	{OpReaderRefresh, 40, 0, 0},
	{OpReaderFree, 10, 0, 0},
	{OpDrop, 4, 0, 3},
	{OpReplace, 4, 0, 3000},
	{OpTxnBegin, 40, 0, 0},
	{OpTxnWrite, 60, 1, 100},
	{OpTxnWrite, 6, 900, 5000},
	{OpTxnRead, 40, 0, 0},
	{OpTxnEnd, 40, 0, 3},
	{OpRemember, 40, 0, 0},
	{OpTravel, 50, 0, 0},
	{OpChanges, 40, 0, 0},
	{OpAlter, 25, 0, 0},
}

// Generate makes a history of n operations from a seed. Its configuration is the default one.
func Generate(seed uint64, n int) History {
	rng := rand.New(rand.NewPCG(seed, 11))
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	keys := []int64{20, 300, 2000}
	h := History{Config: "default", Keys: keys[rng.IntN(len(keys))]}
	for range n {
		at := rng.IntN(total)
		i := 0
		for at >= choices[i].weight {
			at -= choices[i].weight
			i++
		}
		c := choices[i]
		h.Ops = append(h.Ops, Op{Kind: c.kind, N: c.lo + rng.IntN(c.hi-c.lo+1), Seed: rng.Uint64()})
	}
	return h
}
