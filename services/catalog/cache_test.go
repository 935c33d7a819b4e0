package catalog

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
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

// A row that is used stays, and the newest rows do. A row that was forgotten is read again, and one that is larger than a
// generation always is.
func TestCacheKeepsWhatIsUsed(t *testing.T) {
	const size = 64 << 10
	s := &rows{version: 7, value: map[string]string{}}
	var c Cache[string]
	get := func(i, size int) {
		key := strconv.Itoa(i)
		s.value[key] = strings.Repeat("x", size)
		row, err := c.Get(s, []byte(key), parse)
		require.NoError(t, err)
		require.Equal(t, s.value[key], *row)
		held := 0
		for key, d := range c.seen {
			held += d.bytes(key)
		}
		require.Equal(t, held, c.held)
		require.LessOrEqual(t, held, generation)
	}
	const one = generation / (rowBytes + (1+decodedBytes)*size) // Rows of a generation, about.
	for i := range 4 * one {
		get(i, size)
		get(0, size)
	}
	require.Equal(t, 4*one, s.reads, "a row that is used stays")
	get(3*one+2, size)
	require.Equal(t, 4*one, s.reads, "so do the newest ones")
	get(1, size)
	require.Equal(t, 4*one+1, s.reads)
	for range 2 {
		before := s.reads
		get(-1, generation)
		require.Equal(t, before+1, s.reads)
	}
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

// The largest rows that tenants can make, and the smallest, take no more memory than the bound of a cache: containers
// with as much metadata as there may be, in few pairs or in as many as there can be, and with as many policies; queues
// with nothing; policies of before their letters were bounded; and properties.
func TestCacheIsBounded(t *testing.T) {
	var pairs []Pair
	for i := 0; 3*len(pairs) < metadataMax; i++ {
		pairs = append(pairs, Pair{Name: fmt.Sprintf("%03x", i)})
	}
	id := strings.Repeat("\u20ac", 64) // Three bytes for a unit.
	var policies []Policy
	for i := range 5 {
		const at = "2026-01-01T00:00:00.0000000Z"
		policies = append(policies, Policy{ID: id[:len(id)-3] + strconv.Itoa(i), Start: at, Expiry: at, Permission: "racwdxyltmeopi"})
	}
	rule := CORSRule{Methods: []string{"GET", "PUT"}}
	for range 400 {
		rule.Origins = append(rule.Origins, "*")
	}
	container := func(c Container) []byte {
		c.Name = strings.Repeat("n", 63)
		b, err := c.encode()
		require.NoError(t, err)
		return b
	}
	properties, err := (&Properties{CORS: []CORSRule{rule, rule, rule, rule, rule}}).encode()
	require.NoError(t, err)
	for name, row := range map[string][]byte{
		"many pairs": container(Container{Metadata: pairs, Policies: policies}),
		"long pair":  container(Container{Metadata: []Pair{{Name: "a", Value: strings.Repeat("<", metadataMax)}}, Policies: policies}),
		"smallest":   container(Container{}),
		"of before":  container(Container{Policies: []Policy{{ID: "a", Permission: strings.Repeat("r", 250_000)}}}),
	} {
		t.Run(name, func(t *testing.T) { requireBounded(t, row, ParseContainer) })
	}
	t.Run("properties", func(t *testing.T) { requireBounded(t, properties, ParseProperties) })
}

// metadataMax is how long names and values of metadata may be together (protocol/queue.md 2), in bytes.
const metadataMax = 8 << 10

// requireBounded fills a cache with copies of a row twice over, and looks at the heap.
func requireBounded[T any](t *testing.T, row []byte, parse func([]byte) (*T, error)) {
	t.Helper()
	s := &oneRow{value: row}
	var c Cache[T]
	before := heap()
	for i := range 2*cacheBytesMax/(rowBytes+(1+decodedBytes)*len(row)) + 3 {
		_, err := c.Get(s, fmt.Appendf(nil, "a key that is as long as those of containers are, with its account: %024d", i), parse)
		require.NoError(t, err)
	}
	held := heap() - before
	t.Logf("%d bytes in a row, %d rows, %.2f of the bound", len(row), len(c.seen)+len(c.former), float64(held)/cacheBytesMax)
	require.LessOrEqual(t, held, cacheBytesMax)
	require.NotEmpty(t, c.former)
}

// heap is how many bytes of the heap are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// oneRow is a state that has one value under each key, and is never the same twice.
type oneRow struct {
	version kv.Version
	value   []byte
}

func (r *oneRow) Version() kv.Version {
	r.version++
	return r.version
}

func (r *oneRow) Get([]byte) ([]byte, bool, error) { return r.value, true, nil }
