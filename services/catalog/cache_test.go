package catalog

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/stamp/kv"
)

// rows is a state with a version, as a range shows it.
type rows struct {
	version kv.Version
	value   map[string]string
	reads   int
	// during runs within a Get, as a concurrent apply would.
	during func()
}

func (r *rows) Version() kv.Version { return r.version }

func (r *rows) Get(key []byte) ([]byte, bool, error) {
	r.reads++
	v, ok := r.value[string(key)]
	if r.during != nil {
		r.during()
	}
	return []byte(v), ok, nil
}

func parse(b []byte) (*string, error) {
	s := string(b)
	return &s, nil
}

// A row is read from the state again unless the version shows that nothing changed;
// what an apply under way (version 0) or one in the middle of the read may have changed
// is not kept as current.
func TestCacheNeverReturnsAnOlderRow(t *testing.T) {
	s := &rows{version: 7, value: map[string]string{"k": "a"}}
	var c Cache[string]
	get := func() string {
		row, err := c.Get(s, []byte("k"), parse)
		require.NoError(t, err)
		if row == nil {
			return ""
		}
		return *row
	}
	require.Equal(t, "a", get())
	require.Equal(t, "a", get())
	require.Equal(t, 1, s.reads, "the same version is not read again")

	s.value["k"], s.version = "b", 0
	require.Equal(t, "b", get(), "while an apply is under way the state itself is read")
	s.value["k"] = "c"
	require.Equal(t, "c", get())
	s.version = 8
	require.Equal(t, "c", get())

	s.version = 9
	s.during = func() { s.value["k"], s.version = "d", 10 }
	require.Equal(t, "c", get(), "read just before the apply")
	s.during = nil
	require.Equal(t, "d", get(), "the row of version 9 is not taken for that of version 10")

	delete(s.value, "k")
	s.version = 11
	require.Empty(t, get())
}

// A cache keeps at most cacheMax rows: at least those of a generation that were used last. It serves a row that it forgot.
func TestCacheIsBounded(t *testing.T) {
	s := &rows{version: 7, value: map[string]string{}}
	var c Cache[string]
	get := func(i int) {
		key := strconv.Itoa(i)
		s.value[key] = key
		row, err := c.Get(s, []byte(key), parse)
		require.NoError(t, err)
		require.Equal(t, key, *row)
		require.LessOrEqual(t, len(c.seen)+len(c.former), cacheMax)
	}
	for i := range 3 * cacheMax {
		get(i)
		get(0)
	}
	require.Equal(t, 3*cacheMax, s.reads, "a row that is used stays")
	get(3*cacheMax - generation)
	require.Equal(t, 3*cacheMax, s.reads, "so do the newest ones")
	get(1)
	require.Equal(t, 3*cacheMax+1, s.reads)
}

// A cache keeps the properties of a service that has set none, too: they are read again once the data has changed.
func TestPropertiesCacheKeepsNone(t *testing.T) {
	s := &rows{version: 7, value: map[string]string{}}
	var c PropertiesCache
	get := func(want string) {
		t.Helper()
		p, err := c.Get(s, geo.Blob, "acct")
		require.NoError(t, err)
		require.Equal(t, want, p.DefaultVersion)
	}
	get("")
	get("")
	require.Equal(t, 1, s.reads)
	s.value[string(PropertiesKey(geo.Blob, "acct"))], s.version = `{"v":1,"default_version":"2013-08-15"}`, 8
	get("2013-08-15")
	require.Equal(t, 2, s.reads)
	s.value[string(PropertiesKey(geo.Blob, "acct"))], s.version = `{"v":99}`, 9
	_, err := c.Get(s, geo.Blob, "acct")
	require.Error(t, err, "of a newer format")
}
