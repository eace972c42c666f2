package metamorphic

// Shrink drops operations from a history that fails as long as it still does, by any error, and returns the shortest
// one found with its error. Where the engine's own goroutines have a part in the failure it may stay away by chance:
// each shorter history gets tries chances.
func Shrink(h History, tries int, fails func(History) error) (History, error) {
	err := failsWithin(h, tries, fails)
	if err == nil {
		return h, nil
	}
	for size := len(h.Ops) / 2; size > 0; {
		shrunk := false
		for from := 0; from < len(h.Ops); {
			shorter := h
			shorter.Ops = append(append([]Op(nil), h.Ops[:from]...), h.Ops[min(from+size, len(h.Ops)):]...)
			if e := failsWithin(shorter, tries, fails); e != nil {
				h, err, shrunk = shorter, e, true
			} else {
				from += size
			}
		}
		if !shrunk || size > len(h.Ops) {
			size /= 2
		}
	}
	return shrinkNumbers(h, err, tries, fails)
}

// shrinkNumbers makes the operations that are left smaller.
func shrinkNumbers(h History, err error, tries int, fails func(History) error) (History, error) {
	for i := range h.Ops {
		for h.Ops[i].N > 1 {
			smaller := h
			smaller.Ops = append([]Op(nil), h.Ops...)
			smaller.Ops[i].N /= 2
			e := failsWithin(smaller, tries, fails)
			if e == nil {
				break
			}
			h, err = smaller, e
		}
	}
	return h, err
}

func failsWithin(h History, tries int, fails func(History) error) error {
	for range tries {
		if err := fails(h); err != nil {
			return err
		}
	}
	return nil
}
