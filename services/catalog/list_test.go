package catalog

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"antipode/geo"
	"antipode/services"
	"antipode/stamp/kv"
)

// scanned is a catalog that can be read and scanned.
type scanned map[string][]byte

func (r scanned) Get(key []byte) ([]byte, bool, error) {
	v, ok := r[string(key)]
	return v, ok, nil
}

func (r scanned) Scan(lower, upper []byte) (kv.Iterator, error) {
	keys := slices.Sorted(maps.Keys(r))
	return &rowIterator{r, slices.DeleteFunc(keys, func(k string) bool { return k < string(lower) || k >= string(upper) }), -1}, nil
}

type rowIterator struct {
	scanned
	keys []string
	at   int
}

func (i *rowIterator) Next() bool         { i.at++; return i.at < len(i.keys) }
func (i *rowIterator) SeekGE([]byte) bool { panic("not used") }
func (i *rowIterator) Key() []byte        { return []byte(i.keys[i.at]) }
func (i *rowIterator) Value() []byte      { return bytes.Clone(i.scanned[i.keys[i.at]]) }
func (i *rowIterator) Close() error       { return nil }

func (r scanned) commit(t *testing.T, w services.Write, at geo.Timestamp) {
	t.Helper()
	e, err := w.Evaluate(r, at)
	require.NoError(t, err)
	for _, op := range e.Ops {
		r[string(w.Partition().Append(nil))+string(op.Row)] = op.Value
	}
}

// Pages hold the living containers of one service in order, those that begin with the
// prefix alone, each once, whatever the size of a page and the bound on rows.
func TestPage(t *testing.T) {
	r := scanned{}
	var all []string
	for i := range 30 {
		name := fmt.Sprintf("c%02d", i)
		r.commit(t, &Create{Service: geo.Blob, Account: "acct", Name: name}, geo.Timestamp(2*i+2))
		r.commit(t, &Create{Service: geo.Queue, Account: "acct", Name: name + "q"}, 2)
		if i%3 == 0 {
			r.commit(t, &Delete{Service: geo.Blob, Account: "acct", Name: name}, 100)
			continue
		}
		all = append(all, name)
	}
	for _, prefix := range []string{"", "c", "c1", "c11", "b", "d", "c1111"} {
		want := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.HasPrefix(s, prefix) })
		for _, size := range []int{1, 2, 7, 100} {
			got := []string{}
			for from := ""; ; {
				count := 0
				next, err := Page(r, geo.Blob, "acct", prefix, from, 5, func(c *Container) bool {
					got = append(got, c.Name)
					count++
					return count < size
				})
				require.NoError(t, err)
				require.LessOrEqual(t, count, size)
				if next == "" {
					break
				}
				require.Greater(t, next, from)
				from = next
			}
			require.Equal(t, want, got, "prefix %q, pages of %d", prefix, size)
		}
	}
}

// New metadata replaces the old, moves Last-Modified, and leaves the generation.
func TestSetMetadata(t *testing.T) {
	r := scanned{}
	r.commit(t, &Create{Service: geo.Blob, Account: "acct", Name: "c", Epoch: 1, Metadata: []Pair{{"old", "1"}}}, 10)
	w := &SetMetadata{Service: geo.Blob, Account: "acct", Name: "c", Metadata: []Pair{{"new", "2"}}}
	r.commit(t, w, 20)
	c, err := GetContainer(r, geo.Blob, "acct", "c")
	require.NoError(t, err)
	require.Equal(t, &Container{Version: 1, Name: "c", Epoch: 1, Created: 10, Modified: 20, Metadata: []Pair{{"new", "2"}}}, c)
	require.Equal(t, geo.Timestamp(20), w.Modified)
	r.commit(t, &Delete{Service: geo.Blob, Account: "acct", Name: "c"}, 30)
	_, err = w.Evaluate(r, 40)
	require.Error(t, err)
}
