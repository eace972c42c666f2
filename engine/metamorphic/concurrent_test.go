package metamorphic

import "testing"

// TestConcurrent runs everything at once under every configuration.
func TestConcurrent(t *testing.T) {
	if *replay != "" {
		t.Skip("a history is asked for")
	}
	transfers, rounds := 60, 5
	if testing.Short() {
		transfers, rounds = 20, 3
	}
	for _, c := range Configs() {
		t.Run(c.Name, func(t *testing.T) {
			if err := RunConcurrent(1, c, transfers, rounds); err != nil {
				t.Fatal(err)
			}
		})
	}
}
