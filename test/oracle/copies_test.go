package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
)

// copying plays a key that was written once before it is copied onto a name, a second time meanwhile, and a third
// time after. The copy was answered at time 15, and replaced something that was put at 12.
func copying(t *testing.T) (*Oracle, *Copies) {
	t.Helper()
	o := New()
	c := NewCopies(o)
	acked(o, o.Insert("k"), 5)
	acked(o, o.Merge("k"), 10)
	require.NoError(t, c.Put("n").Acked("t12", "", 12))
	w := c.Copy("n", "k")
	acked(o, o.Merge("k"), 14)
	require.NoError(t, w.Acked("t15", "c1", 15))
	acked(o, o.Merge("k"), 20)
	return o, c
}

// copied is a copy of a version of the key as a read finds it.
func copied(last Version, tag string, at geo.Timestamp, id string) Found {
	return Found{Read: Read{State: State{Present: true, Last: last, Base: 1}, ETag: tag, At: at}, Source: "k", ID: id}
}

// readNow is a read while nothing else happens.
func readNow(c *Copies, f Found, sync geo.Timestamp) error { return c.Read("n", c.Since("n", sync), f) }

// put is the put of copying as a read finds it.
func put() Found {
	return Found{Read: Read{State: State{Present: true, Last: 1, Base: 1}, ETag: "t12", At: 12}}
}

// A copy shows one version that its source had between request and answer, and the same each time, until its name is
// written again.
func TestCopyContent(t *testing.T) {
	for name, tt := range map[string]struct {
		reads []Found
		want  error
	}{
		"before the write beside it": {[]Found{copied(2, "t15", 15, "c1"), copied(2, "t15", 15, "c1")}, nil},
		"after it":                   {[]Found{copied(3, "t15", 15, "c1"), copied(3, "t15", 15, "c1")}, nil},
		"earlier":                    {[]Found{copied(1, "t15", 15, "c1")}, ErrChanged},
		"later":                      {[]Found{copied(4, "t15", 15, "c1")}, ErrChanged},
		"first this, then that":      {[]Found{copied(2, "t15", 15, "c1"), copied(3, "t15", 15, "c1")}, ErrChanged},
		"another copy":               {[]Found{copied(2, "t15", 15, "c2")}, ErrChanged},
		"under another tag":          {[]Found{copied(2, "t16", 16, "c1")}, ErrTag},
		"one that was not asked for": {[]Found{copied(2, "t16", 16, "c2")}, ErrInvented},
		"what it replaced":           {[]Found{put()}, ErrLost},
		"not there":                  {[]Found{{}}, ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := copying(t)
			var err error
			for _, f := range tt.reads {
				require.NoError(t, err)
				err = readNow(c, f, Now)
			}
			require.ErrorIs(t, err, tt.want)
		})
	}
}

// The secondary shows what its sync time has passed, or something newer.
func TestCopyAtSecondary(t *testing.T) {
	_, c := copying(t)
	require.NoError(t, readNow(c, Found{}, 11))
	require.ErrorIs(t, readNow(c, Found{}, 12), ErrLost)
	require.NoError(t, readNow(c, put(), 14))
	require.NoError(t, readNow(c, copied(3, "t15", 15, "c1"), 14), "it is early")
	require.ErrorIs(t, readNow(c, put(), 15), ErrBehind)
	require.EqualValues(t, 15, c.Newest())
}

// A copy without an answer is there or not, whole, at any time until that is known; and there is one of it.
func TestCopyWithoutAnswer(t *testing.T) {
	o, c := copying(t)
	answered := copied(3, "t15", 15, "c1")
	c.Copy("n", "k").Lost()
	acked(o, o.Merge("k"), 30)
	require.NoError(t, readNow(c, answered, Now))
	require.ErrorIs(t, readNow(c, copied(3, "t31", 31, "c2"), Now), ErrChanged, "that was replaced before")
	late := copied(5, "t32", 32, "c2")
	_, c = copying(t)
	o = c.oracle
	c.Copy("n", "k").Lost()
	acked(o, o.Merge("k"), 30)
	require.NoError(t, readNow(c, late, Now))
	require.ErrorIs(t, readNow(c, answered, Now), ErrLost, "the newer one was read")
	require.ErrorIs(t, readNow(c, copied(5, "t33", 33, "c3"), Now), ErrInvented, "one without an answer is found twice")
	require.NoError(t, c.Resolve("n", c.Since("n", Now), late))
	require.NoError(t, c.Final("n", late))
	require.ErrorIs(t, c.Final("n", answered), ErrBehind)
	require.ErrorIs(t, c.Final("n", Found{}), ErrBehind)

	// What was not found while nobody writes does not come later, but at the secondary what was replaced may still show.
	_, c = copying(t)
	c.Copy("n", "k").Lost()
	require.NoError(t, c.Resolve("n", c.Since("n", Now), answered))
	w := c.Copy("n", "k")
	require.NoError(t, w.Acked("t40", "c4", 40))
	require.NoError(t, readNow(c, copied(4, "t31", 31, "c2"), 20))
	require.ErrorIs(t, readNow(c, copied(4, "t41", 41, "c2"), Now), ErrInvented)
}

// A copy that a read shows before its answer must be the one that is answered.
func TestCopyShownBeforeItsAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		last Version
		id   string
		want error
	}{"it is": {4, "c2", nil}, "another copy": {4, "c3", ErrChanged}} {
		t.Run(name, func(t *testing.T) {
			_, c := copying(t)
			w := c.Copy("n", "k")
			require.NoError(t, readNow(c, copied(tt.last, "t30", 30, tt.id), Now))
			require.ErrorIs(t, w.Acked("t30", "c2", 30), tt.want)
		})
	}
	_, c := copying(t)
	require.ErrorIs(t, c.Copy("n", "k").Acked("t15", "c2", 15), ErrChanged, "a tag twice")
}

// What was deleted is gone, and what was copied after that is not; a deletion without an answer may have happened.
func TestCopyDeleted(t *testing.T) {
	there := copied(3, "t15", 15, "c1")
	_, c := copying(t)
	c.Delete("n").Refused()
	require.ErrorIs(t, readNow(c, Found{}, Now), ErrLost)
	d := c.Delete("n")
	require.NoError(t, readNow(c, Found{}, Now))
	require.NoError(t, readNow(c, there, Now))
	require.NoError(t, d.Acked("", "", 50))
	require.NoError(t, readNow(c, Found{}, Now))
	require.ErrorIs(t, readNow(c, there, Now), ErrBack)
	require.NoError(t, readNow(c, there, 49))
	require.ErrorIs(t, readNow(c, there, 50), ErrBack)
	require.NoError(t, c.Copy("n", "k").Acked("t40", "c2", 40), "the time of the deletion is an upper bound")
	require.NoError(t, readNow(c, copied(4, "t40", 40, "c2"), Now))
	require.ErrorIs(t, readNow(c, Found{}, Now), ErrLost)

	_, c = copying(t)
	c.Delete("n").Lost()
	require.NoError(t, readNow(c, Found{}, Now))
	require.NoError(t, c.Resolve("n", c.Since("n", Now), there))
	require.ErrorIs(t, readNow(c, Found{}, Now), ErrLost, "it did not happen")
}

// A source that is answered not to be there must not have been there all the time.
func TestCopyOfNothing(t *testing.T) {
	o, c := copying(t)
	require.ErrorIs(t, c.Copy("n", "k").NotThere(), ErrLost)
	require.NoError(t, c.Copy("n", "other").NotThere())
	w := c.Copy("n", "k")
	o.Lost("k", o.Delete("k"))
	require.NoError(t, w.NotThere())
	require.Equal(t, []string{"n"}, c.Names())
}
