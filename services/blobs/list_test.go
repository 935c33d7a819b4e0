package blobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"antipode/geo"
	"antipode/internal/clock"
	"antipode/services"
	"antipode/stamp/kv"
)

// scanned is a state that is scanned; it counts the moves of its iterators.
type scanned struct {
	state
	moves int
}

func (r *scanned) Scan(lower, upper []byte) (kv.Iterator, error) {
	keys := slices.Sorted(maps.Keys(r.state))
	keys = slices.DeleteFunc(keys, func(k string) bool { return k < string(lower) || upper != nil && k >= string(upper) })
	return &iterator{r: r, keys: keys, at: -1}, nil
}

type iterator struct {
	r    *scanned
	keys []string
	at   int
	// value is what is valid until the next move.
	value []byte
}

func (i *iterator) Next() bool {
	i.r.moves++
	i.at++
	return i.at < len(i.keys)
}

func (i *iterator) SeekGE(key []byte) bool {
	i.r.moves++
	i.at, _ = slices.BinarySearch(i.keys, string(key))
	return i.at < len(i.keys)
}

func (i *iterator) Key() []byte  { return bytes.Clone([]byte(i.keys[i.at])) }
func (i *iterator) Close() error { return nil }

func (i *iterator) Value() []byte {
	i.value = append(i.value[:0], i.r.state[i.keys[i.at]]...)
	return i.value
}

func listing() *Listing {
	n := testName("")
	return &Listing{Account: n.Account, Container: n.Container, Generation: n.Generation}
}

// work is a budget of so much work.
func work(n int) *services.Budget {
	return services.NewWorkBudget(context.Background(), clock.NewManual(time.Unix(0, 0)), n)
}

// listAll reads page after page of size items and returns the names, prefixes with a
// > before them. A page has the work that budget says, or enough where that is nil.
func listAll(t require.TestingT, r *scanned, l *Listing, size int, budget ...int) []string {
	var names []string
	if len(budget) == 0 {
		budget = []int{1 << 20}
	}
	for page := 0; ; page++ {
		count := 0
		next, err := List(context.Background(), r, l, work(budget[page%len(budget)]), func(i Item) (bool, error) {
			if count == size {
				return false, nil
			}
			name := i.Name
			if i.IsPrefix {
				name = ">" + name
			}
			if i.Snapshot > 0 {
				name += fmt.Sprintf("@%d", i.Snapshot)
			}
			names = append(names, name)
			count++
			return true, nil
		})
		require.NoError(t, err)
		if next.Name == "" {
			return names
		}
		compare := bytes.Compare(l.partition(next.Name), l.partition(l.From.Name))
		require.True(t, l.From.Name == "" || compare > 0 || compare == 0 && next.Snapshot > l.From.Snapshot, "the listing does not move on")
		l.From = next
	}
}

// twin lists as the words of protocol/blob.md 7.2 say, over all names.
func twin(names []string, prefix, delimiter string) []string {
	slices.SortFunc(names, func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) })
	var out []string
	for _, name := range names {
		rest, found := strings.CutPrefix(name, prefix)
		if !found {
			continue
		}
		if i := strings.Index(rest, delimiter); delimiter != "" && i >= 0 {
			name = ">" + prefix + rest[:i+len(delimiter)]
		}
		if len(out) == 0 || out[len(out)-1] != name {
			out = append(out, name)
		}
	}
	return out
}

// A listing equals the listing of a simple twin, for any names in upper and lower case, prefix and delimiter. It
// may end at any name, with pages of any size and any work, and with names among them that are not listed.
func TestListTwin(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("aAbB/-\u00e9\uffff\U0001f600")), 0, 5, -1)
		names := rapid.SliceOfNDistinct(text.Filter(func(s string) bool { return s != "" }), 0, 20, rapid.ID[string]).Draw(rt, "names")
		r := &scanned{state: state{}}
		var listed []string
		for _, name := range names {
			if rapid.IntRange(0, 3).Draw(rt, "kind") > 0 {
				require.NoError(t, r.commit(t, put(name, "x"), 10))
				listed = append(listed, name)
				continue
			}
			uncommitted := stage("id", "x")
			uncommitted.Name = testName(name)
			require.NoError(t, r.commit(t, uncommitted, 10))
		}
		other := put("aa", "x")
		other.Name.Generation.Created++
		require.NoError(t, r.commit(t, other, 10))
		l := listing()
		l.Prefix = rapid.StringOfN(rapid.SampledFrom([]rune("aAbB/\U0001f600")), 0, 2, -1).Draw(rt, "prefix")
		l.Delimiter = rapid.SampledFrom([]string{"", "/", "-", "a/", "A", "\U0001f600"}).Draw(rt, "delimiter")
		l.Uncommitted = rapid.Bool().Draw(rt, "uncommitted")
		if l.Uncommitted {
			listed, l.Now = names, 10
		}
		if l.Before = text.Draw(rt, "before"); l.Before != "" {
			behind := func(name string) bool {
				return slices.Compare(utf16.Encode([]rune(name)), utf16.Encode([]rune(l.Before))) >= 0
			}
			listed = slices.DeleteFunc(slices.Clone(listed), behind)
		}
		budget := rapid.SliceOfN(rapid.IntRange(1, 8*nameWork), 1, 5).Draw(rt, "work")
		size := rapid.IntRange(1, 7).Draw(rt, "size")
		require.Equal(rt, twin(slices.Clone(listed), l.Prefix, l.Delimiter), listAll(rt, r, l, size, budget...))
	})
}

// A page costs no more than its budget, whether its names are listed, collapsed by a seek each,
// passed over, or of dead rows alone. It ends at once when its client is gone.
func TestListIsBounded(t *testing.T) {
	const names = 2000
	listed, uncommitted, dead := &scanned{state: state{}}, &scanned{state: state{}}, &scanned{state: state{}}
	for i := range names {
		name := fmt.Sprintf("%04d/a", i)
		require.NoError(t, listed.commit(t, put(name, "x"), 10))
		require.NoError(t, listed.commit(t, put(name+"b", "x"), 10))
		w := stage("id", "x")
		w.Name = testName(name)
		require.NoError(t, uncommitted.commit(t, w, 10))
		dead.state[string(testName(name).keyOf(blockRow(10, "id")))] = []byte{}
	}
	const seeks = 10
	for name, c := range map[string]struct {
		r         *scanned
		delimiter string
		lookedAt  int // names, in a page of so much work
	}{
		"listed":    {listed, "", seeks * (nameWork + seekWork) / nameWork},
		"collapsed": {listed, "/", seeks},
		"passed":    {uncommitted, "", seeks},
		"dead":      {dead, "", seeks * (nameWork + seekWork) / nameWork},
	} {
		l := listing()
		l.Delimiter = c.delimiter
		c.r.moves = 0
		next, err := List(t.Context(), c.r, l, work(seeks*(nameWork+seekWork)), func(Item) (bool, error) { return true, nil })
		require.NoError(t, err, name)
		require.NotEmpty(t, next, name)
		require.LessOrEqual(t, c.r.moves, 2*c.lookedAt+1, name)

		gone, leave := context.WithCancel(t.Context())
		leave()
		c.r.moves = 0
		_, err = List(gone, c.r, l, work(1<<30), func(Item) (bool, error) { return true, nil })
		require.ErrorIs(t, err, context.Canceled, name)
		require.Less(t, c.r.moves, names, name)
	}
}

// Names behind a delimiter are skipped, not read: 10 prefixes of 500 names each cost a
// few moves per prefix.
//
// Capability: Clients: Bounded work.
func TestListSeeksPastPrefixes(t *testing.T) {
	r := &scanned{state: state{}}
	for i := range 10 {
		for j := range 500 {
			require.NoError(t, r.commit(t, put(fmt.Sprintf("dir-%d/%d", i, j), "x"), geo.Timestamp(i+1)))
		}
	}
	l := listing()
	l.Delimiter = "/"
	require.Len(t, listAll(t, r, l, 5000), 10)
	require.Less(t, r.moves, 25)

	l = listing()
	l.Prefix, l.Delimiter = "dir-3/", "/"
	require.Len(t, listAll(t, r, l, 5000), 500)
}

// An error of the callback and a row that cannot be read end the listing.
func TestListErrors(t *testing.T) {
	r := &scanned{state: state{}}
	require.NoError(t, r.commit(t, put("a", "x"), 10))
	bad := errors.New("bad")
	_, err := List(t.Context(), r, listing(), work(1000), func(Item) (bool, error) { return true, bad })
	require.ErrorIs(t, err, bad)
	r.state[string(testName("b").key())] = []byte{9}
	_, err = List(t.Context(), r, listing(), work(1000), func(Item) (bool, error) { return true, nil })
	require.ErrorIs(t, err, ErrMalformed)
}
