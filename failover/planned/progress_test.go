package planned

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// All calls run at once: each waits here for all others. The error is the first one of the list, not of the time, and
// the calls have ended by then.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	first, second := errors.New("first"), errors.New("second")
	all, ended := []error{nil, first, second}, make([]bool, 3)
	var met sync.WaitGroup
	met.Add(len(all))
	secondIsOver := make(chan struct{})
	err := SideBySide(all, func(i int, err error) error {
		met.Done()
		met.Wait()
		if i == 2 {
			defer close(secondIsOver)
		} else {
			<-secondIsOver
		}
		ended[i] = true
		return err
	})
	require.ErrorIs(t, err, first)
	require.NotErrorIs(t, err, second)
	require.Equal(t, []bool{true, true, true}, ended)
	require.NoError(t, SideBySide(all[:1], func(_ int, err error) error { return err }))
}
