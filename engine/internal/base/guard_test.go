package base

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

func TestEach(t *testing.T) {
	const limit = 3
	failed := errors.New("failed")
	for _, n := range []int{0, 1, 2, 50} {
		var now, most, calls atomic.Int64
		errs := Each(n, limit, func(i int) error {
			if running := now.Add(1); running > most.Load() {
				most.Store(running) // a larger one may be lost, never made up
			}
			defer now.Add(-1)
			calls.Add(1)
			switch i % 5 {
			case 0:
				panic("broken")
			case 1:
				return failed
			}
			return nil
		})
		if len(errs) != n || calls.Load() != int64(n) || most.Load() > limit {
			t.Errorf("%d: %d answers of %d calls, %d at a time", n, len(errs), calls.Load(), most.Load())
		}
		for i, err := range errs {
			switch {
			case i%5 == 0 && (CodeOf(err) != CodeUnknown || !strings.Contains(err.Error(), "broken")),
				i%5 == 1 && err != failed, i%5 > 1 && err != nil:
				t.Errorf("%d of %d: %v", i, n, err)
			}
		}
	}
}
