package mirror

import (
	"testing"
	"time"
)

// TestAlarmWhileWaiting: a turn that found it too early to try again has an alarm, also where the moment passed within it.
func TestAlarmWhileWaiting(t *testing.T) {
	m := &Mirror{}
	m.loop.retry.failed(0, 0)
	now := m.loop.retry.until.Add(-time.Nanosecond)
	time.Sleep(time.Until(m.loop.retry.until))
	m.advance(t.Context(), now) // starts nothing, for which it would need a source
	alarm, stop := m.alarm(now)
	defer stop()
	if alarm == nil {
		t.Fatal("nothing wakes it")
	}
	<-alarm
}
