package planned

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// R19: for how long the other location has not answered. Questions may be under way at once, and a process that begins to
// lead the catalog may have asked last in a failure of long ago.
func TestR19Silence(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	var s answering
	ok, _ := s.fresh(0)
	require.False(t, ok, "nobody has asked")

	s.set(0, 2*time.Second, cut)
	require.Equal(t, 2*time.Second, s.silent())
	ok, err := s.fresh(2*time.Second + silentFresh - 1)
	require.True(t, ok)
	require.Equal(t, cut, err)
	ok, _ = s.fresh(2*time.Second + silentFresh)
	require.False(t, ok)
	s.set(2*time.Second+silentFresh, 3*time.Second, cut)
	require.Equal(t, 3*time.Second, s.silent(), "in a row")

	s.set(time.Hour, time.Hour+time.Second, cut)
	require.Equal(t, time.Second, s.silent(), "nobody has asked meanwhile")

	s.set(2*time.Hour, 2*time.Hour+time.Millisecond, nil)
	s.set(2*time.Hour-time.Second, 2*time.Hour+time.Second-1, cut)
	require.Zero(t, s.silent(), "a later question was answered")
	ok, err = s.fresh(2*time.Hour + answerFresh - 1)
	require.True(t, ok)
	require.NoError(t, err)
	ok, _ = s.fresh(2*time.Hour + answerFresh)
	require.False(t, ok)
	s.set(2*time.Hour-time.Second, 2*time.Hour+time.Second, nil)
	ok, _ = s.fresh(2*time.Hour + answerFresh)
	require.False(t, ok, "an answer counts from its question")
}
